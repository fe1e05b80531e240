"""Delivers messages that waited: those of delay levels and those with a timer.

It sleeps until the earliest of them is due or another one comes. What is due is delivered in small turns,
so that a great many do not keep clients waiting. While the log takes nothing, nothing is passed over: the
same message is tried again.

Only a master delivers. To decide what is due is the schedules' business; here they are fed and obeyed.
"""

import asyncio
import logging
from collections.abc import Callable

from tanist.broker.delays.delivered import EarlierDeliveries
from tanist.broker.delays.rules import (
    TIMER_QUEUE_ID,
    NotDeliverable,
    cancel_key,
    deliver_by_level,
    deliver_by_timer,
    timer_out_ms,
)
from tanist.broker.queue_look import queue_bounds
from tanist.broker.state import BrokerState
from tanist.errors import DiskFull, NotWritable, ProtocolError, RemoteProtocolError
from tanist.model.java_hash import java_hash
from tanist.model.message import Message
from tanist.model.property_names import REAL_TOPIC, TIMER_DEL_UNIQKEY
from tanist.model.topics import HALF_TOPIC, SCHEDULE_TOPIC, TIMER_TOPIC
from tanist.protocol.properties import find_property
from tanist.protocol.queue_entry import QueueEntry
from tanist.protocol.record import Record, decode_record
from tanist.store.consume_queue import ConsumeQueue
from tanist.store.timer_log import TimerUnit

_log = logging.getLogger(__name__)

_TURN_MESSAGES = 32
_TURN_BYTES = 1 << 20
_TURN_S = 0.005
"""After a crash each of a turn's messages may have to be looked for among many."""
_RETRY_S = 1.0
_LONGEST_WAIT_S = 60.0
"""The wall clock says when a message is due, and somebody may set it while the timer runs."""


