"""RocketMQ's timer log and timer wheel, written so that RocketMQ can go on with a store.

Tanist finds the messages that wait in the timer's queue, so it never reads these files: it begins them
anew at every start. RocketMQ finds them only here.

    timerlog/<position>   a unit of 52 bytes for every message that the timer took, in that order
    timerwheel            a slot of 32 bytes for every second (``timerPrecisionMs``): its first and last unit

A unit leads to the one before it in the same slot. Units never cross a file; a blank ends it. The wheel
reaches 7 days ahead, or less with shorter slots. What is due later is marked to be stored once more by
RocketMQ when it gets there; if Tanist gets there first, the files do not lead to it any more.
"""

import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tanist.model.integers import INT64_MAX
from tanist.store.disk import Disk, File
from tanist.store.segment import segment_name

# size, previous unit of the slot, magic, write_ms, delay_ms, log_offset, size_bytes, hash of the topic, 0
_UNIT = struct.Struct(">iqiqiqiiq")
# slot number, first unit, last unit, count, magic
_SLOT = struct.Struct(">qqqii")
# bytes left in the file, 0, magic
_BLANK = struct.Struct(">iqi")
_BLANK_MAGIC = -875286124
_MAGIC = 1
_MAGIC_ROLL = 2
_MAGIC_CANCEL = 4
_NO_UNIT = -1

_SLOTS_AHEAD = 7 * 86_400 - 60
_SLOT_COUNT = 2 * 7 * 86_400
_WHEEL_BYTES = _SLOT_COUNT * _SLOT.size

MIN_FILE_BYTES = _UNIT.size + _BLANK.size


@dataclass(frozen=True, slots=True)
class TimerUnit:
    """One message that the timer has taken."""

    slot_ms: int
    write_ms: int
    log_offset: int
    size_bytes: int
    topic_hash: int
    is_cancel: bool


@dataclass(slots=True)
class _Slot:
    first: int = _NO_UNIT
    last: int = _NO_UNIT
    count: int = 0


@dataclass(slots=True)
class _File:
    """A file of the timer log: what is not written yet of it, and the last slot that needs it."""

    start: int
    fresh: bytearray = field(default_factory=bytearray)
    written_bytes: int = 0
    last_slot_ms: int = 0

    @property
    def end(self) -> int:
        return self.start + self.written_bytes + len(self.fresh)


