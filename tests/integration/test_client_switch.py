"""A broker's master changes: clients find the new one by asking soon, and sends that wait go on there."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from tanist.client import Message, NoRoute, Producer, SendFailed
from tanist.client.pulling.fetching import Fetcher
from tanist.errors import MQError
from tanist.model.route import MASTER_ID, BrokerData, MessageQueue, QueueData, TopicRouteData
from tanist.model.subscription import subscribe
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies.base import encode_body
from tanist.protocol.response_errors import NotMaster
from tanist.remoting import Connection
from tests.support.conditions import until
from tests.support.fake_cluster import FakeBroker, accept
from tests.support.received import QUEUE, at
from tests.support.remoting import in_time, serving
from tests.support.replicas import refusing, replicas_of, suggesting
from tests.support.requests import GROUP
from tests.support.sessions import open_session

M = Message("T", b"x")
FIRST_QUEUE = MessageQueue(topic="T", broker_name="a", queue_id=0)


class PlayedGroup:
    """Replicas of the broker ``a``, and a name server that knows which one is master."""

    def __init__(self, count: int = 2) -> None:
        self.replicas = [FakeBroker("a") for _ in range(count)]
        self.ids: dict[int, FakeBroker] = dict(enumerate(self.replicas))
        """What the route says."""
        self.asked_count = 0
        self.namesrv = ""

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator["PlayedGroup"]:
        async with AsyncExitStack() as stack:
            for replica in self.replicas:
                replica.server = await stack.enter_async_context(serving(replica.handlers))
            names = await stack.enter_async_context(
                serving({RequestCode.GET_ROUTEINFO_BY_TOPIC: self._on_route})
            )
            self.namesrv = f"127.0.0.1:{names.port}"
            yield self

    async def kill(self, replica: FakeBroker) -> None:
        """End it, and let the name server see that."""
        self.ids = {number: other for number, other in self.ids.items() if other is not replica}
        await replica.server.close(grace_s=0)

    def elect(self, replica: FakeBroker) -> None:
        """Make it the master, and let the name server know."""
        slaves = {number: other for number, other in self.ids.items() if other is not replica and number}
        self.ids = {MASTER_ID: replica, **slaves}

    def _on_route(self, request: Command, _connection: Connection) -> Command:
        self.asked_count += 1
        addresses = {number: replica.address for number, replica in self.ids.items()}
        route = TopicRouteData(
            queue_datas=[QueueData(broker_name="a", read_queue_count=2, write_queue_count=2, perm=6)],
            broker_datas=[BrokerData(cluster="c", broker_name="a", broker_addrs=addresses)],
        )
        return request.reply(body=encode_body(route))


def as_slave(master: FakeBroker | None) -> Callable[[Command], Command]:
    """Refuse as a slave does, and name the master if there is one."""
    address = master.address if master is not None else None
    refusal = NotMaster(ResponseCode.SERVICE_NOT_AVAILABLE, "a slave", master_address=address)
    return lambda request: request.reply(refusal.code, ext=refusal.ext, remark=refusal.remark)


def run(scenario: Callable[[PlayedGroup, Producer], Awaitable[None]], **options: Any) -> None:
    async def play() -> None:
        async with PlayedGroup().serving() as group:
            async with Producer(group="g", namesrv=group.namesrv, **options) as producer:
                await producer.send(M)
                await scenario(group, producer)
            others = asyncio.all_tasks() - {asyncio.current_task()}
            assert not [task for task in others if "tanist/client" in str(task.get_coro())]

    asyncio.run(play())


def test_sends_of_all_kinds_wait_for_the_next_master_and_go_on_there() -> None:
    async def scenario(group: PlayedGroup, producer: Producer) -> None:
        old, new = group.replicas
        await group.kill(old)
        asked_before = group.asked_count
        sends = [
            asyncio.ensure_future(send)
            for send in (
                *(producer.send(M) for _ in range(50)),
                producer.send(M, queue=FIRST_QUEUE),
                producer.send(Message("T", b"x", sharding_key="k")),
                producer.send_batch([M, M]),
            )
        ]
        await until(lambda: group.asked_count > asked_before + 2)
        assert not any(send.done() for send in sends)
        assert not new.sent
        group.elect(new)
        await in_time(asyncio.gather(*sends))
        assert len(new.sent) == len(sends)
        # However many wait, one asks.
        assert group.asked_count - asked_before < 20

    run(scenario, timeout_s=10)


def test_a_send_that_was_under_way_is_tried_again_at_the_next_master() -> None:
    async def scenario(group: PlayedGroup, producer: Producer) -> None:
        old, new = group.replicas
        old.answer = lambda _request: None
        sending = asyncio.ensure_future(producer.send(M))
        await until(lambda: len(old.sent) == 2)
        await group.kill(old)
        group.elect(new)
        await in_time(sending)
        assert len(new.sent) == 1

    run(scenario, timeout_s=10)


def test_a_send_that_waits_at_a_silent_master_is_tried_at_the_next_as_soon_as_there_is_one() -> None:
    async def scenario(group: PlayedGroup, producer: Producer) -> None:
        old, new = group.replicas
        old.answer = lambda _request: None
        with pytest.raises(SendFailed):
            await producer.send(M, timeout_s=0.2)
        # The next message goes to the same master: nobody knows of another yet.
        sending = asyncio.ensure_future(producer.send(M, timeout_s=60))
        await until(lambda: len(old.sent) == 3)
        group.elect(new)
        await in_time(sending)
        assert len(new.sent) == 1

    run(scenario, timeout_s=10)


def test_an_answer_of_a_slow_master_is_waited_for_though_another_takes_its_place() -> None:
    async def scenario(group: PlayedGroup, producer: Producer) -> None:
        old, new = group.replicas
        old.answer = lambda _request: None
        sending = asyncio.ensure_future(producer.send(M, timeout_s=60))
        await until(lambda: len(old.sent) == 2)
        group.elect(new)
        await producer._parts().session.routes.ask("T")
        assert old.connections[-1].is_open
        old.connections[-1].send(accept(old.sent[-1]))
        await in_time(sending)
        assert not new.sent

    run(scenario, timeout_s=10)


def test_a_send_follows_a_refusal_to_the_master_that_it_names_before_the_route_does() -> None:
    async def scenario(group: PlayedGroup, producer: Producer) -> None:
        old, new = group.replicas
        old.answer = as_slave(new)
        await in_time(producer.send(M))
        assert len(new.sent) == 1
        # The route still says otherwise, and only the old master knows better.
        for _ in range(5):
            await in_time(producer.send(M))
        assert len(new.sent) == 6

    run(scenario, timeout_s=10)


def test_a_send_outlasts_a_group_that_has_no_master_for_a_while() -> None:
    async def scenario(group: PlayedGroup, producer: Producer) -> None:
        old, new = group.replicas
        old.answer = new.answer = as_slave(None)
        sending = asyncio.ensure_future(producer.send(M))
        await until(lambda: len(old.sent) > 4)
        new.answer = accept
        group.elect(new)
        await in_time(sending)

    run(scenario, timeout_s=10)


def test_two_replicas_that_name_each_other_are_not_asked_without_end() -> None:
    async def scenario(group: PlayedGroup, producer: Producer) -> None:
        one, other = group.replicas
        one.answer, other.answer = as_slave(other), as_slave(one)
        with pytest.raises(SendFailed, match="a slave"):
            await in_time(producer.send(M, timeout_s=1))
        assert len(one.sent) + len(other.sent) < 20

    run(scenario)


def test_a_master_that_never_comes_ends_a_send_with_its_time() -> None:
    async def scenario(group: PlayedGroup, producer: Producer) -> None:
        await group.kill(group.replicas[0])
        await until(lambda: producer._parts().session.routes.table.master_of("a") is None)
        with pytest.raises(NoRoute, match="takes messages"):
            await in_time(producer.send(M, timeout_s=0.3))
        with pytest.raises(NoRoute):
            await in_time(producer.send(M, queue=FIRST_QUEUE, timeout_s=0.3))

    run(scenario)


def test_closing_the_producer_ends_a_send_that_waits_for_a_master() -> None:
    async def play() -> None:
        async with PlayedGroup().serving() as group:
            async with Producer(group="g", namesrv=group.namesrv, timeout_s=60) as producer:
                await producer.send(M)
                await group.kill(group.replicas[0])
                await until(lambda: producer._parts().session.routes.table.master_of("a") is None)
                sending = asyncio.ensure_future(producer.send(M))
                await asyncio.sleep(0)
            with pytest.raises(MQError):
                await in_time(sending)

    asyncio.run(play())


def test_a_consumer_reads_from_the_next_master_as_soon_as_there_is_one() -> None:
    async def play() -> None:
        async with replicas_of(2) as replicas, open_session(replicas.namesrv) as session:
            fetcher = Fetcher(session, GROUP)
            everything = subscribe(QUEUE.topic, "*", sub_version=1)

            async def fetch(offset: int) -> int:
                fetched = await in_time(fetcher.fetch(QUEUE, at(offset), subscription=everything))
                return fetched.broker_id

            assert await fetch(0) == MASTER_ID
            replicas[1].reply = refusing()
            replicas.named = {1}
            await replicas.stop(0)
            with pytest.raises(MQError):
                await fetch(1)

            new = replicas.by_id[1]
            new.reply = suggesting(0)
            replicas.by_id, replicas.named = {MASTER_ID: new}, {MASTER_ID}
            while session.routes.table.replicas[QUEUE.broker_name] != {MASTER_ID: new.address}:
                await in_time(fetcher.wait_for_route(10))
            assert await fetch(1) == MASTER_ID

    asyncio.run(play())
