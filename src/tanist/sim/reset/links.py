"""Connections between members and brokers, with requests and answers both ways."""

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import count

from tanist.client.session.wire import Wire
from tanist.client.settings import ClientSettings
from tanist.errors import ConnectFailed, ConnectionLost, RequestTimeout
from tanist.protocol.command import Command
from tanist.protocol.frame import FrameDecoder
from tanist.sim.cables import Cables, Line
from tanist.sim.clockwork import Clockwork, Process
from tanist.sim.loop import PlayedLoop

_CONNECT_S = 0.01
_UNREACHABLE_S = 1.0


class Place:
    """A process as connections know it. ``loop`` is that of its present life."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.loop: PlayedLoop | None = None
        self.ends: list[End] = []
        self.on_command: Callable[[End, Command], None] = lambda _end, _command: None
        self.on_lost: Callable[[End], None] = lambda _end: None

    @property
    def name(self) -> str:
        return self.process.name

    def begin(self, clockwork: Clockwork) -> PlayedLoop:
        """Begin another life."""
        process = self.process
        process.life += 1
        process.is_up, process.is_frozen = True, False
        process.waiting.clear()
        self.loop = PlayedLoop(clockwork, process)
        return self.loop

    def run(self, do: Callable[[], object]) -> None:
        """Have this process do something now."""
        assert self.loop is not None
        self.loop.run(do)

    def die(self) -> None:
        self.process.is_up = False
        for end in [*self.ends]:
            end.break_off()
        if self.loop is not None:
            self.loop.end()


class End:
    """One end of a connection: what a broker or a member has of it, as ``ClientConnection`` and more."""

    def __init__(self, place: Place, cables: Cables, *, peer: str) -> None:
        self.place = place
        self.peer = peer
        self.is_open = True
        self.life = place.process.life
        self._cables = cables
        self._line = Line()
        self._opaques = count(1)
        self._asked: dict[int, asyncio.Future[Command]] = {}
        self._decoder = FrameDecoder()
        self.other: End = self
        place.ends.append(self)

    def send(self, data: bytes | Command) -> None:
        if not self.is_open:
            return
        other = self.other
        way = (self.place.name, other.place.name)
        self._cables.say(way, other.place.process, lambda: other.hear(data), line=self._line, life=other.life)

    def request(self, command: Command, timeout_s: float) -> asyncio.Future[Command]:
        """Ask the other end. Fails with a RemotingError."""
        loop = self.place.loop
        assert loop is not None
        answer = loop.create_future()
        command.opaque = next(self._opaques)
        self._asked[command.opaque] = answer

        def give_up() -> None:
            self._asked.pop(command.opaque, None)
            if not answer.done():
                answer.set_exception(RequestTimeout(self.peer, command.code, timeout_s))

        timer = loop.call_later(timeout_s, give_up)
        answer.add_done_callback(lambda _: timer.cancel())
        self.send(command)
        return answer

    def close(self, reason: str) -> None:  # noqa: ARG002
        self.break_off()

    def break_off(self) -> None:
        """The connection is over: this end knows at once, the other one after all that was said."""
        self.lose()
        other = self.other
        way = (self.place.name, other.place.name)
        self._cables.say(way, other.place.process, other.lose, line=self._line, life=other.life)

    def hear(self, data: bytes | Command) -> None:
        if not self.is_open:
            return
        for command in self._decoder.feed(data) if isinstance(data, bytes) else (data,):
            if not command.is_response:
                self.place.run(partial(self.place.on_command, self, command))
            elif (asked := self._asked.pop(command.opaque, None)) is not None and not asked.done():
                asked.set_result(command)

    def lose(self) -> None:
        """The connection is over, and this end hears of it."""
        if not self.is_open:
            return
        self.is_open = False
        self.place.ends.remove(self)
        if not self.place.process.is_up:
            return
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(ConnectionLost(self.peer, "it was closed"))
        self._asked.clear()
        self.place.run(partial(self.place.on_lost, self))


def connect(cables: Cables, member: Place, broker: Place, number: int) -> End:
    """The member's end of a new connection."""
    near = End(member, cables, peer=broker.name)
    far = End(broker, cables, peer=f"{member.name}:{number}")
    near.other, far.other = far, near
    return near


class PlayedWire(Wire):
    """A member's connections, by address; the other end of each is a broker's."""

    def __init__(
        self,
        settings: ClientSettings,
        place: Place,
        brokers: Callable[[str], Place],
        cables: Cables,
        *,
        on_connect: Callable[[str], None],
        on_disconnect: Callable[[str], None],
    ) -> None:
        self._credentials = None
        self._timeout_s = settings.timeout_s
        self._place = place
        self._brokers = brokers
        self._cables = cables
        self._ends: dict[str, End] = {}
        self._numbers = count(1)
        self._on_connect = on_connect
        self._on_disconnect = on_disconnect
        place.on_lost = self._on_lost

    async def exchange(
        self,
        address: str,
        command: Command,
        *,
        timeout_s: float,
        connect_s: float | None = None,  # noqa: ARG002
    ) -> Command:
        end = await self._connected(address)
        return await end.request(command, timeout_s)

    def tell(self, address: str, command: Command) -> None:
        if (end := self._ends.get(address)) is not None:
            end.send(command)

    def give_up(self, address: str, reason: str) -> None:
        if (end := self._ends.get(address)) is not None:
            end.close(reason)

    hang_up = give_up

    async def close(self) -> None:
        for end in [*self._ends.values()]:
            end.close("the client is closed")

    async def _connected(self, address: str) -> End:
        if (end := self._ends.get(address)) is not None:
            return end
        await asyncio.sleep(_CONNECT_S)
        if (end := self._ends.get(address)) is not None:
            return end
        me, broker = self._place.name, self._brokers(address)
        if self._cables.cut & {(me, address), (address, me)}:
            await asyncio.sleep(_UNREACHABLE_S)
            raise ConnectFailed(address, "it can not be reached")
        if not broker.process.is_up:
            raise ConnectFailed(address, "nobody listens")
        end = self._ends[address] = connect(self._cables, self._place, broker, next(self._numbers))
        self._on_connect(address)
        return end

    def _on_lost(self, end: End) -> None:
        if self._ends.get(end.peer) is end:
            del self._ends[end.peer]
            self._on_disconnect(end.peer)
