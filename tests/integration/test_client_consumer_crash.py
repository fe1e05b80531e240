"""Consumers whose broker is killed: they go on by themselves, and nothing is lost."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.client import Consumer, Start
from tests.support.consuming import TOPIC, Handled, in_loop, send, until
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
