"""What goes wrong on the client's own side. What brokers refuse is in ``protocol/response_errors``."""

from collections.abc import Collection, Sequence

from tanist.errors import MQError


class InvalidArgument(MQError, ValueError):
    """An argument of a call is wrong. Nothing was sent."""

    def __init__(self, argument: str, value: object, allowed: str) -> None:
        shown = repr(value)
        super().__init__(f"{argument}={shown[:200]} is not allowed: {allowed}")
        self.argument = argument
        self.value = value
        self.allowed = allowed


class ClientClosed(MQError):
    """The client is closed, or was never opened: use it inside ``async with``."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the {what} is not open; use it inside 'async with {what.capitalize()}(...)'")
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
        super().__init__(f"a message to {topic} was not sent after {len(failures)} attempts{doubt}: {tried}")
        self.topic = topic
        self.failures = tuple(failures)
        self.may_be_stored = may_be_stored


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
