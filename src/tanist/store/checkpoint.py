"""The checkpoint: up to where log, queues and index are known to be on disk.

Recovery after a crash trusts what is older and walks what is younger.
"""

import struct
from pathlib import Path

import msgspec

from tanist.errors import ForeignFile
from tanist.protocol.record import crc32
from tanist.store.disk import Disk

FILE_BYTES = 4096
MARGIN_MS = 3_000
"""RocketMQ's safety margin: stamps are taken a little before the bytes they speak of."""

# log_timestamp_ms, queue_timestamp_ms, index_timestamp_ms, master_flushed_to, confirmed_to
_STAMPS = struct.Struct(">qqqqq")
# mark, indexed_to, flushed_to, queue_total (-1: not known), checksum of all before it
_OFFSETS = struct.Struct(">8sqqqi")
_MARK = b"TanistC2"


class Checkpoint(msgspec.Struct, frozen=True):
    """Store times of the last message on disk: in the log, in a queue, in a full file of the key index.

    The index lags on purpose: after a crash RocketMQ deletes every index file that holds a later
    message, and can be told (``messageIndexSafe``) to build the index again from that time on.

    Behind them, where RocketMQ looks at nothing, Tanist keeps two offsets that say the same exactly, and how
    much the queues had by then.
    They do not count once RocketMQ has changed the times before them.
    """

    log_timestamp_ms: int = 0
    queue_timestamp_ms: int = 0
    index_timestamp_ms: int = 0
    master_flushed_to: int = 0
    confirmed_to: int = 0
    """Under a controller: all replicas in step held the log up to here."""
    indexed_to: int | None = None
    """A record begins here, and all before it is on disk, in the log and in the indexes."""
    flushed_to: int | None = None
    """All before this is on disk in the log."""
    queue_total: int | None = None
    """What the next offsets of all queues added up to when they had all before ``indexed_to``."""

    @property
    def recover_from_ms(self) -> int:
        """What was stored up to this time is whole in the log and in the queues."""
        return max(0, min(self.log_timestamp_ms, self.queue_timestamp_ms) - MARGIN_MS)


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    stamps = _STAMPS.pack(
        checkpoint.log_timestamp_ms,
        checkpoint.queue_timestamp_ms,
        checkpoint.index_timestamp_ms,
        checkpoint.master_flushed_to,
        checkpoint.confirmed_to,
    )
    if checkpoint.indexed_to is None or checkpoint.flushed_to is None:
        return stamps + bytes(_OFFSETS.size)
    queue_total = -1 if checkpoint.queue_total is None else checkpoint.queue_total
    marked = _OFFSETS.pack(_MARK, checkpoint.indexed_to, checkpoint.flushed_to, queue_total, 0)[:-4]
    return stamps + marked + struct.pack(">i", crc32(stamps + marked))


def decode_checkpoint(data: bytes) -> Checkpoint:
    stamps = _STAMPS.unpack_from(data)
    mark, indexed_to, flushed_to, queue_total, checksum = _OFFSETS.unpack_from(data, _STAMPS.size)
    if mark != _MARK or checksum != crc32(data[: _STAMPS.size + _OFFSETS.size - 4]):
        return Checkpoint(*stamps)
    return msgspec.structs.replace(
        Checkpoint(*stamps),
        indexed_to=indexed_to,
        flushed_to=flushed_to,
        queue_total=None if queue_total < 0 else queue_total,
    )


def load_checkpoint(disk: Disk, path: Path) -> Checkpoint:
    """Read the checkpoint. Without one nothing is known, so recovery walks the whole log."""
    try:
        data = disk.read(path)
    except FileNotFoundError:
        return Checkpoint()
    if len(data) not in (0, FILE_BYTES):
        raise ForeignFile(
            path,
            f"it has {len(data)} bytes and a checkpoint has {FILE_BYTES}",
            "delete it: the whole log is then walked once",
        )
    return decode_checkpoint(data) if data else Checkpoint()


def save_checkpoint(disk: Disk, path: Path, checkpoint: Checkpoint) -> None:
    data = encode_checkpoint(checkpoint)
    if disk.exists(path):
        with disk.open(path) as file:
            if file.size_bytes == FILE_BYTES:
                # These bytes lie in one sector, which a disk writes whole or not at all.
                file.write(0, data)
                file.sync()
                return
    disk.write_durably(path, data.ljust(FILE_BYTES, b"\0"))
