"""Carries transactions out: takes halves in, ends them, asks producers, and notes what is done with.

All state lies in the half topic and the op topic, and in one group's offsets in both, as RocketMQ keeps
it; here it is only read back and carried on. What a crash can take is a note that a half is done with,
because notes are gathered for seconds. A commit whose note was lost is found again by the message's
unique id and the place of its half, which the committed message carries: it is not delivered twice.
"""

import asyncio
import logging
from collections.abc import Iterator

from tanist.broker.state import BrokerState
from tanist.broker.transactions.asking import Asking
from tanist.broker.transactions.half_queue import HalfQueue
from tanist.broker.transactions.halves import HALF_QUEUE_ID, Half, Rules
from tanist.broker.transactions.open_transactions import HalfPlace, OpenTransactions
from tanist.broker.transactions.ops import OpNotes, named_offsets
from tanist.broker.transactions.progress import TransactionProgress
from tanist.broker.writer import told_to_client
from tanist.errors import DiskFull, MQError, NotWritable, ProtocolError, ResponseError
from tanist.model.message import Appended, SysFlag
from tanist.model.topics import HALF_TOPIC
from tanist.protocol.codes import ResponseCode
from tanist.protocol.headers.transaction import EndTransactionRequest

_log = logging.getLogger(__name__)

_TAKEN_A_TURN = 512
_CHECKS_A_TURN = 64
_CHECKED_BYTES_A_TURN = 1 << 20
"""Others are served between two turns: asking about many large messages must not hold them up."""
_RETRY_MS = 1_000
_LONGEST_SLEEP_MS = 60_000
"""Times are the wall clock's, which may be set while we sleep."""
_NEVER_MS = 1 << 62


