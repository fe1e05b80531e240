"""A name server and brokers on the event loop of one test, which answer clients as the test says.

async with FakeCluster("a", "b") as cluster, Producer(group="g", namesrv=cluster.namesrv) as producer:
    cluster.brokers["a"].answer = refuse(ResponseCode.SYSTEM_BUSY)
"""

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, TypeAlias

from tanist.model.host import pack_host
from tanist.model.offsets import QueueOffset
from tanist.model.route import BrokerData, QueueData, TopicRouteData
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies.base import encode_body
from tanist.protocol.headers.nameserver import GetRouteRequest
from tanist.protocol.headers.send import SendMessageRequestV2, SendMessageResponse
from tanist.protocol.message_id import encode_offset_id
from tanist.remoting import Connection, Handler, RemotingServer
from tests.support.remoting import serving

_PLACE = encode_offset_id(pack_host("10.0.0.7", 10911), 4096)

Answer: TypeAlias = Callable[[Command], Command | None]
"""What a broker says to a send; None: nothing, ever."""


def accept(request: Command, *, code: int = ResponseCode.SUCCESS) -> Command:
    """Say that the message is stored; ``code`` says how safely."""
    sent = request.header(SendMessageRequestV2)
    header = SendMessageResponse(msg_id=_PLACE, queue_id=sent.queue_id, queue_offset=QueueOffset(7))
    return request.reply(code, header)


def refuse(code: ResponseCode) -> Answer:
    return lambda request: request.reply(code, remark="so the test says")


@dataclass
class FakeBroker:
    """Keeps what it is told. ``answer`` is what it says to sends."""

    name: str
    server: RemotingServer = field(init=False)
    answer: Answer = accept
    is_listening: bool = True
    """Whether it answers heartbeats and farewells."""
    sent: list[Command] = field(default_factory=list[Command])
    connections: list[Connection] = field(default_factory=list[Connection])
    """The connection that each send came on."""
    others: list[Command] = field(default_factory=list[Command])
    """Heartbeats and farewells."""
    false_address: str | None = None
    """Where routes say that it is, if not where it is."""

    @property
    def address(self) -> str:
        return self.false_address or f"127.0.0.1:{self.server.port}"

    @property
    def handlers(self) -> dict[int, Handler]:
        return {
            RequestCode.SEND_MESSAGE_V2: self._on_send,
            RequestCode.SEND_BATCH_MESSAGE: self._on_send,
            RequestCode.SEND_REPLY_MESSAGE_V2: self._on_send,
            RequestCode.HEART_BEAT: self._on_other,
            RequestCode.UNREGISTER_CLIENT: self._on_other,
        }

    def headers(self) -> list[SendMessageRequestV2]:
        return [request.header(SendMessageRequestV2) for request in self.sent]

    def _on_send(self, request: Command, connection: Connection) -> Command | None:
        request.body = bytes(request.body)
        self.sent.append(request)
        self.connections.append(connection)
        return None if request.is_one_way else self.answer(request)

    def _on_other(self, request: Command, _connection: Connection) -> Command | None:
        request.body = bytes(request.body)
        self.others.append(request)
        return request.reply() if self.is_listening else None


class FakeCluster:
    """Routes of ``topics`` lead to all brokers, with ``queue_count`` queues on each."""

    def __init__(self, *names: str, topics: tuple[str, ...] = ("T",), queue_count: int = 2) -> None:
        self.brokers = {name: FakeBroker(name) for name in names}
        self.topics = set(topics)
        self.asked: list[str] = []
        """The topics that were asked for."""
        self.perm = 6
        self.without: dict[str, set[str]] = {}
        """Brokers that do not have a topic yet."""
        self._queue_count = queue_count
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        for broker in self.brokers.values():
            broker.server = await self._stack.enter_async_context(serving(broker.handlers))
        self._name_server = await self._stack.enter_async_context(
            serving({RequestCode.GET_ROUTEINFO_BY_TOPIC: self._on_route})
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def namesrv(self) -> str:
        return f"127.0.0.1:{self._name_server.port}"

    @property
    def sent(self) -> list[Command]:
        """What all brokers were sent, broker by broker."""
        return [request for broker in self.brokers.values() for request in broker.sent]

    def _on_route(self, request: Command, _connection: Connection) -> Command:
        topic = request.header(GetRouteRequest).topic
        self.asked.append(topic)
        if topic not in self.topics:
            return request.reply(ResponseCode.TOPIC_NOT_EXIST, remark=f"no topic {topic}")
        brokers = [
            broker for broker in self.brokers.values() if broker.name not in self.without.get(topic, ())
        ]
        route = TopicRouteData(
            queue_datas=[
                QueueData(
                    broker_name=broker.name,
                    read_queue_count=self._queue_count,
                    write_queue_count=self._queue_count,
                    perm=self.perm,
                )
                for broker in brokers
            ],
            broker_datas=[
                BrokerData(
                    cluster="DefaultCluster", broker_name=broker.name, broker_addrs={0: broker.address}
                )
                for broker in brokers
            ],
        )
        return request.reply(body=encode_body(route))
