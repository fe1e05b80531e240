"""The store against a list: whatever is done to both, in whatever order, they tell the same."""

import shutil
import tempfile
from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tanist.model.message import TRANSACTION_MASK, Appended, Message, SysFlag
from tanist.protocol.record import check_record
from tanist.store import Boundary, MessageStore
from tanist.store.checkpoints import PendingCheckpoint
from tests.support.clocks import FakeClock
from tests.support.messages import SMALL, TOPIC, kill, make_message, open_store

SETTINGS = msgspec.structs.replace(
    SMALL, mapped_file_size_consume_queue=3 * 20, max_index_num=7, file_reserved_time=0
)
FAR_FUTURE_MS = 10_000_000_000_000
QUEUE_IDS = (0, 1, 2)
# The first two have one hash.
KEYS = ("Aa", "BB", "key")
QUEUED = (0, SysFlag.COMMIT)


@dataclass(frozen=True, slots=True)
class _Stored:
    message: Message
    keys: tuple[str, ...]
    at: Appended

    @property
    def is_queued(self) -> bool:
        return self.message.sys_flag & TRANSACTION_MASK in QUEUED


@st.composite
def _drafts(draw: st.DrawFn) -> tuple[Message, tuple[str, ...]]:
    keys = draw(st.lists(st.sampled_from(KEYS), max_size=2))
    message = make_message(
        draw(st.integers(0, 9)),
        queue_id=draw(st.sampled_from(QUEUE_IDS)),
        body_bytes=draw(st.sampled_from((0, 400, 1200))),
        keys=" ".join(keys),
        sys_flag=draw(st.sampled_from((0, 0, 0, SysFlag.PREPARED, SysFlag.COMMIT, SysFlag.ROLLBACK))),
    )
    return message, tuple(keys)


