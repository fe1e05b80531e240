"""All errors that clients raise: their own, and those of connections and of brokers' answers.

Those of answers have one class for each response code, with ``retriable``.
"""

from collections.abc import Collection, Sequence

from tanist.errors import (
    ConnectFailed,
    ConnectionLost,
    MQError,
    RemotingError,
    RequestTimeout,
    ResponseError,
    TooBusy,
)
from tanist.protocol.response_errors import (
    BadSubscription,
    BrokerBusy,
    BrokerFailed,
    BrokerLeaving,
    ConsumerOffline,
    ConsumeTimedOut,
    FilterOutdated,
    FilterUnknown,
    FlowControlled,
    GroupNotFound,
    IllegalOperation,
    InvalidParameter,
    MessageRefused,
    NoBuyerId,
    NoPermission,
    NotFound,
    NotInThisUnit,
    NotReadable,
    NotWritableNow,
    RequestNotSupported,
    SubscriptionOutdated,
    SubscriptionUnknown,
    TopicNotFound,
    VersionNotSupported,
)

__all__ = [
    "BadSubscription",
    "BrokerBusy",
    "BrokerFailed",
    "BrokerLeaving",
    "ClientClosed",
    "CommitFailed",
    "CommitInDoubt",
    "ConnectFailed",
    "ConnectionLost",
    "ConsumeTimedOut",
    "ConsumerOffline",
    "FilterOutdated",
    "FilterUnknown",
    "FlowControlled",
    "GroupNotFound",
    "IllegalOperation",
    "InvalidArgument",
    "InvalidParameter",
    "MQError",
    "MessageRefused",
    "NoBuyerId",
    "NoPermission",
    "NoReply",
    "NoRoute",
    "NotFound",
    "NotInThisUnit",
    "NotReadable",
    "NotWritableNow",
    "RemotingError",
    "ReplicaBehind",
    "RequestNotSupported",
    "RequestTimeout",
    "ResponseError",
    "SendFailed",
    "SubscriptionOutdated",
    "SubscriptionUnknown",
    "TooBusy",
    "TopicNotFound",
    "TransactionNotBegun",
    "VersionNotSupported",
]


class InvalidArgument(MQError, ValueError):
    """An argument of a call is wrong. Nothing was sent."""

    def __init__(self, argument: str, value: object, allowed: str) -> None:
        shown = repr(value)
        super().__init__(f"{argument}={shown[:200]} is not allowed: {allowed}")
        self.argument = argument
        self.value = value
        self.allowed = allowed


class ClientClosed(MQError):
    """The client is closed, or was never opened: use it inside its ``with`` block."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the {what} is not open; use it inside its 'with' or 'async with' block")
        self.what = what


class NoRoute(MQError):
    """No broker serves the topic: it does not exist, or none of its brokers is there now."""

    def __init__(self, topic: str, found: str) -> None:
        super().__init__(f"no route to topic {topic}: {found}")
        self.topic = topic
        self.found = found


class SendFailed(MQError):
    """A send failed on every broker that was tried. The last error is the cause.

    ``may_be_stored`` tells whether a broker may have stored it all the same: it did not answer in time.
    """

    def __init__(self, topic: str, failures: Sequence[tuple[str, MQError]], *, may_be_stored: bool) -> None:
        tried = "; ".join(f"{broker}: {error}" for broker, error in failures)
        doubt = "; it may be stored nevertheless" if may_be_stored else ""
        super().__init__(f"a message to {topic} was not sent{doubt} (tries: {len(failures)}): {tried}")
        self.topic = topic
        self.failures = tuple(failures)
        self.may_be_stored = may_be_stored


class TransactionNotBegun(MQError):
    """A broker stored the message of a transaction less safely than it promises. It was rolled back."""

    def __init__(self, topic: str, broker_name: str, status: str) -> None:
        super().__init__(
            f"a transaction with a message to {topic} was rolled back before its block ran: {broker_name} "
            f"says {status} of it; look at the broker's disk and its slaves"
        )
        self.topic = topic
        self.broker_name = broker_name
        self.status = status


class CommitInDoubt(MQError):
    """The block of a transaction is done, and the broker did not confirm the commit. The cause says why.

    Do not send the message again: the broker asks ``on_check`` what became of the transaction.
    """

    def __init__(self, topic: str, transaction_id: str, broker_name: str, found: str) -> None:
        super().__init__(
            f"{broker_name} did not confirm the commit of transaction {transaction_id} with a message to "
            f"{topic}, and will ask on_check what became of it: {found}"
        )
        self.topic = topic
        self.transaction_id = transaction_id
        self.broker_name = broker_name
        self.found = found


class NoReply(MQError):
    """Nobody replied to a request in time. ``is_sent`` tells whether a broker has it."""

    def __init__(self, topic: str, timeout_s: float, *, is_sent: bool) -> None:
        found = (
            "the request is in the topic: see whether a consumer runs and replies, and how long it takes"
            if is_sent
            else "no broker confirmed the request: see whether the topic's brokers are there"
        )
        super().__init__(f"no reply to a request to {topic} within {timeout_s:g} s; {found}")
        self.topic = topic
        self.timeout_s = timeout_s
        self.is_sent = is_sent


class ReplicaBehind(MQError):
    """A slave does not have yet what its master has: it is no place to read on from now."""

    def __init__(self, where: str, *, offset: int, max_offset: int) -> None:
        super().__init__(f"{where} ends at offset {max_offset}, before {offset}; ask again when it caught up")
        self.offset = offset
        self.max_offset = max_offset


class CommitFailed(MQError):
    """Brokers did not take the offsets of some queues. They are tried again every 5 s by themselves."""

    def __init__(self, group: str, queues: Collection[object]) -> None:
        super().__init__(
            f"the offsets of group {group} were not committed for {len(queues)} queues: {queues}"
        )
        self.group = group
        self.queues = frozenset(queues)
