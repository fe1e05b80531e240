"""What C reads of a log reaches the indexes as what Python reads of it, whatever the log holds."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.errors import CorruptRecord
from tanist.model.message import Message
from tanist.model.topics import SCHEDULE_TOPIC
from tanist.protocol.key_index import Keyed, key_hash
from tanist.protocol.record import encode_blank, encode_record
from tanist.store import dispatch
from tanist.store.dispatch import BATCH_RECORDS, Dispatcher

pytestmark = pytest.mark.partner("native")

_BASE = 1 << 40
_LEVELS = (1_000, 5_000, 10_000)

_text = st.text("ab 1ß\x03\U0001f600", max_size=8) | st.sampled_from(
    ["1", "2", "99", "0" * 12, "123456789x", "1234567890x"]
)
_names = st.sampled_from(["TAGS", "KEYS", "UNIQ_KEY", "DELAY", "DELAYX", ""])
_segments = st.tuples(_names, st.sampled_from(["\x01", "", "\x01\x01"]), _text).map("".join)
_properties = st.lists(_segments, max_size=6).map(lambda parts: "\x02".join(parts).encode())
_messages = st.builds(
    Message,
    topic=st.sampled_from(["T", "TopicA", SCHEDULE_TOPIC, "t" * 127, "t" * 128, "Größe", "..", "a/b", "."]),
    queue_id=st.sampled_from([0, 1, 2, -1]),
    body=st.binary(max_size=30),
    properties=_properties.filter(lambda raw: 0 not in raw),
    sys_flag=st.sampled_from([0, 0, 0, 1, 4, 8, 12]),
    born_host=st.sampled_from([bytes(8), bytes(20)]),
)
_plain = st.builds(
    Message,
    topic=st.sampled_from(["T", "TopicA", SCHEDULE_TOPIC]),
    queue_id=st.integers(0, 2),
    body=st.binary(max_size=30),
    properties=st.sampled_from([b"", b"TAGS\x01a\x02KEYS\x01k l\x02UNIQ_KEY\x01U1", b"DELAY\x012\x02"]),
)
_steps = st.sampled_from([1, 1, 1, 1, 0, 3, -2])
_stamps = st.integers(0, 1 << 45) | st.sampled_from([-1, (1 << 63) - 1])
_logs = st.lists(st.tuples(_messages | _plain, _steps, _stamps, st.sampled_from([8, 8, 20])), max_size=12)
_changes = st.lists(st.tuples(st.integers(0, 1 << 12), st.integers(0, 255)), max_size=2)


class _Indexes:
    """Stands in for the queues and the key index, and keeps what they are told."""

    def __init__(self) -> None:
        self.queued: list[tuple[object, ...]] = []
        self.keyed: list[Keyed] = []

    def append(self, topic: str, queue_id: int, queue_offset: int, data: bytes, indexed_to: int) -> None:
        self.queued.append((topic, queue_id, queue_offset, bytes(data), indexed_to))

    def put(self, topic: str, keys: Sequence[str], log_offset: int, store_timestamp_ms: int) -> None:
        self.extend([(key_hash(topic, key), log_offset, store_timestamp_ms) for key in keys])

    def extend(self, keyed: Sequence[Keyed]) -> None:
        self.keyed += keyed

    def write_many(self) -> None:
        pass


def _log_of(entries: Sequence[tuple[Message, int, int, int]]) -> bytes:
    data = b""
    queue_offsets: dict[tuple[str, int], int] = {}
    for message, step, stamp_ms, host_bytes in entries:
        queue = (message.topic, message.queue_id)
        queue_offsets[queue] = queue_offsets.get(queue, 7) + step
        data += encode_record(
            message,
            queue_offset=queue_offsets[queue],
            log_offset=_BASE + len(data),
            store_timestamp_ms=stamp_ms,
            store_host=bytes(host_bytes),
        )
    return data


def _outcome(file: bytes, log_end: int) -> tuple[object, ...]:
    """Where dispatch came to, what the indexes were told, and what was wrong."""
    segment = SimpleNamespace(
        view=memoryview(file), start=_BASE, end=_BASE + len(file), path=Path("segment"), size_bytes=len(file)
    )

    def at(_log_offset: int) -> SimpleNamespace:
        return segment

    segments = SimpleNamespace(at=at)
    log = SimpleNamespace(log_start=_BASE, log_end=_BASE + log_end, segments=segments)
    indexes = _Indexes()
    either = cast("Any", indexes)
    dispatcher = Dispatcher(cast("Any", log), either, either, delay_levels=_LEVELS)
    wrong = ""
    count = 0
    try:
        count = dispatcher.run()
    except CorruptRecord as error:
        wrong = str(error)
    told = (indexes.queued, indexes.keyed, dispatcher.last_timestamp_ms)
    return dispatcher.dispatched_to, count, wrong, *told


def _assert_alike(file: bytes, log_end: int) -> tuple[object, ...]:
    quick = _outcome(file, log_end)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatch, "native", None)
        assert _outcome(file, log_end) == quick
    return quick


@given(_logs, _changes, st.integers(0, 40), st.integers(-60, 60))
def test_a_log_is_indexed_alike(
    entries: list[tuple[Message, int, int, int]], changes: list[tuple[int, int]], blank: int, cut: int
) -> None:
    file = bytearray(_log_of(entries))
    file += encode_blank(blank + 8).ljust(blank + 8, b"\0")
    for position, value in changes:
        file[position % len(file)] = value
    _assert_alike(bytes(file), len(file) + min(cut, 0))


@given(st.binary(max_size=300), st.integers(0, 300))
def test_whatever_bytes_there_are_they_are_read_alike(data: bytes, size_bytes: int) -> None:
    size = max(size_bytes, 91)
    record = bytearray(_log_of([(Message(topic="T", queue_id=0, body=bytes(size)), 1, 5, 8)]))
    record[40 : 40 + len(data)] = data[: len(record) - 40]
    _assert_alike(bytes(record), len(record))


def test_plain_records_are_all_read_in_c() -> None:
    native = pytest.importorskip("tanist.protocol._native")
    properties = b"TAGS\x01a\x02KEYS\x01k l\x02UNIQ_KEY\x01U1\x02DELAY\x012"
    entries = [
        (Message(topic=topic, queue_id=number % 3, body=b"x", properties=properties), 1, 5, 8)
        for number in range(30)
        for topic in ("T", SCHEDULE_TOPIC)
    ]
    file = _log_of(entries)
    stopped_at, count, runs, keyed, stamp_ms = native.walk_records(file, 0, len(file), _BASE, 100, _LEVELS)
    assert (stopped_at, count, len(runs), len(keyed), stamp_ms) == (len(file), 60, 6, 180, 5)
    _assert_alike(file, len(file))


def test_more_queues_and_records_than_one_walk_takes_are_indexed_alike() -> None:
    messages = [Message(topic=f"T{number % 1500}", queue_id=0, body=b"") for number in range(3_000)]
    file = _log_of([(message, 1, 5, 8) for message in messages])
    outcome = _assert_alike(file, len(file))
    assert outcome[:2] == (_BASE + len(file), 3_000)
    assert len(messages) > 2 * BATCH_RECORDS


@pytest.mark.parametrize(
    ("start", "end", "log_offset", "max_count"),
    [(-1, 10, 0, 1), (0, -1, 0, 1), (0, 10, -1, 1), (0, 10, 0, 0), (1 << 70, 10, 0, 1)],
)
def test_a_place_that_no_view_has_is_refused(start: int, end: int, log_offset: int, max_count: int) -> None:
    native = pytest.importorskip("tanist.protocol._native")
    with pytest.raises(ValueError, match="out of range"):
        native.walk_records(bytes(10), start, end, log_offset, max_count, ())


def test_a_walk_never_leaves_its_view() -> None:
    native = pytest.importorskip("tanist.protocol._native")
    file = _log_of([(Message(topic="T", queue_id=0, body=b"x"), 1, 5, 8)])
    assert native.walk_records(file, 0, 1 << 50, _BASE, 5, ())[:2] == (len(file), 1)
    for end in range(len(file)):
        assert native.walk_records(file, 0, end, _BASE, 5, ()) is None
        assert native.walk_records(file[:end], 0, len(file), _BASE, 5, ()) is None
    assert native.walk_records(file, len(file) + 1, len(file) + 500, _BASE, 5, ()) is None
