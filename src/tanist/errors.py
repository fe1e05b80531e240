"""Every error Tanist raises on purpose.

A caller asks three things of an error: whose fault is it, may I try again, does the connection
survive? The class answers; the fields say what was asked, what was found and what to do.
"""


class MQError(Exception):
    """The root. Never raised itself."""


class ConfigError(MQError):
    """A setting is wrong: the process refuses to start and names the key."""

    def __init__(self, key: str, value: object, allowed: str) -> None:
        super().__init__(f"{key}={value!r} is not allowed; use {allowed}")
        self.key = key
        self.value = value
        self.allowed = allowed


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


class StoreLocked(StoreError):
    """Another process has this store open."""


class FlushFailed(StoreError):
    """The disk refused to make bytes durable. They may be lost: nothing after this is acknowledged."""
