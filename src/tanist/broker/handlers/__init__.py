"""What a broker answers: one module a family of requests, each with its ``routes``."""

from tanist.broker.handlers import (
    accounts,
    cleaning,
    clients,
    config,
    consumption,
    controlled,
    delays,
    figures,
    groups,
    messages,
    offsets,
    relays,
    replication,
    replies,
    reset_questions,
    resets,
    retries,
    slave_consume,
    topics,
    transactions,
    writes,
)
from tanist.broker.handlers.pull import PullHandler
from tanist.broker.handlers.send import SendHandler
from tanist.broker.state import BrokerState
from tanist.broker.writer import LogWriter
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.remoting import Connection, Handler
from tanist.remoting.replies import Pieces

_FAMILIES = (
    retries,
    replies,
    clients,
    topics,
    groups,
    offsets,
    resets,
    reset_questions,
    messages,
    consumption,
    relays,
    replication,
    slave_consume,
    controlled,
    delays,
    accounts,
    config,
    figures,
    cleaning,
    writes,
)
_NOT_ON_FAST_PORT = (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE)


def all_routes(
    state: BrokerState, sends: SendHandler, pulls: PullHandler, keeper: transactions.TransactionKeeper
) -> dict[int, Handler]:
    """Every request that the broker's port serves."""
    routes = pulls.routes() | transactions.routes(state, keeper)
    for family in _FAMILIES:
        routes |= family.routes(state)
    # A send is taken without a look at what queues hold.
    return sends.routes() | {code: _seeing_all(handler, state.writer) for code, handler in routes.items()}


def _seeing_all(handler: Handler, writer: LogWriter) -> Handler:
    """The handler with all messages in the queues that were acknowledged before it was asked."""

    def handle(command: Command, connection: Connection) -> Command | bytes | Pieces | None:
        writer.catch_up()
        return handler(command, connection)

    return handle


def fast_routes(routes: dict[int, Handler]) -> dict[int, Handler]:
    """What the second port serves: everything that does not wait."""
    return {code: handler for code, handler in routes.items() if code not in _NOT_ON_FAST_PORT}
