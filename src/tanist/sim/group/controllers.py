"""The controllers of a group: all of production but sockets, on loops of their own, in a played registry."""

from collections.abc import Callable, Coroutine
from functools import partial
from random import Random
from typing import Any

from tanist.controller.handlers import HANDLERS, Context
from tanist.controller.settings import ControllerSettings, LiveSettings
from tanist.coord import Registry
from tanist.errors import ResponseError
from tanist.protocol import Command, RequestCode
from tanist.protocol.frame import FrameDecoder
from tanist.protocol.headers.controller import BrokerHeartbeatResponse
from tanist.remoting import ServerLimits
from tanist.remoting.replies import frame_failure
from tanist.sim.broken import Broken
from tanist.sim.cables import Cables
from tanist.sim.clockwork import Clockwork, Process
from tanist.sim.group.kazoo import PlayedKazoo
from tanist.sim.group.machines import Machines
from tanist.sim.group.naming import CONTROLLER, ROOT
from tanist.sim.group.zookeeper import PlayedErrors, PlayedZooKeeper
from tanist.sim.loop import PlayedClock, PlayedLoop

Answered = Callable[[Command], None]
_BEAT = int(RequestCode.BROKER_HEARTBEAT)
_STOP_S = 0.1
_SETTINGS = ControllerSettings()
_LIMITS = ServerLimits()
_ERRORS = PlayedErrors()


class Asker:
    """The connection that a request came on, as a handler sees it."""

    def __init__(self, peer: str, on_answer: Answered) -> None:
        self.peer = peer
        self._on_answer = on_answer

    def send(self, frame: bytes) -> None:
        for answer in FrameDecoder().feed(frame):
            self._on_answer(answer)


class PlayedController:
    """One controller through all its lives."""

    def __init__(
        self,
        number: int,
        *,
        clockwork: Clockwork,
        cables: Cables,
        chance: Random,
        machines: Machines,
        zookeeper: PlayedZooKeeper,
        rate: float,
        notify: Callable[[Process, str], None],
        tell: Callable[[str, str], None],
    ) -> None:
        self.process = Process(f"{CONTROLLER} {number}", rate)
        self.address = f"127.0.0.1:{9870 + number}"
        self.peers: list[PlayedController] = []
        self._clockwork = clockwork
        self._cables = cables
        self._chance = chance
        self._machines = machines
        self._zookeeper = zookeeper
        self._notify = notify
        self._tell = tell
        self._loop: PlayedLoop | None = None
        self._clock = PlayedClock(clockwork, rate=rate)

    @property
    def is_leading(self) -> bool:
        """Whether it is sure that it leads."""
        return self._loop is not None and self._leading.is_leading

    def start(self) -> None:
        process = self.process
        process.life += 1
        process.is_up, process.is_frozen = True, False
        process.waiting.clear()
        self._loop = PlayedLoop(self._clockwork, process)
        self._loop.run(self._begin)

    def stop(self) -> None:
        """Its process ends, which nobody tells the registry."""
        self.process.is_up = False
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.end()
            self._context.close()

    def resign(self) -> None:
        """It is asked to stop: it ends its session, and then its process."""
        assert self._loop is not None
        self._loop.run(self._attending.cancel)
        self._clockwork.after(_STOP_S, self.stop, process=self.process)

    def set_clock(self, by_ms: int) -> None:
        """Somebody sets the clock that people read."""
        self._clock.is_wrong_by_ms = by_ms

    def hear(self, request: Command, connection: object, peer: str, on_answer: Answered) -> None:
        """Somebody asks for something; the answer may come later."""
        assert self._loop is not None
        self._loop.run(lambda: self._hear(request, connection, peer, on_answer))

    # Inside

    def _begin(self) -> None:
        assert self._loop is not None
        machines, clock = self._machines, self._clock
        settings = LiveSettings(_SETTINGS)
        self._leading = machines.leading(
            partial(
                machines.registry,
                "zk",
                ROOT,
                timeout_s=self._zookeeper.timeout_s,
                clock=clock,
                make_client=self._make_client,
                errors=_ERRORS,
            ),
            clock=clock,
            load=self._load,
            on_begin=self._on_begin,
            on_look=self._on_look,
            on_end=self._on_end,
        )
        self._keeper = machines.keeper(self._leading)
        self._reigns = machines.reigns(
            self._leading,
            self._keeper,
            settings,
            clock=clock,
            notify=lambda address, _command: self._notify(self.process, address),
            spawn=self._spawn,
        )
        self._context = Context(
            *(self._reigns, self._keeper, self._leading, settings, _LIMITS, clock, self._spawn), None
        )
        self._attending = self._loop.create_task(self._leading.run(self.address))

    def _make_client(self, _hosts: str, _timeout_s: float, on_state: Callable[[str], None]) -> PlayedKazoo:
        return PlayedKazoo(self._zookeeper, self.process, on_state, cables=self._cables, chance=self._chance)

    def _hear(self, request: Command, connection: object, peer: str, on_answer: Answered) -> None:
        asker: Any = Asker(peer, on_answer)
        asker = connection if request.code == _BEAT else asker
        try:
            answer = HANDLERS[request.code](self._context, request, asker)
        except ResponseError as error:
            frame = frame_failure(request, error)
            assert frame is not None
            Asker(peer, on_answer).send(frame)
            return
        if answer is not None:
            self._see_lease(answer)
            on_answer(answer)

    def _see_lease(self, answer: Command) -> None:
        """Who grants a lease is the only one that leads."""
        if isinstance(answer.typed_header, BrokerHeartbeatResponse) and answer.typed_header.lease_epoch:
            self._be_alone()

    def _be_alone(self) -> None:
        if others := [each.process.name for each in self.peers if each is not self and each.is_leading]:
            raise Broken(f"C1: {self.process.name} leads, and so does {', '.join(others)}")

    async def _load(self, registry: Registry) -> None:
        await self._keeper.load(registry)

    def _on_begin(self) -> None:
        self._tell(self.process.name, "leads")
        self._reigns.on_begin()

    def _on_look(self) -> None:
        self._reigns.review_all()

    def _on_end(self) -> None:
        self._tell(self.process.name, "does not lead any more")
        self._keeper.forget()
        self._reigns.on_end()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        loop = self._loop
        if loop is None:
            work.close()
            return
        loop.create_task(work).add_done_callback(lambda task: self._see_end(loop, task))

    def _see_end(self, loop: PlayedLoop, task: Any) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            loop.call_exception_handler({"exception": error})