class Delivery:
    """The delayed messages of one broker on their way."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._levels = state.delays.levels
        self._timers = state.delays.timers
        self._earlier = EarlierDeliveries(state.store)
        self._wake = asyncio.Event()
        self._refusal = ""
        self._told_count = 0
        self.found_count = 0
        """Messages that an earlier process had delivered and not written down."""
        self.dropped_count = 0
        """Messages that can not be delivered."""
        queue_ids = {queue_id for (topic, queue_id), _ in state.store.queues if topic == SCHEDULE_TOPIC}
        for level in {queue_id + 1 for queue_id in queue_ids}.union(self._levels.levels):
            self._open_level(level)
        self._open_timers()
        _, self._timers_from = queue_bounds(state.store, TIMER_TOPIC, TIMER_QUEUE_ID)

    def _open_level(self, level: int) -> None:
        low, high = queue_bounds(self._state.store, SCHEDULE_TOPIC, level - 1)
        self._levels.on_opened(level, min_offset=low, max_offset=high)

    def _open_timers(self) -> None:
        low, high = queue_bounds(self._state.store, TIMER_TOPIC, TIMER_QUEUE_ID)
        self._timers.on_opened(min_offset=low, max_offset=high)

    def on_indexed(self, topic: str, queue_id: int, _next_offset: int) -> None:
        """A queue has grown."""
        if topic == SCHEDULE_TOPIC:
            self._levels.on_grown(queue_id + 1)
            self._wake.set()
        elif topic == TIMER_TOPIC:
            self._wake.set()

    async def run(self) -> None:
        """Deliver until cancelled."""
        while True:
            self._wake.clear()
            try:
                is_more = self.turn()
            except (NotWritable, DiskFull, OSError) as error:
                if str(error) != self._refusal:
                    self._refusal = str(error)
                    _log.warning("delayed messages wait for the log reason=%s", error)
                await asyncio.sleep(_RETRY_S)
                continue
            self._refusal = ""
            if is_more:
                await asyncio.sleep(0)
            else:
                await self._sleep()

    def turn(self) -> bool:
        """Deliver a few of what is due; whether there is more to do now."""
        now_ms = self._state.clock.now_ms()
        is_more = self._take_timers()
        is_more |= self._deliver_timers(now_ms)
        ready = self._levels.ready_levels(now_ms)
        deadline_s = self._deadline_s()
        for level in ready:
            is_more |= self._deliver_level(level, now_ms, max(1, _TURN_MESSAGES // len(ready)), deadline_s)
        return is_more

    async def _sleep(self) -> None:
        if self.found_count != self._told_count:
            self._told_count = self.found_count
            _log.info("messages had been delivered before the last stop count=%d", self.found_count)
        self._earlier.tell()
        wakes_ms = [
            wake for wake in (self._levels.next_wake_ms, self._timers.next_wake_ms) if wake is not None
        ]
        timeout_s = None
        if wakes_ms:
            timeout_s = min(max(min(wakes_ms) - self._state.clock.now_ms(), 0) / 1000, _LONGEST_WAIT_S)
        try:
            async with asyncio.timeout(timeout_s):
                await self._wake.wait()
        except TimeoutError:
            return

    # Delay levels

    def _deliver_level(self, level: int, now_ms: int, max_count: int, deadline_s: float) -> bool:
        """Deliver the next few messages of a level; whether it may have more that are due."""
        queue = self._state.store.queues.find(SCHEDULE_TOPIC, level - 1)
        if queue is None:
            self._levels.on_looked(level, first_due_ms=None)
            return False
        if self._levels.next_offset(level) < queue.min_offset:
            # Retention has taken what was still to be delivered, as it does on a disk that is full.
            self._open_level(level)
        offset = self._levels.next_offset(level)
        entries = queue.entries(offset, max_count)
        due_count = self._levels.due_count(level, [entry.tags_code for entry in entries], now_ms)
        done_bytes = 0
        for entry in entries[:due_count]:
            if self._is_enough(done_bytes, deadline_s):
                return True
            if (source := self._read(entry)) is not None:
                # What comes before its time may have come as early before.
                due_ms = entry.tags_code if entry.tags_code <= now_ms else source.store_timestamp_ms
                self._deliver(source, deliver_by_level, due_ms)
                done_bytes += entry.size_bytes
            offset += 1
            self._levels.on_delivered(level, offset)
        if due_count < len(entries) or not entries:
            first = entries[due_count].tags_code if entries else None
            self._levels.on_looked(level, first_due_ms=first)
            return False
        return True

    # Timers

    def _take_timers(self) -> bool:
        """Give the timer the next few messages of its queue; whether there are more."""
        queue, timers = self._timer_queue(), self._timers
        if queue is None:
            return False
        if timers.read_to < queue.min_offset:
            self._open_timers()
        for entry in queue.entries(timers.read_to, _TURN_MESSAGES):
            if (record := self._read(entry)) is not None:
                self._take_timer(timers.read_to, record)
            timers.read_to += 1
        return timers.read_to < queue.max_offset

    def _take_timer(self, queue_offset: int, record: Record) -> None:
        properties = bytes(record.properties)
        try:
            slot_ms = timer_out_ms(properties)
        except NotDeliverable as error:
            self._drop(record, error)
            return
        if self._timers.is_settled(queue_offset, slot_ms):
            return
        self._state.delays.timer_log.add(self._unit(record, properties, slot_ms))
        if queue_offset >= self._timers.before.taken_to:
            # What waited before the last stop is taken in again, and is counted once.
            self._state.counters.on_timer_taken(_real_topic(properties))
        if cancelled := find_property(properties, TIMER_DEL_UNIQKEY):
            self._timers.cancel(slot_ms, cancelled)
        self._timers.take(queue_offset, slot_ms)

    def _unit(self, record: Record, properties: bytes, slot_ms: int) -> TimerUnit:
        now_ms, precision_ms = self._state.clock.now_ms(), self._state.settings.precision_ms
        return TimerUnit(
            slot_ms=slot_ms,
            write_ms=now_ms // precision_ms * precision_ms,
            log_offset=record.log_offset,
            size_bytes=record.size_bytes,
            topic_hash=java_hash(_real_topic(properties)),
            is_cancel=find_property(properties, TIMER_DEL_UNIQKEY) is not None,
        )

    def _deliver_timers(self, now_ms: int) -> bool:
        """Deliver the next few timer messages; whether more are due."""
        queue, timers = self._timer_queue(), self._timers
        if queue is None or timers.read_to < self._timers_from:
            # What lay there at the start is read first: a message may be taken back by a later one.
            return False
        done_bytes, deadline_s = 0, self._deadline_s()
        for _ in range(_TURN_MESSAGES):
            found = timers.next_due(now_ms)
            if found is None or self._is_enough(done_bytes, deadline_s):
                return found is not None
            queue_offset, slot_ms = found
            source = self._read(queue.entry(queue_offset)) if queue_offset >= queue.min_offset else None
            if source is None:
                self.dropped_count += 1
                _log.error("timer message is gone with its file queue_offset=%d", queue_offset)
            else:
                self._deliver_timer(source, slot_ms, now_ms)
                done_bytes += source.size_bytes
            timers.on_delivered()
        return True

    def _deliver_timer(self, source: Record, slot_ms: int, now_ms: int) -> None:
        properties = bytes(source.properties)
        is_order = find_property(properties, TIMER_DEL_UNIQKEY) is not None
        cancelled = self._timers.cancelled_in(slot_ms)
        if is_order or (cancelled and cancel_key(properties) in cancelled) or self._earlier.is_rolled(source):
            return
        precision_ms = self._state.settings.precision_ms
        is_written = self._deliver(
            source, lambda one: deliver_by_timer(one, precision_ms=precision_ms, now_ms=now_ms), slot_ms
        )
        if is_written:
            self._state.counters.on_timer_over(_real_topic(properties))

    def _timer_queue(self) -> ConsumeQueue | None:
        return self._state.store.queues.find(TIMER_TOPIC, TIMER_QUEUE_ID)

    # Both

    def _deadline_s(self) -> float:
        return self._state.clock.monotonic_s() + _TURN_S

    def _is_enough(self, done_bytes: int, deadline_s: float) -> bool:
        """Whether a turn has done its share, which is one message at least."""
        is_over = done_bytes > _TURN_BYTES or self._state.clock.monotonic_s() > deadline_s
        return done_bytes > 0 and is_over

    def _read(self, entry: QueueEntry) -> Record | None:
        """The message of an entry; None for a filler, or if the log does not have it any more."""
        log = self._state.store.log
        if entry.is_filler or entry.log_offset < log.log_start:
            return None
        try:
            return decode_record(log.read(entry.log_offset, entry.size_bytes))
        except RemoteProtocolError as error:
            _log.error("delayed message can not be read log_offset=%d reason=%s", entry.log_offset, error)
            return None

    def _deliver(self, source: Record, make: Callable[[Record], Message], due_ms: int) -> bool:
        """Write a message under its own topic, also if that was deleted meanwhile, as RocketMQ does.

        Whether it was written: it may be there already, or can not be delivered.
        Raises NotWritable, DiskFull or OSError if the log takes nothing now.
        """
        try:
            message = make(source)
            if message.topic == HALF_TOPIC:
                raise NotDeliverable("the first half of a transaction can not be delayed")
            if self._earlier.has(source, message, due_ms):
                self.found_count += 1
                return False
            self._state.writer.append(message)
        except (NotDeliverable, ProtocolError) as error:
            self._drop(source, error)
            return False
        return True

    def _drop(self, source: Record, reason: Exception) -> None:
        self.dropped_count += 1
        _log.error("delayed message is dropped log_offset=%d reason=%s", source.log_offset, reason)


def _real_topic(properties: bytes) -> str:
    """The topic that a message with a timer is for."""
    return (find_property(properties, REAL_TOPIC) or b"").decode("utf-8", "replace")
