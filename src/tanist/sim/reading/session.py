"""A broker's end of its session with the played registry, as ``GroupRegistry`` keeps it."""

from collections import deque
from collections.abc import Callable
from math import inf
from typing import Any

from tanist.model.reading import Assigned, ReadRecord
from tanist.sim.cables import Cables
from tanist.sim.clockwork import Clockwork, Do, Process
from tanist.sim.reading.registry import SESSION_S, Look, NoSession, PlayedRegistry, Refused

_HELD_SHARE = 0.9
"""How much of a session's time we count on: the registry's clock may run faster than ours."""
_ANSWER_S = 1.0
_PING_S = 0.4
_AGAIN_S = 0.2

Answer = Callable[[Any], None]


class PlayedSession:
    """Opens sessions one after the other, and asks one thing after the other."""

    def __init__(
        self,
        clockwork: Clockwork,
        cables: Cables,
        registry: PlayedRegistry,
        process: Process,
        own: Assigned,
    ) -> None:
        self._clockwork = clockwork
        self._cables = cables
        self._registry = registry
        self._process = process
        self._own = own
        self._id: int | None = None
        self._held_until_s = -inf
        self._is_in = False
        self._version = 0
        self._asked: deque[Do] = deque()
        self._is_asking = False
        self._has_look_waiting = False
        self.on_seen: Callable[[Look], None] = lambda _look: None
        self.on_lost: Do = lambda: None

    @property
    def held_until_s(self) -> float:
        return self._held_until_s if self._is_in else -inf

    @property
    def now_s(self) -> float:
        return self._clockwork.now_s * self._process.rate

    def start(self) -> None:
        self._connect()
        self._after(_PING_S, self._ping)

    def look_again(self) -> None:
        """Read everything again, after what is being asked."""
        if self._is_in and not self._has_look_waiting:
            self._has_look_waiting = True
            self._queue(self._look)

    def write(self, record: ReadRecord, on_written: Do, on_failed: Do, *, absent: str | None = None) -> None:
        """Put a record in the place of the one that was read last; what fails may have been done even so."""
        if not self._is_in:
            on_failed()
            return
        self._queue(lambda: self._write(record, on_written, on_failed, absent))

    # Inside

    def _connect(self) -> None:
        self._ask(lambda _session: self._registry.open(self._own.address), self._enter, self._again)

    def _again(self) -> None:
        self._after(_AGAIN_S, self._connect)

    def _enter(self, session: int) -> None:
        def enter(version: int) -> Callable[[int], bool]:
            def entering(_session: int) -> bool:
                try:
                    self._registry.enter(session, self._own, version)
                except Refused:
                    return False
                return True

            return entering

        def entered(is_done: bool) -> None:
            if not is_done:
                self._again()
                return
            self._id = session
            self._is_in = True
            self.look_again()

        def seen(look: Look) -> None:
            self._ask(enter(look.version), entered, self._again)

        self._ask(lambda _session: self._registry.look(session), seen, self._again)

    def _ping(self) -> None:
        self._after(_PING_S, self._ping)
        if self._is_in:
            if self.now_s >= self._held_until_s + _AGAIN_S:
                self._lose()
            else:
                self._ask(self._registry.ping, lambda _nothing: None, lambda: None)

    def _lose(self) -> None:
        if not self._is_in:
            return
        self._is_in = False
        self._id = None
        self._asked.clear()
        self._is_asking = self._has_look_waiting = False
        self.on_lost()
        self._again()

    def _look(self) -> None:
        self._has_look_waiting = False

        def seen(look: Look) -> None:
            self._version = look.version
            self.on_seen(look)
            self._next()

        self._ask(self._registry.look, seen, self._next)

    def _write(self, record: ReadRecord, on_written: Do, on_failed: Do, absent: str | None) -> None:
        version = self._version

        def written(answer: int | None) -> None:
            if answer is None:
                on_failed()
            else:
                self._version = answer
                on_written()
            self._next()

        def put(session: int) -> int | None:
            try:
                return self._registry.put(session, record, version, absent=absent)
            except Refused:
                return None

        def failed() -> None:
            on_failed()
            self._next()

        self._ask(put, written, failed)

    def _queue(self, do: Do) -> None:
        self._asked.append(do)
        if not self._is_asking:
            self._next()

    def _next(self) -> None:
        self._is_asking = bool(self._asked)
        if self._asked:
            self._asked.popleft()()

    def _ask(self, question: Callable[[int], Any], on_answer: Answer, on_unknown: Do) -> None:
        """Ask the registry. An answer that comes late is not heard, but what was asked may be done late."""
        session, life, asked_s = self._id, self._process.life, self.now_s
        is_over = False

        def answered(answer: Any) -> None:
            nonlocal is_over
            if is_over or session != self._id:
                return
            is_over = True
            if isinstance(answer, NoSession):
                if self._is_in:
                    self._lose()
                else:
                    on_unknown()
                return
            self._held_until_s = max(self._held_until_s, asked_s + SESSION_S * _HELD_SHARE)
            on_answer(answer)

        def arrive() -> None:
            try:
                answer = question(session or 0)
            except NoSession as error:
                answer = error
            way = ("registry", self._process.name)
            self._cables.say(way, self._process, lambda: answered(answer), life=life)

        def give_up() -> None:
            nonlocal is_over
            if not is_over and session == self._id:
                is_over = True
                on_unknown()

        self._cables.say((self._process.name, "registry"), self._registry.process, arrive)
        self._after(_ANSWER_S, give_up)

    def _after(self, delay_s: float, do: Do) -> None:
        self._clockwork.after(delay_s / self._process.rate, do, process=self._process)
