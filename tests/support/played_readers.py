"""Two brokers of one group that have the same messages and of which one may be read, as the test says.

async with PlayedReaders().serving() as group, Consumer(group="g", namesrv=group.namesrv, ...) as consumer:
    group.put(3)
    await group.kill(group.master)
    group.slave.become(READ, reader=group.slave, term=1)
"""

from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from tanist.model.reading import FULL, NONE, permission_name
from tanist.model.route import MASTER_ID, BrokerData, MessageQueue, QueueData, TopicRouteData
from tanist.model.topics import READ, RETRY_PREFIX
from tanist.protocol.bodies.base import encode_body
from tanist.protocol.bodies.client import ConsumerList, HeartbeatData, LockedQueues, QueueLocks
from tanist.protocol.codes import RequestCode as C
from tanist.protocol.codes import ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.common import QueueOffsetResponse
from tanist.protocol.headers.offsets import (
    ConsumerOffsetResponse,
    QueryConsumerOffsetRequest,
    UpdateConsumerOffsetRequest,
)
from tanist.protocol.headers.pull import PullMessageRequest, PullMessageResponse
from tanist.protocol.headers.reading import ReadStandingRequest, ReadStandingResponse
from tanist.protocol.java_json import decode_java_json
from tanist.protocol.response_errors import NotReadable
from tanist.remoting import Connection, Handler, RemotingServer
from tests.support.messages import TOPIC
from tests.support.received import at, records
from tests.support.remoting import serving

BROKER = "broker-a"
QUEUE = MessageQueue(topic=TOPIC, broker_name=BROKER, queue_id=0)


