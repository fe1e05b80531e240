"""What a slave does not do: its log and its tables are its master's, and only the master changes them. Pure.

The codes are those of RocketMQ's slaves, and where versions differ those of 4.9: a slave of 5.x changes its
own topics and groups, until the next look at the master undoes it.
"""

from collections.abc import Callable, Mapping

from tanist.errors import ResponseError
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.response_errors import NotMaster
from tanist.remoting import Connection, Handler
from tanist.remoting.replies import Pieces

_MESSAGES = (
    RequestCode.SEND_MESSAGE,
    RequestCode.SEND_MESSAGE_V2,
    RequestCode.SEND_BATCH_MESSAGE,
    RequestCode.SEND_REPLY_MESSAGE,
    RequestCode.SEND_REPLY_MESSAGE_V2,
)
_TABLES = (
    RequestCode.CONSUMER_SEND_MSG_BACK,
    RequestCode.UPDATE_AND_CREATE_TOPIC,
    RequestCode.UPDATE_AND_CREATE_TOPIC_LIST,
    RequestCode.DELETE_TOPIC_IN_BROKER,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
    RequestCode.DELETE_SUBSCRIPTIONGROUP,
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
    RequestCode.APPLY_RESET,
    RequestCode.DECIDE_RESET,
    RequestCode.RESET_RECEIPT,
    RequestCode.CLONE_GROUP_OFFSET,
    # Before it has the master's tables every topic looks as if it were gone.
    RequestCode.CLEAN_UNUSED_TOPIC,
    RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE,
)
_ALWAYS = frozenset(
    {
        RequestCode.HEART_BEAT,
        RequestCode.UNREGISTER_CLIENT,
        RequestCode.GET_BROKER_CONFIG,
        RequestCode.UPDATE_BROKER_CONFIG,
        RequestCode.GET_BROKER_RUNTIME_INFO,
        RequestCode.GET_BROKER_HA_STATUS,
        RequestCode.GET_BROKER_EPOCH_CACHE,
        RequestCode.NOTIFY_BROKER_ROLE_CHANGED,
        RequestCode.REBUILD_SLAVE,
    }
)
REFUSED: Mapping[int, ResponseCode] = {
    **dict.fromkeys(_MESSAGES, ResponseCode.SERVICE_NOT_AVAILABLE),
    **dict.fromkeys(_TABLES, ResponseCode.SYSTEM_ERROR),
    RequestCode.END_TRANSACTION: ResponseCode.SLAVE_NOT_AVAILABLE,
}
"""What is refused, and with which code."""

_OFFSETS = frozenset(
    {
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
        RequestCode.APPLY_RESET,
        RequestCode.DECIDE_RESET,
        RequestCode.RESET_RECEIPT,
        RequestCode.CLONE_GROUP_OFFSET,
    }
)
"""Served by a slave that is read: the offsets are its own then, and go to the master with the others."""

_READ_REMARK = (
    "this broker is a slave that is read while its master is gone, and its log is never written; "
    "try again when the master is back, or at another master"
)
MasterFinder = Callable[[], str | None]
"""Tells where the master serves clients; None if that is not known."""


def without_writes(
    routes: Mapping[int, Handler], find_master: MasterFinder, is_read: Callable[[], bool]
) -> dict[int, Handler]:
    """The routes of a slave: the same, but what only a master does is refused, with the way to the master.

    While it ``is_read`` the master is gone, and there is no way to it; groups' offsets may be changed here.
    """
    return {
        code: _refusing(code, find_master, is_read, handler) if code in REFUSED else handler
        for code, handler in routes.items()
    }


def fenced(routes: Mapping[int, Handler], reason: str) -> dict[int, Handler]:
    """The routes of a broker that has no role: it tells how it is, and shows and takes no message.

    What its log ends with may have to be cut, so nobody must see it.
    """

    def refuse(_command: Command, _connection: Connection) -> Command:
        raise ResponseError(ResponseCode.SERVICE_NOT_AVAILABLE, reason)

    return {code: handler if code in _ALWAYS else refuse for code, handler in routes.items()}


def _refusing(
    request: int, find_master: MasterFinder, is_read: Callable[[], bool], handler: Handler
) -> Handler:
    code = REFUSED[request]

    def refuse(command: Command, connection: Connection) -> Command | bytes | Pieces | None:
        if is_read():
            if request in _OFFSETS:
                return handler(command, connection)
            raise NotMaster(code, _READ_REMARK, master_address=None)
        address = find_master()
        place = f" at {address}" if address is not None else ""
        remark = f"this broker is a slave and follows its master{place}; ask the master"
        raise NotMaster(code, remark, master_address=address)

    return refuse
