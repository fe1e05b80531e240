"""A message on its way into the log, and what the log says when it has taken it."""

from enum import IntFlag

import msgspec

from tanist.model.offsets import LogOffset, QueueOffset


class SysFlag(IntFlag):
    """The bits of a record's system flag."""

    COMPRESSED = 0x1
    MULTI_TAGS = 0x2
    PREPARED = 0x4
    COMMIT = 0x8
    ROLLBACK = 0xC
    BORN_HOST_V6 = 0x10
    STORE_HOST_V6 = 0x20
    NEED_UNWRAP = 0x40
    INNER_BATCH = 0x80


TRANSACTION_MASK = 0xC
COMPRESSION_MASK = 0x700

_QUEUED_TRANSACTIONS = (0, int(SysFlag.COMMIT))
_ROLLED_BACK = int(SysFlag.ROLLBACK)


def is_queued(sys_flag: int) -> bool:
    """Whether a message enters its consume queue: a prepared or rolled back one does not."""
    return sys_flag & TRANSACTION_MASK in _QUEUED_TRANSACTIONS


def is_keyed(sys_flag: int) -> bool:
    """Whether a message is found by its keys: a rolled back one is not."""
    return sys_flag & TRANSACTION_MASK != _ROLLED_BACK


class Message(msgspec.Struct, gc=False, kw_only=True):
    """What a producer handed in. The log adds the offsets, the store time and its own address.

    ``properties`` is the wire string, byte for byte: a broker that decodes and encodes it again
    could not keep replicas and signatures equal.
    """

    topic: str
    queue_id: int
    body: bytes | memoryview
    properties: bytes = b""
    flag: int = 0
    sys_flag: int = 0
    born_timestamp_ms: int = 0
    born_host: bytes = b"\x7f\x00\x00\x01\x00\x00\x00\x00"
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0


class Appended(msgspec.Struct, frozen=True, gc=False):
    """Where the log put a message, or several that follow each other in one queue.

    ``end`` is one past its last byte: what a flush or an ack must reach.
    """

    log_offset: LogOffset
    queue_offset: QueueOffset
    size_bytes: int
    store_timestamp_ms: int
    entries: bytes = b""
    """What its queue will keep of it, once it is dispatched."""
    keyed: list[tuple[int, int, int]] = []
    """What the key index will keep of it."""

    @property
    def end(self) -> LogOffset:
        return LogOffset(self.log_offset + self.size_bytes)
