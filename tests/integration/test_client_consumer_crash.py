"""Consumers whose broker is killed: they go on by themselves, and nothing is lost."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.client import Consumer, MessageQueue, Start
from tanist.protocol import Command, RequestCode
from tanist.protocol.bodies.base import encode_body
from tanist.protocol.bodies.client import LockedQueues, QueueLocks
from tanist.protocol.java_json import decode_java_json
from tanist.remoting import RemotingClient
from tests.support.consuming import TOPIC, Handled, in_loop, own_queues, send, until
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess


@pytest.fixture
def names(tmp_path: Path) -> Iterator[NameServerProcess]:
    with NameServerProcess(tmp_path / "ns") as names:
        yield names


@pytest.fixture
def broker(tmp_path: Path, names: NameServerProcess) -> Iterator[BrokerProcess]:
    with BrokerProcess(
        tmp_path / "broker", names.address, flushDiskType="SYNC_FLUSH", defaultTopicQueueNums=4
    ) as process:
        yield process
        assert "Traceback" not in process.process.output()


@pytest.mark.parametrize("orderly", [False, True], ids=["concurrent", "orderly"])
def test_consumption_goes_on_when_a_killed_broker_is_back(
    names: NameServerProcess, broker: BrokerProcess, orderly: bool
) -> None:
    async def scenario() -> None:
        sent = await send(names.address, 40)
        handled = Handled()
        async with Consumer(
            group="billing", namesrv=names.address, topics={TOPIC: "*"}, start=Start.FIRST, orderly=orderly
        ) as consumer:
            runs = asyncio.create_task(consumer.run(handled))
            await until(lambda: set(handled.bodies) == set(sent))
            broker.kill()
            await asyncio.to_thread(broker.restart)
            sent += await send(names.address, 40, start=40)
            await until(lambda: set(handled.bodies) == set(sent))
            await consumer.commit()
        await runs
        came = len(handled.messages)
        more = await send(names.address, 4, start=80)
        # What was committed after the crash does not come again.
        async with Consumer(group="billing", namesrv=names.address, topics={TOPIC: "*"}) as consumer:
            runs = asyncio.create_task(consumer.run(handled))
            await until(lambda: set(handled.bodies) >= set(more))
        await runs
        assert len(handled.messages) == came + 4

    in_loop(scenario())


def test_in_order_a_broker_that_is_back_hears_at_once_whose_its_queues_are(
    names: NameServerProcess, broker: BrokerProcess
) -> None:
    async def scenario() -> None:
        await send(names.address, 4)
        handled = Handled()
        async with Consumer(
            group="billing", namesrv=names.address, topics={TOPIC: "*"}, start=Start.FIRST, orderly=True
        ) as consumer:
            runs = asyncio.create_task(consumer.run(handled))
            await until(lambda: len(handled.messages) == 4)
            queues = sorted(own_queues(consumer))
            broker.kill()
            await asyncio.to_thread(broker.restart)
            # Locks are renewed every 20 s; this is long before, and nobody else gets them now.
            await send(names.address, 4, start=4)
            await until(lambda: len(handled.messages) >= 8, timeout_s=15)
            assert await try_to_lock(broker.address, queues) == []
        await runs
        assert sorted(await try_to_lock(broker.address, queues)) == queues

    in_loop(scenario())


async def try_to_lock(address: str, queues: list[MessageQueue]) -> list[MessageQueue]:
    """The queues that another member could lock."""
    stranger = RemotingClient()
    try:
        body = encode_body(QueueLocks(client_id="stranger", consumer_group="billing", queues=queues))
        answer = await stranger.request(
            address, Command.request(RequestCode.LOCK_BATCH_MQ, body=body), timeout_s=10
        )
    finally:
        await stranger.close()
    return decode_java_json(answer.body, LockedQueues).queues


def test_closing_ends_in_time_although_the_broker_is_gone(
    names: NameServerProcess, broker: BrokerProcess
) -> None:
    async def scenario() -> None:
        await send(names.address, 4)
        async with Consumer(
            group="billing", namesrv=names.address, topics={TOPIC: "*"}, timeout_s=1.0
        ) as consumer:
            assert consumer.assignment
            broker.kill()
            began_s = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - began_s < 20

    in_loop(scenario())
