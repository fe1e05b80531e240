"""A consumer of a master and its slave, of which one is read at a time."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from tanist.client import Consumer, NoRoute, Start
from tanist.model.reading import FULL, NONE
from tanist.model.topics import READ, TopicConfig
from tanist.nameserver import NameServer, NameServerSettings
from tests.support.consuming import DEADLINE_S, TOPIC, Handled, in_loop, own_queues, send, until
from tests.support.right_broker import RightBroker, right_broker

TOPICS = (TopicConfig(topic_name=TOPIC),)


async def _send_when_it_is_routed(namesrv: str, count: int, *, start: int) -> list[bytes]:
    """Send as soon as the name server has a broker that takes messages."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            with suppress(NoRoute):
                return await send(namesrv, count, start=start)
            await asyncio.sleep(0.01)


def _committed(broker: RightBroker) -> int:
    return sum(broker.state.offsets.queues("billing", TOPIC).values())


def _is_in_step(slave: RightBroker, master: RightBroker) -> bool:
    return slave.state.store.log.log_end == master.state.store.log.log_end


@pytest.mark.behaviour("S3-13")
@pytest.mark.behaviour("S3-53")
def test_each_message_comes_once_while_reading_goes_to_the_slave_and_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        names = NameServer(NameServerSettings(listen_port=0, kv_config_path=str(tmp_path / "kv.json")))
        handled = Handled()
        async with (
            names.serving(),
            right_broker(tmp_path, names.address, 0, topics=TOPICS) as master,
            right_broker(tmp_path, names.address, 1) as slave,
        ):
            master.permit(FULL, term=0)
            slave.permit(NONE, reader=master.address, term=0)
            sent = await send(names.address, 20)
            async with Consumer(
                group="billing", namesrv=names.address, topics={TOPIC: "*"}, start=Start.FIRST
            ) as consumer:
                await consumer.commit()
                running = consumer._open().session.tasks.start(consumer.run(handled), "handling")
                await until(lambda: len(handled.messages) == 20)
                queues = own_queues(consumer)
                sent += await send(names.address, 20, start=20)
                await until(lambda: _is_in_step(slave, master))
                slave.permit(READ, term=1)
                master.permit(NONE, reader=slave.address, term=1)
                await until(lambda: set(handled.bodies) == set(sent))
                await consumer.commit()
                assert _committed(slave) == 40
                # For a moment nobody is read. The master takes messages again before it is read.
                slave.permit(NONE, reader=master.address, term=1)
                master.permit(FULL, term=1)
                sent += await _send_when_it_is_routed(names.address, 20, start=40)
                await until(lambda: set(handled.bodies) == set(sent))
                assert own_queues(consumer) == queues
                await consumer.commit()
                assert _committed(master) == 60
                running.cancel()
        assert len(handled.messages) == 60

    in_loop(scenario())
