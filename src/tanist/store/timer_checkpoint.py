"""How far the timer is, in RocketMQ's ``config/timercheck``.

RocketMQ's seven numbers tell it what it has to read again from the timer's queue, and what it finds in
its timer log (``timer_log.py``). Behind them, where RocketMQ looks at nothing, Tanist keeps what it needs
for itself. That does not count any more once RocketMQ has changed the numbers before it.
"""

import struct
from pathlib import Path

from tanist.errors import ForeignFile
from tanist.model.timer_progress import TimerProgress
from tanist.protocol.bodies.sync import TimerCheckPoint, decode_timer_check_point, encode_timer_check_point
from tanist.protocol.record import crc32
from tanist.store.disk import Disk

FILE_BYTES = 4096

_POINT_BYTES = 56
# mark, read_ms, taken_to, first_waiting, checksum of all before it
_OWN = struct.Struct(">8sqqqi")
_MARK = b"TanistTC"
_CRC_BYTES = 4


class TimerCheckpointFile:
    """The file under one store."""

    def __init__(self, disk: Disk, root: Path) -> None:
        self._disk = disk
        self._path = root / "config" / "timercheck"

    def load(self) -> tuple[TimerProgress, TimerCheckPoint | None]:
        """Where the timer was, and RocketMQ's numbers; without a file it knows of no message yet.

        RocketMQ does not say which message is the first that waits: it may be any.
        """
        try:
            data = self._disk.read(self._path)
        except FileNotFoundError:
            return TimerProgress(), None
        if len(data) != FILE_BYTES:
            raise ForeignFile(
                self._path,
                f"it has {len(data)} bytes and a timer's checkpoint has {FILE_BYTES}",
                "restore it from a replica or a backup, or delete it: what was delivered is then looked "
                "for in the log",
            )
        point = decode_timer_check_point(data[:_POINT_BYTES])
        own_end = _POINT_BYTES + _OWN.size
        mark, read_ms, taken_to, first_waiting, checksum = _OWN.unpack_from(data, _POINT_BYTES)
        if mark == _MARK and checksum == crc32(data[: own_end - _CRC_BYTES]):
            own = TimerProgress(read_ms=read_ms, taken_to=taken_to, first_waiting=first_waiting)
            return own, point
        taken_to = min(point.last_timer_queue_offset, point.master_timer_queue_offset)
        return TimerProgress(read_ms=point.last_read_time_ms, taken_to=taken_to), point

    def save(self, progress: TimerProgress, point: TimerCheckPoint) -> None:
        """Replace both as one step."""
        own = _OWN.pack(_MARK, progress.read_ms, progress.taken_to, progress.first_waiting, 0)[:-_CRC_BYTES]
        data = encode_timer_check_point(point) + own
        data += struct.pack(">i", crc32(data))
        self._disk.make_dir(self._path.parent)
        self._disk.write_durably(self._path, data.ljust(FILE_BYTES, b"\0"))
