"""The log: appends beside a bare copy into the same kind of mapped file, and the recovery scan."""

import tempfile
import time
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench.table import Row, interleaved
from tanist.clock import SystemClock
from tanist.model.host import pack_host
from tanist.model.message import Message
from tanist.protocol.properties import encode_properties
from tanist.protocol.record import encode_record
from tanist.store.commitlog import CommitLog
from tanist.store.disk import Disk
from tanist.store.recovery import scan
from tanist.store.segments import Segments

_ROUNDS = 5
_SEGMENT_BYTES = 256 << 20
_SCAN_BYTES = 1 << 30
_HOST = pack_host("127.0.0.1", 10911)
_MESSAGE = Message(
    topic="BenchTopic",
    queue_id=1,
    body=bytes(range(256)) * 4,
    properties=encode_properties({"KEYS": "order-17", "UNIQ_KEY": "A" * 32, "TAGS": "paid", "WAIT": "true"}),
    born_timestamp_ms=1_700_000_000_000,
)
_RECORD = encode_record(_MESSAGE, queue_offset=0, log_offset=0, store_timestamp_ms=1, store_host=_HOST)
_PIECE = _RECORD * 28
"""About what one frame of classic replication carries: 32 KiB."""
_LARGE_PIECE = _RECORD * 896
"""What a slave of ours reads at once while it catches up: about 1 MiB."""


def run() -> list[Row]:
    return [*_appends(), _scan()]


def _appends() -> list[Row]:
    append, copy, raw, raw_copy, large, large_copy = interleaved(
        _ROUNDS,
        lambda: _log_rate(_append),
        lambda: _copy_rate(_RECORD),
        lambda: _log_rate(partial(_append_raw, data=_PIECE)),
        lambda: _copy_rate(_PIECE),
        lambda: _log_rate(partial(_append_raw, data=_LARGE_PIECE)),
        lambda: _copy_rate(_LARGE_PIECE),
    )
    return [
        Row(
            "append, 1 KiB bodies",
            _mb(append),
            f"bare copy {_mb(copy)}",
            append / copy,
            "≥ 150 MB/s",
            append >= 150e6,
        ),
        Row(
            f"append_raw, {len(_PIECE) >> 10} KiB pieces",
            _mb(raw),
            f"bare copy {_mb(raw_copy)}",
            raw / raw_copy,
            "≥ half the copy",
            raw >= 0.5 * raw_copy,
        ),
        Row(
            f"append_raw, {len(_LARGE_PIECE) >> 10} KiB pieces",
            _mb(large),
            f"bare copy {_mb(large_copy)}",
            large / large_copy,
            "≥ half the copy",
            large >= 0.5 * large_copy,
        ),
    ]


def _scan() -> Row:
    with _log(_SCAN_BYTES) as log:
        while log.log_end < _SCAN_BYTES - 2 * len(_RECORD):
            log.append(_MESSAGE)
        view = log.segments[0].view[: log.log_end]

        def check() -> float:
            started = time.perf_counter()
            found = scan(log.segments, 0, flushed_to=0)
            assert found.end == log.log_end
            return found.end / (time.perf_counter() - started)

        def bare() -> float:
            started = time.perf_counter()
            zlib.crc32(view)
            return len(view) / (time.perf_counter() - started)

        ours, peer = interleaved(_ROUNDS, check, bare)
        view.release()
    return Row(
        "recovery scan of 1 GiB",
        _mb(ours),
        f"bare crc32 {_mb(peer)}",
        ours / peer,
        "≥ 300 MB/s",
        ours >= 300e6,
    )


def _append(log: CommitLog) -> int:
    for _ in range((_SEGMENT_BYTES - 8) // len(_RECORD)):
        log.append(_MESSAGE)
    return log.log_end


def _append_raw(log: CommitLog, data: bytes) -> int:
    piece = memoryview(data)
    for _ in range(_SEGMENT_BYTES // len(piece)):
        log.append_raw(log.log_end, piece)
    return log.log_end


def _log_rate(fill: Callable[[CommitLog], int]) -> float:
    """Bytes a second into a fresh file: a page that was never touched costs more than one that was."""
    with _log(_SEGMENT_BYTES) as log:
        started = time.perf_counter()
        return fill(log) / (time.perf_counter() - started)


def _copy_rate(piece: bytes) -> float:
    """The same with nothing but the copy: piece after piece into a fresh mapped file."""
    with _folder() as root, Disk().create(root / "copy") as file:
        file.allocate(0, _SEGMENT_BYTES)
        with file.map(_SEGMENT_BYTES) as mapped:
            size, position = len(piece), 0
            started = time.perf_counter()
            for _ in range(_SEGMENT_BYTES // size):
                mapped[position : position + size] = piece
                position += size
            return position / (time.perf_counter() - started)


@contextmanager
def _log(segment_bytes: int) -> Generator[CommitLog, None, None]:
    with _folder() as root:
        segments = Segments(Disk(), root / "commitlog", segment_bytes)
        segments.open()
        log = CommitLog(segments, store_host=_HOST, max_body_bytes=4 << 20, clock=SystemClock())
        yield log
        log.close()


@contextmanager
def _folder() -> Generator[Path, None, None]:
    with tempfile.TemporaryDirectory(prefix="tanist-bench-") as root:
        yield Path(root)


def _mb(bytes_a_second: float) -> str:
    return f"{bytes_a_second / 1e6:.0f} MB/s"
