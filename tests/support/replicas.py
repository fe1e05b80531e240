"""Replicas that say what a test has them say, and a name server that names them."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from tanist.model.route import BrokerData, QueueData, TopicRouteData
from tanist.protocol.bodies.base import encode_body
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.pull import PullMessageRequest, PullMessageResponse
from tanist.remoting import Connection, RemotingServer
from tests.support.received import QUEUE, at, records
from tests.support.remoting import serving

Reply: TypeAlias = Callable[[Command, Connection], Command | None]


@dataclass(slots=True)
class Replica:
    """One replica. ``pulls`` are the requests it got; ``reply`` is what it says to the next."""

    address: str = ""
    reply: Reply = field(default=lambda pull, _connection: found(pull))
    pulls: list[PullMessageRequest] = field(default_factory=list[PullMessageRequest])

    def answer(self, command: Command, connection: Connection) -> Command | None:
        self.pulls.append(command.header(PullMessageRequest))
        return self.reply(command, connection)


@dataclass(slots=True)
class Replicas:
    """The replicas of one broker. ``named`` are the ids that the route gives."""

    namesrv: str
    by_id: dict[int, Replica]
    named: set[int]
    servers: dict[int, RemotingServer]

    def __getitem__(self, broker_id: int) -> Replica:
        return self.by_id[broker_id]

    @property
    def pull_counts(self) -> list[int]:
        """How many pulls each has got, by id."""
        return [len(self.by_id[broker_id].pulls) for broker_id in sorted(self.by_id)]

    async def stop(self, broker_id: int) -> None:
        """End one: its connections are closed, and no new ones are taken."""
        await self.servers[broker_id].close(grace_s=0)

    def route(self, command: Command, _connection: Connection) -> Command:
        addresses = {broker_id: self.by_id[broker_id].address for broker_id in self.named}
        queues = QueueData(broker_name=QUEUE.broker_name, read_queue_count=1, write_queue_count=1, perm=6)
        broker = BrokerData(cluster="c", broker_name=QUEUE.broker_name, broker_addrs=addresses)
        return command.reply(body=encode_body(TopicRouteData(queue_datas=[queues], broker_datas=[broker])))


@asynccontextmanager
async def replicas_of(count: int) -> AsyncGenerator[Replicas]:
    """So many replicas, all in the route, that find one message at whatever offset they are asked for."""
    async with AsyncExitStack() as stack:
        by_id = {broker_id: Replica() for broker_id in range(count)}
        replicas = Replicas("", by_id, set(by_id), {})
        for broker_id, replica in by_id.items():
            server = await stack.enter_async_context(serving({RequestCode.PULL_MESSAGE: replica.answer}))
            replica.address = f"127.0.0.1:{server.port}"
            replicas.servers[broker_id] = server
        names = await stack.enter_async_context(serving({RequestCode.GET_ROUTEINFO_BY_TOPIC: replicas.route}))
        replicas.namesrv = f"127.0.0.1:{names.port}"
        yield replicas


def found(pull: Command, suggested: int = 0) -> Command:
    """One message, at the offset that was asked for."""
    offset = pull.header(PullMessageRequest).queue_offset
    return _answer(pull, ResponseCode.SUCCESS, suggested, offset + 1, records([offset]))


def moved(pull: Command, next_offset: int) -> Command:
    return _answer(pull, ResponseCode.PULL_OFFSET_MOVED, 0, next_offset)


def suggesting(suggested: int) -> Reply:
    """Finds a message, and says who is to be read next."""
    return lambda pull, _connection: found(pull, suggested)


def refusing(code: ResponseCode = ResponseCode.NO_PERMISSION, suggested: int | None = None) -> Reply:
    """Refuses, in favour of another one if that is given."""
    ext = {} if suggested is None else {"suggestWhichBrokerId": str(suggested)}
    return lambda pull, _connection: pull.reply(code, ext=ext, remark="not here")


def hanging_up(_pull: Command, connection: Connection) -> None:
    connection.close("the test says so")


def _answer(
    pull: Command, code: ResponseCode, suggested: int, next_offset: int, body: bytes = b""
) -> Command:
    header = PullMessageResponse(
        suggested_broker_id=suggested,
        next_begin_offset=at(next_offset),
        min_offset=at(0),
        max_offset=at(1000),
    )
    return pull.reply(code, header, body=body)