class TimerLog:
    """Units are added on the store's thread and written on any, by one save at a time."""

    def __init__(self, disk: Disk, root: Path, *, file_bytes: int, precision_ms: int) -> None:
        self._disk = disk
        self._folder = root / "timerlog"
        self._wheel_path = root / "timerwheel"
        self._file_bytes = file_bytes
        self._precision_ms = precision_ms
        self._added: deque[TimerUnit] = deque()
        self._files: list[_File] = []
        self._dirty_slots: dict[int, _Slot] = {}
        self._wheel: File | None = None
        self._first_rolled_ms = INT64_MAX
        self.end = 0
        """One past the last unit that is on disk."""

    def clear(self) -> None:
        """Begin anew."""
        for name in self._disk.names(self._folder):
            self._disk.remove(self._folder / name)
        self._disk.remove(self._wheel_path)

    def close(self) -> None:
        if self._wheel is not None:
            self._wheel.close()
            self._wheel = None

    def add(self, unit: TimerUnit) -> None:
        """Remember a message. It is written with the next save."""
        self._added.append(unit)

    def leads_to_all(self, read_ms: int) -> bool:
        """Whether RocketMQ finds every message of the slots from ``read_ms`` on in what is written."""
        return read_ms <= self._first_rolled_ms

    def start_save(self, read_ms: int) -> Callable[[], None]:
        """The disk's part of writing what was added. Slots before ``read_ms`` are not needed any more."""
        count = len(self._added)

        def finish() -> None:
            for _ in range(count):
                self._put(self._added[0])
                self._added.popleft()
            self._write()
            self._drop_files(read_ms)

        return finish

    def _put(self, unit: TimerUnit) -> None:
        latest_ms = unit.write_ms + _SLOTS_AHEAD * self._precision_ms
        slot_ms = min(unit.slot_ms, latest_ms)
        magic = _MAGIC | (_MAGIC_CANCEL if unit.is_cancel else 0)
        if slot_ms < unit.slot_ms:
            magic |= _MAGIC_ROLL
            self._first_rolled_ms = min(self._first_rolled_ms, slot_ms)
        # A message that is late was written in its slot, so to say: the difference has 32 bits.
        write_ms = min(unit.write_ms, slot_ms)
        slot = self._slot(slot_ms)
        file = self._last_file()
        position = file.end
        file.fresh += _UNIT.pack(
            _UNIT.size,
            slot.last,
            magic,
            write_ms,
            slot_ms - write_ms,
            unit.log_offset,
            unit.size_bytes,
            unit.topic_hash,
            0,
        )
        file.last_slot_ms = max(file.last_slot_ms, slot_ms)
        slot.first = position if slot.first == _NO_UNIT else slot.first
        slot.last = position
        slot.count += -1 if unit.is_cancel else 1

    def _last_file(self) -> _File:
        """The file that takes the next unit; a full one is ended by a blank."""
        if not self._files:
            self._files.append(_File(0))
        file = self._files[-1]
        room_bytes = file.start + self._file_bytes - file.end
        if room_bytes < MIN_FILE_BYTES:
            file.fresh += _BLANK.pack(room_bytes, 0, _BLANK_MAGIC)
            self._files.append(_File(file.start + self._file_bytes))
        return self._files[-1]

    def _slot(self, slot_ms: int) -> _Slot:
        """The slot of a time, of which the wheel may know already."""
        number = slot_ms // self._precision_ms
        slot = self._dirty_slots.get(number)
        if slot is None:
            slot = self._dirty_slots[number] = self._read_slot(number)
        return slot

    def _read_slot(self, number: int) -> _Slot:
        data = self._open_wheel().read(number % _SLOT_COUNT * _SLOT.size, _SLOT.size)
        found, first, last, count, _ = _SLOT.unpack(data)
        return _Slot(first, last, count) if found == number else _Slot()

    def _open_wheel(self) -> File:
        if self._wheel is None:
            is_there = self._disk.exists(self._wheel_path)
            self._wheel = (
                self._disk.open(self._wheel_path) if is_there else self._disk.create(self._wheel_path)
            )
            self._wheel.resize(_WHEEL_BYTES)
        return self._wheel

    def _write(self) -> None:
        """Units before the slots that lead to them. What a full disk refuses is written the next time."""
        for log_file in self._files:
            if log_file.fresh:
                self._write_units(log_file)
        if self._dirty_slots:
            self._write_slots()
        if self._files:
            self.end = self._files[-1].end

    def _write_units(self, log_file: _File) -> None:
        path = self._folder / segment_name(log_file.start)
        self._disk.make_dir(self._folder)
        is_there = self._disk.exists(path)
        with self._disk.open(path) if is_there else self._disk.create(path) as file:
            file.resize(self._file_bytes)
            file.write(log_file.written_bytes, bytes(log_file.fresh))
            file.sync()
        log_file.written_bytes += len(log_file.fresh)
        log_file.fresh.clear()

    def _write_slots(self) -> None:
        wheel = self._open_wheel()
        for number, slot in self._dirty_slots.items():
            data = _SLOT.pack(number, slot.first, slot.last, slot.count, 0)
            wheel.write(number % _SLOT_COUNT * _SLOT.size, data)
        wheel.sync()
        self._disk.sync_dirs()
        self._dirty_slots.clear()

    def _drop_files(self, read_ms: int) -> None:
        """Delete the files all of whose messages are delivered; the last one stays."""
        while len(self._files) > 1 and self._files[0].last_slot_ms < read_ms:
            self._disk.remove(self._folder / segment_name(self._files.pop(0).start))
