"""Answers that wait until their message is safe, as far as the broker promises that.

    appended --SYNC_FLUSH--> on disk --SYNC_MASTER--> on enough replicas --> answered

Both go on at the same time: who comes from the disk finds that the slaves have acked already, or nearly. An
answer is made when its message is written and kept as bytes. It costs neither task nor future; what one
flush or one ack releases leaves in one write a connection. If the message is not safe in time the answer
says so by its code. The message stays written, and where both were too late the slaves' code counts, as in
RocketMQ.

Under a controller an answer is a success only if its master has the right to say so at that very moment, see
``tanist.ha.ack_right``: each send passes here, also one that waits for nobody. One that is not confirmed is
told so whoever sent it, for unlike with fixed roles the next master may not have it.
"""

import asyncio
import logging
from collections import Counter
from typing import Any, Protocol, TypeAlias

import msgspec

from tanist.broker.awake import Awake
from tanist.broker.reign import Reign
from tanist.errors import ResponseError
from tanist.ha.double_write import DoubleWrite
from tanist.model.message import Appended
from tanist.model.property_names import REAL_TOPIC, TAGS
from tanist.protocol.codes import ResponseCode
from tanist.protocol.frame import with_code
from tanist.protocol.properties import find_property
from tanist.remoting import Connection
from tanist.store import FlushMode, MessageStore
from tanist.store.flush import Flusher, FlushOutcome

_log = logging.getLogger(__name__)

MAX_WAITING_SENDS = 10_000
"""Sends that may wait to be safe, as many as RocketMQ's queue of sends takes by default."""
_TOLD_EVERY_S = 1.0
"""Without a slave every send fails alike. One line a second says so, with how many there were."""
_SUCCESS = ResponseCode.SUCCESS
_NOT_STORED = ResponseCode.SERVICE_NOT_AVAILABLE
_TOO_LATE = ResponseCode.FLUSH_SLAVE_TIMEOUT
_FLUSH_CODES = {
    FlushOutcome.FLUSHED: _SUCCESS,
    FlushOutcome.LATE: ResponseCode.FLUSH_DISK_TIMEOUT,
    FlushOutcome.FAILED: ResponseCode.FLUSH_DISK_TIMEOUT,
    # The message was cut from the log again: it is not stored, and may be sent once more.
    FlushOutcome.CUT: _NOT_STORED,
}
_PHRASES = {
    ResponseCode.SLAVE_NOT_AVAILABLE: "slave not available",
    ResponseCode.FLUSH_SLAVE_TIMEOUT: "flush slave timeout",
}


Answers: TypeAlias = list[Any]
"""In turns the line of a connection, and the answer of a success for it."""


class Lane(Protocol):
    """Who took messages in, and sends the answers to them."""

    def answer(self, answers: Answers, /) -> None: ...