class StoreMachine(RuleBasedStateMachine):
    """Does things to a store and to a list of what it must hold."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="store-"))
        self.clock = FakeClock(now_ms=FAR_FUTURE_MS)
        self.stored: list[_Stored] = []
        """What the log holds, in its order."""
        self.next_offsets: dict[int, int] = defaultdict(int)
        self.dispatched_to = 0
        self.pending: PendingCheckpoint | None = None
        self.store: MessageStore

    @initialize()
    def open(self) -> None:
        self.pending = None
        self.store = open_store(self.root, SETTINGS, clock=self.clock)
        self.dispatched_to = self.store.log.log_end

    def teardown(self) -> None:
        kill(self.store)
        shutil.rmtree(self.root)

    # What is done

    @rule(draft=_drafts(), elapsed_ms=st.sampled_from((0, 1, 700)))
    def append(self, draft: tuple[Message, tuple[str, ...]], elapsed_ms: int) -> None:
        self.clock.advance_ms(elapsed_ms)
        self._landed([draft], [self.store.append(draft[0])])

    @rule()
    def dispatch(self) -> None:
        undone = [stored for stored in self.stored if stored.at.log_offset >= self.dispatched_to]
        assert self.store.dispatch() == len(undone)
        self.dispatched_to = self.store.log.log_end

    @precondition(lambda self: self.stored)
    @rule(share=st.floats(0, 1))
    def dispatch_a_part(self, share: float) -> None:
        limit = int(share * self.store.log.log_end)
        self.store.dispatch(limit)
        whole = [stored.at.end for stored in self.stored if stored.at.end <= limit]
        # The blank at the end of a file may be passed too.
        reached = self.store.dispatcher.dispatched_to
        assert max(self.dispatched_to, *whole, 0) <= reached <= max(self.dispatched_to, limit)
        self.dispatched_to = reached

    @rule()
    def flush(self) -> None:
        assert self.store.flush() == self.store.log.log_end

    @rule()
    def checkpoint(self) -> None:
        self.store.checkpoint()
        assert self.store.log.flushed_to == self.store.log.log_end

    @rule()
    def start_checkpoint(self) -> None:
        self.pending = self.store.start_checkpoint()

    @precondition(lambda self: self.pending is not None)
    @rule()
    def finish_checkpoint(self) -> None:
        assert self.pending is not None
        self.pending.finish()
        self.pending = None

    @precondition(lambda self: self.stored)
    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        kept = int(share * len(self.stored))
        cut = self.stored[kept:]
        log_offset = cut[0].at.log_offset if cut else self.store.log.log_end
        self.store.truncate_to(log_offset)
        for stored in reversed(cut):
            if stored.is_queued:
                self.next_offsets[stored.message.queue_id] = stored.at.queue_offset
        del self.stored[kept:]
        assert self.store.log.log_end == self.store.log.flushed_to == log_offset
        self.dispatched_to = log_offset

    @rule()
    def close_and_open(self) -> None:
        self.store.close()
        self.open()
        assert self.store.recovery.was_closed
        assert self.store.recovery.cleared_bytes == 0

    @rule()
    def kill_and_open(self) -> None:
        kill(self.store)
        self.open()
        assert not self.store.recovery.was_closed
        assert self.store.recovery.cleared_bytes == 0

    @rule()
    def clean(self) -> None:
        settled_to = min(self.store.log.flushed_to, self.dispatched_to)
        last_start = self.store.log.segments[-1].start if len(self.store.log.segments) else 0
        log_start = self.store.log.log_start
        count = self.store.clean(is_asked=True)
        assert self.store.log.log_start == log_start + count * SETTINGS.mapped_file_size_commit_log
        assert self.store.log.log_start <= max(log_start, min(settled_to, last_start))
        self.stored = [stored for stored in self.stored if stored.at.log_offset >= self.store.log.log_start]

    # What must hold

    @invariant()
    def the_ends_are_in_order(self) -> None:
        log = self.store.log
        assert log.log_start <= log.flushed_to <= log.log_end
        assert log.log_start <= self.store.dispatcher.dispatched_to <= log.log_end

    @invariant()
    def the_log_can_be_walked(self) -> None:
        found: list[int] = []
        for segment in self.store.log.segments:
            position = 0
            while segment.start + position < min(self.store.log.log_end, segment.end):
                size = check_record(segment.view, position, log_offset=segment.start + position)
                if size:
                    found.append(segment.start + position)
                position = position + size if size else segment.size_bytes
            assert not any(segment.view[max(self.store.log.log_end - segment.start, 0) :])
        assert found == [stored.at.log_offset for stored in self.stored]

    @invariant()
    def every_queue_has_its_messages(self) -> None:
        for queue_id in QUEUE_IDS:
            expected = self._queued(queue_id)
            queue = self.store.queues.find(TOPIC, queue_id)
            if queue is None:
                assert not expected
                continue
            records = self.store.records(TOPIC, queue_id, queue.min_offset, 1000)
            assert [(record.queue_offset, record.log_offset) for record in records] == [
                (stored.at.queue_offset, stored.at.log_offset) for stored in expected
            ]
            assert [bytes(record.body) for record in records] == [stored.message.body for stored in expected]
            assert queue.max_offset - queue.min_offset == len(expected)

    @invariant()
    def every_key_finds_its_messages(self) -> None:
        for key in KEYS:
            found = [record.log_offset for record in self.store.find_by_key(TOPIC, key, max_count=1000)]
            assert found == [
                stored.at.log_offset
                for stored in reversed(self._dispatched())
                if key in stored.keys and stored.message.sys_flag & TRANSACTION_MASK != SysFlag.ROLLBACK
            ]

    @invariant()
    def every_time_finds_its_offset(self) -> None:
        expected = self._queued(0)
        if expected:
            times = [stored.at.store_timestamp_ms for stored in expected]
            first = expected[0].at.queue_offset
            for time_ms in {times[0] - 1, times[0], times[len(times) // 2], times[-1] + 1}:
                upper = max(first, first + bisect_right(times, time_ms) - 1)
                assert self.store.offset_at_time(TOPIC, 0, time_ms) == first + bisect_left(times, time_ms)
                assert self.store.offset_at_time(TOPIC, 0, time_ms, Boundary.UPPER) == upper

    # Inside

    def _landed(self, drafts: list[tuple[Message, tuple[str, ...]]], appended: list[Appended]) -> None:
        for (message, keys), at in zip(drafts, appended, strict=True):
            stored = _Stored(message, keys, at)
            if stored.is_queued:
                assert at.queue_offset == self.next_offsets[message.queue_id]
                self.next_offsets[message.queue_id] += 1
            self.stored.append(stored)

    def _dispatched(self) -> list[_Stored]:
        return [stored for stored in self.stored if stored.at.log_offset < self.dispatched_to]

    def _queued(self, queue_id: int) -> list[_Stored]:
        return [
            stored
            for stored in self._dispatched()
            if stored.message.queue_id == queue_id and stored.is_queued
        ]


TestStore = StoreMachine.TestCase
TestStore.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
