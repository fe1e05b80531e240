"""Finding a time in a queue of ten million messages: how long it takes, and how often it reads.

The log is written as a slave writes what its master sends, and indexed by the store itself; only its records
are made here, from one that is changed in three places, or it would take minutes to write them. All of it is
in memory when it is read, as the end of a log that is in use is.
"""

import random
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from bench.table import Row
from tanist.model.host import pack_host
from tanist.model.message import Message
from tanist.protocol.record import encode_record
from tanist.store.commitlog import CommitLog
from tanist.store.consume_queue import ConsumeQueue
from tanist.store.settings import StoreSettings
from tanist.store.store import MessageStore
from tanist.store.time_lookup import Boundary

_TOPIC = "BenchTopic"
_COUNT = 10_000_000
_BLOCK = 10_000
_LOOKUPS = 5_000
_SOON_MS = 1.0
_MOST_PROBES = _COUNT.bit_length() + 1
_FIRST_MS = 1_790_000_000_000
_STEP_MS = 7
_TIMES_A_STEP = 3
"""So many messages in a row are stored in the same millisecond."""
# What differs from record to record, and where it stands.
_OFFSETS = struct.Struct(">qq")
_OFFSETS_POSITION = 20
_STORE_TIME = struct.Struct(">q")
_STORE_TIME_POSITION = 56


def run() -> list[Row]:
    record = encode_record(
        Message(topic=_TOPIC, queue_id=0, body=b"x" * 16, properties=b"WAIT\x01true\x02"),
        queue_offset=0,
        log_offset=0,
        store_timestamp_ms=_FIRST_MS,
        store_host=pack_host("127.0.0.1", 10911),
    )
    # One file of the log, so that no record has to make room for a file's end.
    log_bytes = (len(record) * _COUNT // 512 + 2) * 512
    with (
        tempfile.TemporaryDirectory(prefix="tanist-bench-") as root,
        MessageStore.open(Path(root), StoreSettings(mapped_file_size_commit_log=log_bytes)) as store,
    ):
        _fill(store, record)
        chance = random.Random(9)
        wanted = [chance.randrange(-1000, _COUNT + 1000) for _ in range(_LOOKUPS)]
        reads = _count_reads(store, wanted[0])
        took_ms = sorted(_look_up(store, number) for number in wanted)
    p50, p99 = statistics.median(took_ms), took_ms[len(took_ms) * 99 // 100]
    return [
        Row(
            f"lookup by time among {_COUNT:,} messages of a queue, p50",
            f"{p50:.3f} ms",
            "",
            None,
            f"< {_SOON_MS:g} ms",
            p50 < _SOON_MS,
        ),
        Row("  p99", f"{p99:.3f} ms", "", None, f"< {_SOON_MS:g} ms", p99 < _SOON_MS),
        Row(
            "  reads: queue entries of 20 bytes, and as many beginnings of records",
            f"{reads}",
            "",
            None,
            f"≤ {_MOST_PROBES}",
            reads <= _MOST_PROBES,
        ),
    ]


def _time_of(number: int) -> int:
    return _FIRST_MS + number // _TIMES_A_STEP * _STEP_MS


def _fill(store: MessageStore, record: bytes) -> None:
    size = len(record)
    block = bytearray(record * _BLOCK)
    put_offsets, put_time = _OFFSETS.pack_into, _STORE_TIME.pack_into
    for first in range(0, _COUNT, _BLOCK):
        for number in range(first, first + _BLOCK):
            position = (number - first) * size
            put_offsets(block, position + _OFFSETS_POSITION, number, number * size)
            put_time(block, position + _STORE_TIME_POSITION, _time_of(number))
        store.append_raw(first * size, bytes(block))
        store.dispatch()
        if first % (_COUNT // 10) == 0:
            print(f"  {first:,} of {_COUNT:,} messages written", file=sys.stderr)
    store.queues.write()
    queue = store.queues.find(_TOPIC, 0)
    assert queue is not None
    assert queue.max_offset == _COUNT


def _look_up(store: MessageStore, number: int) -> float:
    """The milliseconds it takes to find a message by its time."""
    wanted_ms = _time_of(number)
    began_s = time.perf_counter()
    found = store.offset_at_time(_TOPIC, 0, wanted_ms, Boundary.LOWER)
    took_ms = (time.perf_counter() - began_s) * 1e3
    first = number - number % _TIMES_A_STEP
    assert found == min(max(first, 0), _COUNT), (found, first)
    return took_ms


def _count_reads(store: MessageStore, number: int) -> int:
    """How many entries, and as many records, one lookup reads."""
    counts = {"entries": 0, "records": 0}

    def counted(name: str, read: Callable[..., object]) -> Callable[..., object]:
        def count_and_read(*arguments: object) -> object:
            counts[name] += 1
            return read(*arguments)

        return count_and_read

    with (
        patch.object(ConsumeQueue, "entry", counted("entries", ConsumeQueue.entry)),
        patch.object(CommitLog, "read_ahead", counted("records", CommitLog.read_ahead)),
    ):
        _look_up(store, number)
    assert counts["entries"] == counts["records"]
    return counts["entries"]
