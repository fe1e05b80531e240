"""A broker's relays, with the other broker's end of each in the hands of a test."""

import asyncio
from collections.abc import Mapping

from tanist.broker.slave_consume.relays import Relays
from tanist.errors import ConnectFailed, ConnectionLost
from tanist.model.reading import permission_name
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.client import HeartbeatData
from tanist.protocol.codes import Language, RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.base import Header
from tanist.protocol.headers.reading import ReadStandingRequest, ReadStandingResponse
from tanist.remoting import Connection, Handler
from tests.support.fake_connection import FakeConnection
from tests.support.read_rights import OTHER_IS_READ, GivenRight


class FakeUpstream(FakeConnection):
    """A connection to the other broker. What it is asked waits until the test answers."""

    __slots__ = ("asked", "handlers", "is_slow", "target")

    def __init__(self, target: str, handlers: Mapping[int, Handler]) -> None:
        super().__init__(target)
        self.target = target
        self.handlers = handlers
        self.asked: list[tuple[Command, asyncio.Future[Command]]] = []
        self.is_slow = False

    @property
    def is_behind(self) -> bool:
        return self.is_slow

    @property
    def codes(self) -> list[int]:
        """What it was asked and has not answered, in order."""
        return [command.code for command, _answer in self.asked]

    def request(self, command: Command, timeout_s: float) -> asyncio.Future[Command]:
        if not self.is_open:
            raise ConnectionLost(self.peer, "it is closed")
        command.opaque = 1_000 + len(self.asked)
        answer: asyncio.Future[Command] = asyncio.get_running_loop().create_future()
        self.asked.append((command, answer))
        return answer

    def answer(self, code: int = ResponseCode.SUCCESS, header: Header | None = None, **how: str) -> Command:
        """Answer the first that waits; what was asked."""
        asked, answer = self.asked.pop(0)
        answer.set_result(asked.reply(code, header, ext=how or None))
        return asked

    def let_read(self, permission: int) -> ReadStandingRequest:
        """Answer whether the other broker may be read."""
        said = ReadStandingResponse(permission=permission_name(permission), reason="as the test says")
        return self.answer(header=said).header(ReadStandingRequest)

    def close(self, reason: str) -> None:
        super().close(reason)
        for _command, answer in self.asked:
            if not answer.done():
                answer.set_exception(ConnectionLost(self.peer, reason))
        self.asked.clear()


class RelayingBroker:
    """Relays whose own handlers answer with the remark "here"."""

    def __init__(self) -> None:
        self.right = GivenRight(OTHER_IS_READ)
        self.relays = Relays(self.right, self, is_slave=True)
        self.right.listeners.append(self.relays.on_permitted)
        self.upstreams: list[FakeUpstream] = []
        self.is_reachable = True
        self.client = FakeConnection("10.0.0.9:4000")
        self.routes = self.relays.relaying(dict.fromkeys(RequestCode, _serve))

    @property
    def upstream(self) -> FakeUpstream:
        return self.upstreams[-1]

    def ask(
        self,
        code: int,
        header: Header | None = None,
        *,
        opaque: int = 7,
        language: Language = Language.JAVA,
        client: FakeConnection | None = None,
        is_one_way: bool = False,
        body: bytes = b"",
    ) -> Command | None:
        """What is answered at once."""
        request = Command.request(code, header, body=body, opaque=opaque, is_one_way=is_one_way)
        request.language = language
        answer = self.routes[code](request, client or self.client)
        assert answer is None or isinstance(answer, Command)
        return answer

    def beat(self, heartbeat: HeartbeatData, *, client: FakeConnection | None = None) -> Command | None:
        return self.ask(RequestCode.HEART_BEAT, body=encode_body(heartbeat), client=client)

    async def dial(self, address: str, handlers: Mapping[int, Handler]) -> Connection:
        if not self.is_reachable:
            raise ConnectFailed(address, "nobody is there")
        self.upstreams.append(FakeUpstream(address, handlers))
        return self.upstream

    async def close(self) -> None:
        for upstream in self.upstreams:
            upstream.close("the broker stops")


def _serve(command: Command, _connection: Connection) -> Command:
    return command.reply(remark="here")