class PendingAnswers:
    """The answers of one broker that wait for its disk and its slaves."""

    def __init__(self, store: MessageStore, flusher: Flusher) -> None:
        self._store = store
        self._flusher = flusher
        self._waits_for_disk = store.settings.flush_disk_type is FlushMode.SYNC_FLUSH
        self._double_write: DoubleWrite | None = None
        self._reign: Reign | None = None
        self.is_on = self._waits_for_disk
        """Whether an answer waits unless its message says otherwise."""
        self._count = 0
        self._kept: Answers = []
        """What a lane has kept in this turn, and will have wait at its end."""
        self._idle: asyncio.Event | None = None
        self._is_closed = False
        self._deadline: asyncio.TimerHandle | None = None
        self._told_s: dict[ResponseCode, float] = {}
        self._answered: list[Connection] = []
        """Who has answers that have not left."""
        self._is_leaving = False
        """Whether they are about to."""
        self._loop = asyncio.get_running_loop()
        self._awake = Awake(lambda: self._count > 0)
        self.failed: Counter[ResponseCode] = Counter()
        """How many messages were written and not replicated in time, by what their sender was told."""

    def __len__(self) -> int:
        return self._count + len(self._kept) // 2

    def use(self, double_write: DoubleWrite) -> None:
        """Wait for slaves too, as a SYNC_MASTER does."""
        self._double_write = double_write
        self.is_on = True

    def follow(self, reign: Reign | None) -> None:
        """A reign under a controller begins, or has ended: who waited in the last one is told that."""
        if self._reign is not None and self._reign is not reign:
            self._reign.end()
        self._reign = reign
        if self._double_write is not None:
            self._double_write.follow(None if reign is None else reign.sync_state)

    def end_reign(self) -> None:
        """Another broker is or may be master: nobody is told any more that a message is safe."""
        self.follow(None)
        if self._double_write is not None:
            self._double_write.give_up()
            self._double_write = None
        self.is_on = self._waits_for_disk
        self._stop_watching()

    @property
    def has_room(self) -> bool:
        """Whether ``check`` has nothing against one more."""
        return self.room > 0

    @property
    def room(self) -> int:
        """How many more ``check`` has nothing against."""
        is_refused = self._reign is not None and self._reign.refusal() is not None
        return 0 if is_refused or self._refusal() is not None else max(0, MAX_WAITING_SENDS - len(self))

    def check(self, *, is_waiting: bool) -> None:
        """Refuse a message that can not be made safe, or, if its sender waits, one too many."""
        self.check_right()
        if (refusal := self._refusal()) is not None:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, refusal)
        if is_waiting and len(self) >= MAX_WAITING_SENDS:
            raise ResponseError(
                ResponseCode.SYSTEM_BUSY, "[OVERLOAD] too many sends wait for the disk or for slaves"
            )

    def check_right(self) -> None:
        """Refuse a message, also one whose sender waits for nobody, if this master may not take it.

        With a code at which clients ask for the route again: another may be master by now.
        """
        if self._reign is not None and (refusal := self._reign.refusal()) is not None:
            raise ResponseError(ResponseCode.SERVICE_NOT_AVAILABLE, refusal)

    def answer_when_safe(
        self, place: Appended, connection: Connection, frame: bytes, *, tells_why_not: bool = True
    ) -> None:
        """Send ``frame``, the answer of a success, when the message at ``place`` is safe.

        If it is not safe in time the answer gets the code that says why; or, without ``tells_why_not``, it
        is sent as it is: the message is stored, and its sender would only send it again.
        """
        self._wait(_Pending(self, connection, frame, place.log_offset, place.end, tells_why_not, self._reign))

    def answer_all_when_safe(
        self, first: int, end: int, answers: Answers, lane: Lane, reign: Reign | None
    ) -> None:
        """The same for messages that came together in this reign, of which the first lies at ``first``."""
        self._wait(_PendingTurn(self, lane, answers, first, end, reign))

    def keep(self, answers: Answers | None) -> None:
        """Count those that a lane puts here from now on as if they waited already; None: it puts none."""
        self._kept = answers if answers is not None else []

    def _wait(self, pending: "_Pending | _PendingTurn") -> None:
        self._count += pending.count
        if self._waits_for_disk:
            self._flusher.when_flushed(pending.end, pending.on_flushed)
        else:
            self.wait_for_replicas(pending)

    async def close(self, grace_s: float) -> None:
        """Give all who wait so long to be safe; who is not safe then is told so."""
        if self._count:
            self._idle = asyncio.Event()
            try:
                async with asyncio.timeout(grace_s):
                    await self._idle.wait()
            except TimeoutError:
                _log.warning("sends are answered before they are safe count=%d", self._count)
        self._is_closed = True
        self._flusher.give_up()
        if self._double_write is not None:
            self._double_write.give_up()
        self._stop_watching()

    def on_confirmed(self) -> None:
        """More replicas hold more, or other replicas count."""
        if self._double_write is not None:
            is_leaving, self._is_leaving = self._is_leaving, True
            try:
                self._double_write.on_acked()
            finally:
                self._is_leaving = is_leaving
            # At once: what was read together with the ack may take long, and these have waited.
            self._send_answers()

    # For those who wait.

    def wait_for_replicas(self, pending: "_Pending | _PendingTurn") -> None:
        double_write = self._double_write
        if double_write is None:
            self.answer(pending)
        elif self._is_closed or pending.reign is not self._reign:
            pending.on_replicated(_TOO_LATE)
        else:
            if self._reign is not None:
                self._reign.hold()
            double_write.wait(pending.end, now_s=self._loop.time(), done=pending.on_replicated)
            self._awake.stay()
            if self._deadline is None:
                self._watch_deadline()

    def answer(self, pending: "_Pending | _PendingTurn") -> None:
        self._count -= pending.count
        if not self._count and self._idle is not None:
            self._idle.set()
        reign = pending.reign
        if reign is not None and pending.code is _SUCCESS and not reign.may_acknowledge(pending.end):
            pending.code = _TOO_LATE
            self.tell(pending)
        pending.leave()

    def leave_soon(self, connection: Connection, frame: bytes) -> None:
        """Have an answer leave with others of this turn of the event loop, or of this ack."""
        connection.keep(frame)
        self._answered.append(connection)
        if not self._is_leaving:
            self._is_leaving = True
            self._loop.call_soon(self._on_turn)

    def tell(self, pending: "_Pending | _PendingTurn") -> None:
        """Have the log say now and then what is not replicated, and whose it is."""
        code = pending.code
        self.failed[code] += pending.count
        now_s = self._loop.time()
        if now_s - self._told_s.get(code, -_TOLD_EVERY_S) < _TOLD_EVERY_S:
            return
        self._told_s[code] = now_s
        record = self._store.record_at(pending.log_offset)
        properties = b"" if record is None else bytes(record.properties)
        topic = find_property(properties, REAL_TOPIC) or (b"?" if record is None else record.topic.encode())
        _log.error(
            "%s topic=%s tags=%s client=%s end=%d count=%d",
            _PHRASES[code],
            topic.decode("utf-8", "replace"),
            (find_property(properties, TAGS) or b"").decode("utf-8", "replace"),
            pending.peer,
            pending.end,
            self.failed[code],
        )

    def _on_turn(self) -> None:
        self._is_leaving = False
        self._send_answers()

    def _send_answers(self) -> None:
        answered, self._answered = self._answered, []
        for connection in answered:
            connection.flush()

    def _refusal(self) -> str | None:
        return None if self._double_write is None else self._double_write.refusal(self._store.log.log_end)

    # Deadlines

    def _watch_deadline(self) -> None:
        # One timer for all: the first who waits is also the first to run out.
        assert self._double_write is not None
        deadline_s = self._double_write.next_deadline_s
        if deadline_s is not None:
            self._deadline = self._loop.call_at(deadline_s, self._on_deadline, deadline_s)

    def _stop_watching(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _on_deadline(self, deadline_s: float) -> None:
        self._deadline = None
        if self._double_write is not None:
            # The loop may be a little early.
            self._double_write.on_tick(max(deadline_s, self._loop.time()))
            self._watch_deadline()


class _Pending(msgspec.Struct):
    """One answer on its way. Nothing of the request is kept."""

    owner: PendingAnswers
    connection: Connection
    frame: bytes
    log_offset: int
    end: int
    tells_why_not: bool
    reign: Reign | None
    code: ResponseCode = _SUCCESS
    count = 1

    @property
    def peer(self) -> str:
        return self.connection.peer

    def on_flushed(self, outcome: FlushOutcome) -> None:
        _go_on(self, outcome)

    def on_replicated(self, code: ResponseCode) -> None:
        _end(self, code)

    def leave(self) -> None:
        is_told = self.tells_why_not or self.code is _NOT_STORED or self.reign is not None
        frame = self.frame if self.code is _SUCCESS or not is_told else with_code(self.frame, self.code)
        self.owner.leave_soon(self.connection, frame)


class _PendingTurn(msgspec.Struct):
    """The answers to all messages that a lane took in one turn. They are safe together: with the last."""

    owner: PendingAnswers
    lane: Lane
    answers: Answers
    log_offset: int
    end: int
    reign: Reign | None
    code: ResponseCode = _SUCCESS

    @property
    def count(self) -> int:
        return len(self.answers) // 2

    @property
    def peer(self) -> str:
        connection = self.answers[0].connection
        return "?" if connection is None else connection.peer

    def on_flushed(self, outcome: FlushOutcome) -> None:
        _go_on(self, outcome)

    def on_replicated(self, code: ResponseCode) -> None:
        _end(self, code)

    def leave(self) -> None:
        if self.code is not _SUCCESS:
            self.answers[1::2] = [with_code(frame, self.code) for frame in self.answers[1::2]]
        self.lane.answer(self.answers)


def _go_on(pending: _Pending | _PendingTurn, outcome: FlushOutcome) -> None:
    pending.code = _FLUSH_CODES[outcome]
    if pending.code is _NOT_STORED:
        pending.owner.answer(pending)
    else:
        pending.owner.wait_for_replicas(pending)


def _end(pending: _Pending | _PendingTurn, code: ResponseCode) -> None:
    if code is not _SUCCESS:
        pending.code = code
        pending.owner.tell(pending)
    pending.owner.answer(pending)
