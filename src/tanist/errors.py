"""Every error Tanist raises on purpose.

A caller asks three things of an error: whose fault is it, may I try again, does the connection
survive? The class answers; the fields say what was asked, what was found and what to do.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import ClassVar


class MQError(Exception):
    """The root. Never raised itself."""


class ConfigError(MQError):
    """A setting is wrong: the process refuses to start and names the key, and the file it stands in."""

    def __init__(self, key: str, value: object, allowed: str, source: object = None) -> None:
        place = "" if source is None else f"{source}: "
        super().__init__(f"{place}{key}={value!r} is not allowed; use {allowed}")
        self.key = key
        self.value = value
        self.allowed = allowed
        self.source = source


class UnreadableConfig(ConfigError):
    """A config file can not be read, or a line of it makes no sense."""

    def __init__(self, path: object, found: str, allowed: str) -> None:
        super().__init__("configFile", path, allowed, source=path)
        self.found = found

    def __str__(self) -> str:
        return f"{self.source}: {self.found}; use {self.allowed}"


class ProtocolError(MQError):
    """Bytes and the protocol disagree."""


class RemoteProtocolError(ProtocolError):
    """The peer broke the protocol: its connection is closed, nobody else is disturbed."""


class LocalProtocolError(ProtocolError):
    """We were about to break the protocol. The value came from our side, so it is ours to mend."""


class StoreError(MQError):
    """The store cannot do what was asked."""


class CorruptRecord(StoreError):
    """Bytes on disk are not what was written there."""

    def __init__(self, path: object, position: int, found: str) -> None:
        super().__init__(f"{path} at byte {position}: {found}")
        self.path = path
        self.position = position
        self.found = found


class ForeignFile(StoreError):
    """A file in the store is not one of ours, or of another version or size than the settings say."""

    def __init__(self, path: object, found: str, remedy: str) -> None:
        super().__init__(f"{path}: {found}; {remedy}")
        self.path = path
        self.found = found
        self.remedy = remedy


class ForeignLog(StoreError):
    """What another broker has belongs to another log than ours."""


class DivergedLog(StoreError):
    """Our log has what its master's has not, and it must not be cut."""


class OffsetOutOfRange(StoreError):
    """An offset lies outside what the store holds: ``start <= offset <= end`` does not hold."""

    def __init__(self, what: str, offset: int, start: int, end: int) -> None:
        super().__init__(f"{what} {offset} is outside [{start}, {end}]")
        self.offset = offset
        self.start = start
        self.end = end


class DiskFull(StoreError):
    """No room for the next bytes. What was written before is safe; writing goes on when there is room."""

    def __init__(self, path: object, needed_bytes: int) -> None:
        super().__init__(
            f"no room for {needed_bytes} bytes in {path}; free some space, writes go on by themselves"
        )
        self.path = path
        self.needed_bytes = needed_bytes


class NotWritable(StoreError):
    """The store takes no writes now; the text says why."""


class StoreBusy(NotWritable):
    """The disk has been at the same work for too long: the store takes no writes until it is done."""


class StoreLocked(StoreError):
    """Another process has this store open."""


class FlushFailed(StoreError):
    """The disk refused to make bytes durable. They may be lost: nothing after this is acknowledged."""


class ReplicationError(MQError):
    """Replicas do not agree on what each of them is."""


class StaleEpoch(ReplicationError):
    """Who speaks is of a reign that is over."""


class RemotingError(MQError):
    """A request to a peer has no answer."""


class ConnectFailed(RemotingError):
    """No connection: nothing was sent, so asking again does nothing twice."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"cannot connect to {address}: {reason}")
        self.address = address
        self.reason = reason


class ConnectionLost(RemotingError):
    """The connection ended before the answer came. The peer may have done what was asked."""

    def __init__(self, peer: str, reason: str) -> None:
        super().__init__(f"the connection to {peer} is gone: {reason}")
        self.peer = peer
        self.reason = reason


class RequestTimeout(RemotingError):
    """No answer in time. The peer may have done what was asked, or do it yet; the connection lives on."""

    def __init__(self, peer: str, code: int, timeout_s: float) -> None:
        super().__init__(f"{peer} did not answer request code {code} within {timeout_s:g} s")
        self.peer = peer
        self.code = code
        self.timeout_s = timeout_s


class TooBusy(RemotingError):
    """Too much waits for this peer already: nothing was sent, try again when it has caught up."""

    def __init__(self, peer: str, waiting: str) -> None:
        super().__init__(f"{peer} is behind: {waiting}; try again later")
        self.peer = peer
        self.waiting = waiting


class NoLeader(ReplicationError):
    """None of the controllers names one that leads: nothing can be decided now."""

    def __init__(self, reasons: str) -> None:
        super().__init__(f"no controller leads: {reasons}")
        self.reasons = reasons


class NoRole(ReplicationError):
    """A replica can not take a role under its controller yet; the text says why."""


class ResponseError(MQError):
    """An answer that says no: its response code and remark. A handler raises it to answer so.

    ``retriable``: the same request may succeed later or elsewhere. ``refresh_route``: the route that led
    to this peer may be old. Both are told by the class that stands for the code.
    """

    retriable: ClassVar[bool] = False
    refresh_route: ClassVar[bool] = False

    def __init__(self, code: int, remark: str, *, ext: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{remark} (response code {code})")
        self.code = code
        self.remark = remark
        self.ext = {} if ext is None else dict(ext)
        """Fields that the answer carries beside the two."""


@contextmanager
def lone_error() -> Generator[None]:
    """Let a single error leave the group that a TaskGroup puts around it.

    It speaks for itself, on one line, and can be caught; the group would be a traceback.
    """
    try:
        yield
    except BaseExceptionGroup as group:
        first, *others = group.exceptions
        if others:
            raise
        raise first from first.__cause__
