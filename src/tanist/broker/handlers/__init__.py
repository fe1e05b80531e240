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
    send,
    slave_consume,
    topics,
    transactions,
)
from tanist.broker.handlers.pull import PullHandler
from tanist.broker.state import BrokerState
from tanist.protocol.codes import RequestCode
from tanist.remoting import Handler

_FAMILIES = (
    send,
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
)
_NOT_ON_FAST_PORT = (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE)


def all_routes(
    state: BrokerState, pulls: PullHandler, keeper: transactions.TransactionKeeper
) -> dict[int, Handler]:
    """Every request that the broker's port serves."""
    routes = pulls.routes() | transactions.routes(state, keeper)
    for family in _FAMILIES:
        routes |= family.routes(state)
    return routes


def fast_routes(routes: dict[int, Handler]) -> dict[int, Handler]:
    """What the second port serves: everything that does not wait."""
    return {code: handler for code, handler in routes.items() if code not in _NOT_ON_FAST_PORT}
