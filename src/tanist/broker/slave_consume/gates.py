"""What a broker asks its read right before it serves a request. Pure.

Who consumes needs a broker that may be read, whatever it asks: a group whose members are counted, locked or
committed at two brokers reads twice. Who sends needs one that may be written. All else is served at any time:
operators look at a broker that serves nobody, and clients say goodbye to it.

Pulls are not among these, for they are asked again whenever one that waited goes on: PullHandler does it. Nor
are heartbeats, of which the part of the producers is always taken: ClientHandler does it.
"""

from collections.abc import Mapping

from tanist.broker.slave_consume.right import ReadRight
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.remoting import Connection, Handler
from tanist.remoting.replies import Pieces

READS = frozenset(
    {
        RequestCode.QUERY_CONSUMER_OFFSET,
        RequestCode.UPDATE_CONSUMER_OFFSET,
        RequestCode.GET_CONSUMER_LIST_BY_GROUP,
        RequestCode.LOCK_BATCH_MQ,
        RequestCode.UNLOCK_BATCH_MQ,
        # The offsets belong to whoever is read: what is set elsewhere would be lost.
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
        RequestCode.APPLY_RESET,
        RequestCode.DECIDE_RESET,
        RequestCode.RESET_RECEIPT,
        RequestCode.CLONE_GROUP_OFFSET,
    }
)
"""Served by a broker that may be read."""
WRITES = frozenset(
    {
        RequestCode.SEND_MESSAGE,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
        RequestCode.SEND_REPLY_MESSAGE,
        RequestCode.SEND_REPLY_MESSAGE_V2,
        RequestCode.CONSUMER_SEND_MSG_BACK,
        # Its producer is asked again once the broker may be written.
        RequestCode.END_TRANSACTION,
    }
)
"""Served by a broker that may be written."""


def obeying(routes: Mapping[int, Handler], right: ReadRight) -> dict[int, Handler]:
    """The same routes, each behind what it needs."""
    return {code: _gated(code, handler, right) for code, handler in routes.items()}


def _gated(code: int, handler: Handler, right: ReadRight) -> Handler:
    if code in READS:
        check = right.check_read
    elif code in WRITES:
        check = right.check_write
    else:
        return handler

    def serve(command: Command, connection: Connection) -> Command | bytes | Pieces | None:
        check()
        return handler(command, connection)

    return serve
