"""The lane for sends that need no second look: many sockets read, served and answered in one call of C.

`_engine` reads from all connections that have something, once a turn of the event loop. Plain sends, by the
rules of QuickSends, go from where they were read into the mapped log, and their answers to the sockets, or
into one bundle of answers that wait for disk and slaves together. No object of Python is made for them but
those answers, and dispatch reads them back from the log. Everything else is handed to its connection as it
was read.

What Python decides it decides once a turn: whether messages are taken at all, how many, whether they wait,
and where the log goes on. Where the C could not be built, or TANIST_ENGINE=python is in the environment,
there is no lane, and connections read for themselves, with the same outcome.
"""

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from tanist.broker.quick_send import QuickSends
from tanist.broker.reign import Reign
from tanist.broker.state import BrokerState
from tanist.compiled import KEY, is_wanted
from tanist.model.host import PACKED_V4_BYTES
from tanist.remoting import Connection
from tanist.remoting.connection import Line, Wire

try:
    from tanist.broker import _engine
except ImportError:
    engine = None
else:
    engine = _engine if is_wanted else None

if TYPE_CHECKING:
    from tanist.protocol._native import Plan

_log = logging.getLogger(__name__)

_AHEAD_BYTES = 32 << 10
"""With less room than this the window is moved on before the turn, so that hardly a message finds none."""


def make_lane(state: BrokerState) -> "SendLane | None":
    """A lane if there can be one."""
    if engine is None:
        why = "it could not be built" if is_wanted else f"{KEY}=python is in the environment"
        _log.info("sends are taken by engine=python reason=%r", why)
        return None
    if len(state.store_host) != PACKED_V4_BYTES:
        # C lays out records with IPv4 hosts only.
        _log.info("sends are taken by engine=python reason=%r", "the broker has an IPv6 address")
        return None
    _log.info("sends are taken by engine=compiled")
    return SendLane(state)


class SendLane:
    """One broker's. It takes nothing before ``serve``, and reads for its connections all the time."""

    def __init__(self, state: BrokerState) -> None:
        assert engine is not None
        self._state = state
        self._sends: QuickSends | None = None
        self._plan: Plan | None = None
        self._open_range = range(0)
        """Where the log ends when its window is to be moved on, before it is used up."""
        self._is_waiting = False
        self._reign: Reign | None = None
        self._lane = engine.Lane(self._ask_room)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._lane.fileno(), self._turn)

    def join(
        self, connection: Connection, wire: Wire, file_number: int, host: bytes, lacking_bytes: int
    ) -> Line | None:
        """Read for a connection from now on, if its peer has an IPv4 address."""
        if len(host) != PACKED_V4_BYTES:
            return None
        return self._lane.join(connection, wire, file_number, host, lacking_bytes)

    def serve(self, sends: QuickSends | None) -> None:
        """Take messages by these rules; None: take none."""
        self._sends, self._plan, self._open_range = sends, None, range(0)
        self._lane.shut()

    def close(self) -> None:
        self._loop.remove_reader(self._lane.fileno())
        self._sends = None
        self._lane.close()

    def _turn(self) -> None:
        """Some sockets are readable."""
        state, pending = self._state, self._state.writer.pending
        answers: list[Any] | None = [] if pending.is_on else None
        self._reign = reign = state.writer.reign
        self._is_waiting = pending.is_on
        room = 0 if self._sends is None else self._prepare(self._sends)
        pending.keep(answers)
        try:
            count, first, end = self._lane.turn(state.clock.now_ms(), room, answers)
        finally:
            pending.keep(None)
        if count:
            state.writer.on_taken(
                count,
                partial(pending.answer_all_when_safe, first, end, answers, self._lane, reign)
                if answers
                else None,
            )

    def _prepare(self, sends: QuickSends) -> int:
        """See to it that C knows what it has to; how many messages it may take."""
        plan, log = sends.plan, self._state.store.log
        try:
            if plan is not self._plan:
                self._lane.use(log, plan)
                self._plan, self._open_range = plan, range(0)
            # Behind the window only who finds no room opens the next: large batches are written elsewhere.
            is_used_up = self._lane.is_full or log.log_end in self._open_range
            if is_used_up and (window := log.window()) is not None:
                self._lane.open(*window, log.cut_count)
                self._open_range = range(window.room_to - _AHEAD_BYTES, window.room_to)
        except Exception:
            # The sockets stay readable: without a turn the event loop would do nothing else.
            _log.exception("sends are taken without the lane from now on")
            self.serve(None)
            return 0
        return self._state.writer.room

    def _ask_room(self) -> tuple[int, int]:
        """Within a turn: the window is full, or something was handed to Python.

        That may have changed the rules: then the rest is for Python too.
        """
        sends, writer, now_ms = self._sends, self._state.writer, self._state.clock.now_ms()
        is_same = writer.pending.is_on is self._is_waiting and writer.reign is self._reign
        if sends is None or sends.plan is not self._plan or not is_same:
            return now_ms, 0
        return now_ms, self._prepare(sends)