class TransactionKeeper:
    """The transactions of one broker, from ``open`` to ``close``."""

    def __init__(self, state: BrokerState) -> None:
        settings = state.settings
        self._state = state
        self._halves = HalfQueue(state.store)
        self._notes = OpNotes(
            max_bytes=settings.transaction_op_msg_max_size,
            interval_ms=settings.transaction_op_batch_interval,
        )
        self._open = OpenTransactions()
        self._inherited_to = 0
        """A former process may have committed halves before this without noting it."""
        self._first_check_ms = 0
        self._progress = TransactionProgress(state.offsets)
        self._woken = asyncio.Event()
        self._asleep_to_ms = 0
        self._asking = Asking(state)

    @property
    def _rules(self) -> Rules:
        """As the settings are now."""
        settings = self._state.settings
        return Rules(
            timeout_ms=settings.transaction_time_out,
            interval_ms=settings.transaction_check_interval,
            max_checks=settings.transaction_check_max,
            reserved_hours=self._state.store.settings.file_reserved_time,
        )

    # From the outside

    def open(self) -> None:
        """Read back where a former process left off. Halves are then taken in turn by turn."""
        low, high = self._halves.bounds
        taken_to = min(max(self._progress.half_offset, low), high)
        self._open = OpenTransactions(taken_to=taken_to, ended=self._read_notes())
        self._inherited_to = high
        # Producers need a while to come back after a restart: who is not there can not be asked.
        self._first_check_ms = self._state.clock.now_ms() + self._rules.interval_ms
        self._state.half_count = self._half_count

    async def run(self) -> None:
        """Do what is due, until cancelled."""
        while True:
            delay_ms = self.turn()
            self._asleep_to_ms = _NEVER_MS if delay_ms is None else self._state.clock.now_ms() + delay_ms
            try:
                async with asyncio.timeout(None if delay_ms is None else delay_ms / 1000):
                    await self._woken.wait()
            except TimeoutError:
                pass
            finally:
                self._asleep_to_ms = 0
            self._woken.clear()

    def close(self) -> None:
        """Note all that is done with, while the log still takes it. What fails is found again later."""
        try:
            while self._notes.due_ms is not None:
                self._write_note(self._state.clock.now_ms())
            self._state.store.flush()
            if self._state.store.dispatcher.confirmed_to is None:
                self._progress.finish(*self._done_with())
        except (MQError, OSError) as error:
            _log.warning("transactions are not all noted reason=%s", error)

    def on_indexed(self, topic: str, queue_id: int, _next_offset: int) -> None:
        """A queue has grown."""
        if topic == HALF_TOPIC and queue_id == HALF_QUEUE_ID:
            self._woken.set()

    def end(self, request: EndTransactionRequest, outcome: SysFlag) -> Appended | None:
        """Commit or roll back; where the log has the message that this wrote, if it wrote one.

        Raises ResponseError if the transaction is not there to be ended.
        """
        half = self._find_half(request)
        now_ms = self._state.clock.now_ms()
        if not request.is_from_check and half.is_too_late(self._rules, now_ms=now_ms):
            raise ResponseError(
                ResponseCode.ILLEGAL_OPERATION,
                "the time that the message sets for its transaction is over; wait to be asked",
            )
        half.check_claim(group=request.producer_group, queue_offset=request.half_queue_offset)
        named = self._halves.place(half)
        current = self._open.find(named)
        if current is None:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR, "the transaction is not open: it was ended, asked for, or given up"
            )
        if self._notes.is_overfull:
            raise ResponseError(ResponseCode.SYSTEM_BUSY, "too many ended transactions wait for the disk")
        appended = self._commit(half, current, now_ms) if outcome is SysFlag.COMMIT else None
        self._count(half, outcome, appended)
        self._close(current, now_ms)
        if named.queue_offset >= self._open.taken_to and named != current:
            # The copy that was named is not taken in yet: it must not open the transaction again.
            self._close(named, now_ms)
        return appended

    def turn(self) -> int | None:
        """Do what is due now; in how many milliseconds to come again, None if only when woken."""
        is_behind = self._take_in()
        now_ms = self._state.clock.now_ms()
        # Before anything that may fail: without notes no transaction can end at last.
        if (due_ms := self._notes.due_ms) is not None and due_ms <= now_ms:
            self._write_note(now_ms)
        if (due_ms := self._open.next_due_ms) is not None and due_ms <= now_ms:
            is_behind |= self._check_due(now_ms)
            # The copies are open before anybody can answer.
            self._state.store.dispatch()
            is_behind |= self._take_in()
        self._asking.ask_indexed()
        self._progress.advance(
            *self._done_with(), log_end=self._state.store.log.log_end, flushed_to=self._safe_to
        )
        times_ms = [self._notes.due_ms]
        if not self._asking.is_full:
            times_ms.append(self._open.next_due_ms)
        if not self._progress.is_kept:
            times_ms.append(now_ms + _RETRY_MS)
        next_ms = min((time_ms for time_ms in times_ms if time_ms is not None), default=None)
        if is_behind:
            return 0
        return None if next_ms is None else min(max(next_ms - now_ms, 0), _LONGEST_SLEEP_MS)

    @property
    def _safe_to(self) -> int:
        """Up to where the log stays as it is: on the disk, and under a controller confirmed."""
        store = self._state.store
        confirmed_to = store.dispatcher.confirmed_log_end
        flushed_to = store.log.flushed_to
        return flushed_to if confirmed_to is None else min(flushed_to, confirmed_to)

    # Taking in

    def _read_notes(self) -> Iterator[int]:
        """The halves that are done with, as notes say that are still needed."""
        low, high = self._halves.note_bounds
        self._notes.start_at(high)
        for note in self._halves.notes(max(self._progress.note_offset, low)):
            named = list(named_offsets(note))
            self._notes.on_found(note.queue_offset, max(named, default=-1))
            yield from named

    def _take_in(self) -> bool:
        """Take in the halves that the queue has more; whether some are left for the next turn."""
        low, high = self._halves.bounds
        self._open.skip_to(low)
        end = min(self._open.taken_to + _TAKEN_A_TURN, high)
        while self._open.taken_to < end and not self._open.is_full:
            halves = self._halves.read(self._open.taken_to)
            for half in halves:
                self._take(half)
            if not halves:
                self._open.skip_to(high)
        if self._open.taken_to < high:
            return not self._open.is_full
        self._open.on_all_taken()
        return False

    def _take(self, half: Half) -> None:
        due_ms = half.due_ms(self._rules)
        if half.record.queue_offset < self._inherited_to:
            due_ms = max(due_ms, self._first_check_ms)
        place = self._halves.place(half)
        former = self._open.on_half(place, due_ms, first_queue_offset=half.first_queue_offset)
        if former is not None:
            self._notes.gather(former, now_ms=self._state.clock.now_ms())

    # Asking

    def _check_due(self, now_ms: int) -> bool:
        """Ask about the halves that are due; whether some may be left for the next turn."""
        size_bytes = 0
        for _ in range(_CHECKS_A_TURN):
            due = None if self._asking.is_full else self._open.on_tick(now_ms)
            if due is None:
                return False
            try:
                size_bytes += self._check(due, now_ms)
            except (NotWritable, DiskFull, OSError):
                # A disk that refuses now may take it later.
                if self._open.find(due) == due:
                    self._open.postpone(due, now_ms + _RETRY_MS)
                raise
            except MQError as error:
                # One that can be neither asked for nor kept must not hold up all others.
                if self._open.find(due) == due:
                    _log.error("transaction is lost queue_offset=%d reason=%s", due.queue_offset, error)
                    self._close(due, now_ms)
                else:
                    _log.warning("producer not asked queue_offset=%d reason=%s", due.queue_offset, error)
            if size_bytes >= _CHECKED_BYTES_A_TURN:
                break
        return True

    def _check(self, due: HalfPlace, now_ms: int) -> int:
        """Ask about one half, or give it up; how many bytes that wrote."""
        half = self._halves.find(due.queue_offset)
        if half is None:
            _log.info("transaction given up queue_offset=%d reason=its file is deleted", due.queue_offset)
            self._open.on_closed(due)
            return 0
        if self._is_committed(half, due):
            self._close(due, now_ms)
            return 0
        if half.target is None or half.is_hopeless(self._rules, now_ms=now_ms):
            return self._give_up(half, due, now_ms)
        try:
            copy = half.copied(due.origin)
            appended = self._state.writer.append(copy)
        except ProtocolError:
            # RocketMQ leaves no room for what a copy says more.
            return self._give_up(half, due, now_ms)
        self._close(due, now_ms)
        self._asking.add(half, half.shown(copy), appended)
        return appended.size_bytes

    def _give_up(self, half: Half, due: HalfPlace, now_ms: int) -> int:
        self._state.topics.ensure_given_up_topic()
        appended = self._state.writer.append(half.given_up())
        self._close(due, now_ms)
        topic, _ = half.target or ("?", 0)
        _log.info(
            "transaction given up topic=%s group=%s id=%s checks=%d kept_at=%d",
            *(topic, half.producer_group, half.unique_id, half.check_count, appended.queue_offset),
        )
        return appended.size_bytes

    # Ending

    def _find_half(self, request: EndTransactionRequest) -> Half:
        store = self._state.store
        half = self._halves.at(request.half_log_offset)
        if half is None and store.dispatcher.dispatched_to <= request.half_log_offset < store.log.log_end:
            # A quick producer ends its transaction before the half is indexed.
            with told_to_client():
                store.dispatch()
            half = self._halves.at(request.half_log_offset)
        if half is None:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR, f"no half of a transaction lies at {request.half_log_offset}"
            )
        return half

    def _commit(self, half: Half, current: HalfPlace, now_ms: int) -> Appended | None:
        if self._is_committed(half, current):
            return None
        with told_to_client():
            return self._state.writer.append(self._state.placing.place(half.committed(), now_ms))

    def _is_committed(self, half: Half, current: HalfPlace) -> bool:
        """Whether a former process committed the transaction, and was killed before it noted that."""
        if current.queue_offset >= self._inherited_to or half.target is None or not half.unique_id:
            return False
        topic, _ = half.target
        return self._halves.is_committed(current.origin, topic=topic, unique_id=half.unique_id)

    def _count(self, half: Half, outcome: SysFlag, appended: Appended | None) -> None:
        """What a former process has committed already it has counted, or nobody does."""
        if half.target is None:
            return
        topic, _ = half.target
        if outcome is SysFlag.ROLLBACK:
            self._state.counters.on_rolled_back(topic)
        elif appended is not None:
            self._state.counters.on_committed(topic)

    def _half_count(self) -> int:
        """Transactions that are open; of those that are not taken in yet, ended ones too for a moment."""
        return len(self._open) + max(0, self._halves.bounds[1] - self._open.taken_to)

    def _close(self, half: HalfPlace, now_ms: int) -> None:
        self._open.on_closed(half)
        self._notes.gather(half.queue_offset, now_ms=now_ms)
        if (due_ms := self._notes.due_ms) is not None and due_ms < self._asleep_to_ms:
            self._woken.set()

    def _write_note(self, now_ms: int) -> None:
        note, count = self._notes.next_note(born_host=self._state.store_host, now_ms=now_ms)
        appended = self._state.writer.append(note)
        self._notes.on_written(appended.queue_offset, count)

    def _done_with(self) -> tuple[int, int]:
        """The first half that is still open, and the first note that is needed with it."""
        lowest_open = self._open.lowest_open
        return lowest_open, self._notes.first_needed(lowest_open)
