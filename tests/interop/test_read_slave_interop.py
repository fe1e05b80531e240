"""A slave that is read in its master's place, for stock clients, at a name server of RocketMQ's own."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tanist.model.reading import FULL, NONE
from tanist.model.topics import READ, TopicConfig
from tests.support.right_broker import RightBroker, right_broker
from tests.support.rocketmq.cluster import RocketMQ
from tests.support.rocketmq.stock_client import StockClients
from tests.support.site import bodies, is_sent, numbered, wait_until
from tests.support.topics import shown_group

pytestmark = pytest.mark.partner("java", "maven")

GROUP, QUEUES = "billing", 4


def _committed(broker: RightBroker, topic: str) -> int:
    return sum(broker.state.offsets.queues(GROUP, topic).values())


async def _wait_until(is_so: Callable[[], bool]) -> None:
    await asyncio.to_thread(wait_until, is_so)


def _consume(clients: StockClients, names: str, topic: str, *, failures: int) -> set[bytes]:
    """The 20 messages that a group gets, each once more than it fails; it commits them when it leaves."""
    with clients.push_consumer(names, GROUP, topic, failures=failures) as consumer:
        # What can not be sent back may go round by another broker: a new route, queues, and 10 s of delay.
        wait_until(lambda: len(consumer.received(20)) == 20 * (failures + 1), timeout_s=180)
        return bodies(consumer.received(20))


@pytest.mark.takes(16)
def test_a_stock_consumer_goes_on_at_a_slave_at_the_masters_place_and_commits_there(
    clients: StockClients, shared_rocketmq: RocketMQ, tmp_path: Path
) -> None:
    names, name = shared_rocketmq.name_server, f"read-{clients.line}"
    topic = f"orders-of-{name}".replace(".", "_")
    topics = (TopicConfig(topic_name=topic, read_queue_count=QUEUES, write_queue_count=QUEUES),)
    early, late = numbered(20), numbered(20, start=20)

    def shown() -> tuple[dict[int, str], int] | None:
        return shown_group(names, topic)

    def consume(*, failures: int) -> Awaitable[set[bytes]]:
        return asyncio.to_thread(_consume, clients, names, topic, failures=failures)

    async def scenario(send: Callable[..., object]) -> None:
        async with right_broker(tmp_path, names, 1, broker_name=name) as slave:
            slave.permit(NONE)
            async with right_broker(tmp_path, names, 0, broker_name=name, topics=topics) as master:
                master.permit(FULL)
                await _wait_until(lambda: shown() == ({0: master.address, 1: slave.address}, FULL))
                await asyncio.to_thread(send, topic, early)
                assert await consume(failures=0) == bodies(early)
                await asyncio.to_thread(send, topic, late)
                await _wait_until(lambda: slave.state.store.log.log_end == master.state.store.log.log_end)
                await _wait_until(lambda: _committed(slave, topic) == 20)
                # As if the master stood still: name servers still have it, and forget it only later.
                slave.permit(READ)
                await _wait_until(lambda: shown() == ({0: slave.address}, READ))
            assert not await asyncio.to_thread(is_sent, lambda: send(topic, numbered(1, start=99)))
            # No message can be sent back: the client keeps it, and tries again.
            assert await consume(failures=1) == bodies(late)
            await _wait_until(lambda: _committed(slave, topic) == 40)
            slave.permit(NONE)
            await _wait_until(lambda: shown() == ({1: slave.address}, READ))

    with clients.producer(names, retries=0) as producer:
        asyncio.run(scenario(producer.send))