@dataclass(eq=False)
class PlayedReader:
    """One broker. It serves consumers only while it may be read, and counts what it is asked."""

    group: "PlayedReaders"
    permission: int = NONE
    reader: "PlayedReader | None" = None
    """Who is read, as this one knows."""
    term: int = 0
    is_foreign: bool = False
    """It is of another kind, and does not know who is read."""
    server: RemotingServer = field(init=False)
    address: str = ""
    asked: list[tuple[int, Command]] = field(default_factory=list[tuple[int, Command]])
    refused: Counter[int] = field(default_factory=Counter[int])
    members: dict[Connection, str] = field(default_factory=dict[Connection, str])
    others: set[str] = field(default_factory=set[str])
    """Members that it lists beside those that are connected."""
    unlisted: set[str] = field(default_factory=set[str])
    """Members that it does not list."""
    is_deaf: bool = False
    """It takes commits, and does not say so."""
    offsets: dict[str, int] = field(default_factory=dict[str, int])
    parked: list[tuple[Command, Connection]] = field(default_factory=list[tuple[Command, Connection]])
    connections: set[Connection] = field(default_factory=set[Connection])

    @property
    def handlers(self) -> dict[int, Handler]:
        serve: dict[int, Callable[[Command, Connection], Command | None]] = {
            C.HEART_BEAT: self._on_heartbeat,
            C.GET_CONSUMER_LIST_BY_GROUP: self._on_members,
            C.QUERY_CONSUMER_OFFSET: self._on_query,
            C.UPDATE_CONSUMER_OFFSET: self._on_commit,
            C.PULL_MESSAGE: self._on_pull,
            C.LOCK_BATCH_MQ: self._on_lock,
        }
        gated: dict[int, Handler] = {code: self._gate(handler) for code, handler in serve.items()}
        return {
            **gated,
            C.GET_READ_STANDING: self._note(self._on_standing),
            C.UNREGISTER_CLIENT: self._note(lambda request, _: request.reply()),
            C.UNLOCK_BATCH_MQ: self._note(lambda request, _: request.reply()),
            C.GET_MIN_OFFSET: self._note(lambda request, _: request.reply(header=_offset(0))),
            C.GET_MAX_OFFSET: self._note(
                lambda request, _: request.reply(header=_offset(self.group.log_count))
            ),
        }

    def count(self, code: C) -> int:
        return sum(asked == code for asked, _ in self.asked)

    def pulls(self) -> list[int]:
        """The offsets of the pulls of the topic that it did not refuse."""
        return [
            request.header(PullMessageRequest).queue_offset
            for code, request in self.asked
            if code == C.PULL_MESSAGE and request.header(PullMessageRequest).topic == TOPIC
        ]

    def become(self, permission: int, *, reader: "PlayedReader | None", term: int) -> None:
        """Let it be read, or not; whoever waits here is told."""
        self.permission, self.reader, self.term = permission, reader, term
        self.look_again()

    def look_again(self) -> None:
        """Answer those who wait, as far as there is an answer now."""
        parked, self.parked = self.parked, []
        for request, connection in parked:
            handle = self._on_standing if request.code == C.GET_READ_STANDING else self._on_parked_pull
            answer = handle(request, connection)
            if answer is not None and connection.is_open:
                connection.send(answer)

    def hang_up(self) -> None:
        """Close all connections, and go on serving."""
        for connection in tuple(self.connections):
            connection.close("its consumers are to go elsewhere")

    def on_close(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self.members.pop(connection, None)

    def _note(self, handler: Callable[[Command, Connection], Command | None]) -> Handler:
        def handle(request: Command, connection: Connection) -> Command | None:
            request.body = bytes(request.body)
            self.connections.add(connection)
            self.asked.append((request.code, request))
            if self.is_foreign and request.code == C.GET_READ_STANDING:
                return request.reply(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark="not known here")
            return handler(request, connection)

        return handle

    def _gate(self, handler: Callable[[Command, Connection], Command | None]) -> Handler:
        def handle(request: Command, connection: Connection) -> Command | None:
            return handler(request, connection) if self.permission & READ else self._refuse(request)

        return self._note(handle)

    def _refuse(self, request: Command) -> Command:
        self.refused[request.code] += 1
        if self.is_foreign:
            return request.reply(ResponseCode.NO_PERMISSION, remark="the broker is not readable")
        reader = self.reader.address if self.reader is not None else None
        refusal = NotReadable(
            f"{self.address} is not readable: so the test says", reader_address=reader, term=self.term
        )
        return request.reply(refusal.code, ext=refusal.ext, remark=refusal.remark)

    def _on_heartbeat(self, request: Command, connection: Connection) -> Command:
        self.members[connection] = decode_java_json(request.body, HeartbeatData).client_id
        return request.reply()

    def _on_members(self, request: Command, _connection: Connection) -> Command:
        members = sorted({*self.members.values(), *self.others} - self.unlisted)
        return request.reply(body=encode_body(ConsumerList(client_ids=members)))

    def _on_lock(self, request: Command, _connection: Connection) -> Command:
        return request.reply(
            body=encode_body(LockedQueues(queues=decode_java_json(request.body, QueueLocks).queues))
        )

    def _on_query(self, request: Command, _connection: Connection) -> Command:
        offset = self.offsets.get(request.header(QueryConsumerOffsetRequest).topic)
        if offset is None:
            return request.reply(ResponseCode.QUERY_NOT_FOUND, remark="never committed")
        return request.reply(header=ConsumerOffsetResponse(consumer_offset=at(offset)))

    def _on_commit(self, request: Command, _connection: Connection) -> Command | None:
        commit = request.header(UpdateConsumerOffsetRequest)
        self.offsets[commit.topic] = commit.consumer_offset
        return None if self.is_deaf else request.reply()

    def _on_pull(self, request: Command, connection: Connection) -> Command | None:
        pull = request.header(PullMessageRequest)
        if connection not in self.members:
            self.refused[request.code] += 1
            return request.reply(ResponseCode.SUBSCRIPTION_NOT_EXIST, remark="who are you?")
        is_empty = pull.topic.startswith(RETRY_PREFIX) or pull.queue_id
        end = 0 if is_empty else self.group.log_count
        if pull.queue_offset >= end:
            self.parked.append((request, connection))
            return None
        offsets = range(pull.queue_offset, min(end, pull.queue_offset + pull.max_message_count))
        header = PullMessageResponse(
            suggested_broker_id=MASTER_ID,
            next_begin_offset=at(offsets.stop),
            min_offset=at(0),
            max_offset=at(end),
        )
        return request.reply(header=header, body=records(offsets))

    def _on_parked_pull(self, request: Command, connection: Connection) -> Command | None:
        if not self.permission & READ:
            return self._refuse(request)
        return self._on_pull(request, connection)

    def _on_standing(self, request: Command, connection: Connection) -> Command | None:
        question = request.header(ReadStandingRequest)
        reader = self.reader.address if self.reader is not None else None
        is_news = self.permission & READ or reader not in (None, question.known_reader, self.address)
        if question.wait_ms and not is_news:
            self.parked.append((request, connection))
            return None
        header = ReadStandingResponse(
            permission=permission_name(self.permission),
            is_coordinated=True,
            reader_address=reader,
            read_term=self.term,
        )
        return request.reply(header=header)


class PlayedReaders:
    """A master that is read and a slave that is not, with a name server. ``ids`` are what the route says."""

    def __init__(self, *, queue_count: int = 1) -> None:
        """All messages are in the first queue."""
        self.log_count = 0
        self._queue_count = queue_count
        self.master, self.slave = PlayedReader(self), PlayedReader(self)
        self.ids = {MASTER_ID: self.master, 1: self.slave}
        self.namesrv = ""

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator["PlayedReaders"]:
        async with AsyncExitStack() as stack:
            for broker in (self.master, self.slave):
                broker.server = await stack.enter_async_context(
                    serving(broker.handlers, on_close=broker.on_close)
                )
                broker.address = f"127.0.0.1:{broker.server.port}"
            self.names = await stack.enter_async_context(serving({C.GET_ROUTEINFO_BY_TOPIC: self._on_route}))
            self.namesrv = f"127.0.0.1:{self.names.port}"
            self.master.become(FULL, reader=self.master, term=0)
            self.slave.become(NONE, reader=self.master, term=0)
            yield self

    def put(self, count: int) -> None:
        """Let there be more messages."""
        self.log_count += count
        for broker in (self.master, self.slave):
            broker.look_again()

    async def kill(self, broker: PlayedReader) -> None:
        """End it; the name server does not see that unless the test changes ``ids``."""
        await broker.server.close(grace_s=0)

    def _on_route(self, request: Command, _connection: Connection) -> Command:
        addresses = {number: broker.address for number, broker in self.ids.items()}
        count = self._queue_count
        route = TopicRouteData(
            queue_datas=[
                QueueData(broker_name=BROKER, read_queue_count=count, write_queue_count=count, perm=6)
            ],
            broker_datas=[BrokerData(cluster="c", broker_name=BROKER, broker_addrs=addresses)],
        )
        return request.reply(body=encode_body(route))


def _offset(offset: int) -> QueueOffsetResponse:
    return QueueOffsetResponse(queue_offset=at(offset))
