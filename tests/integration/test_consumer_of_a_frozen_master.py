"""A consumer whose pulls wait at a master that freezes: it goes on long before they would end."""

import asyncio
from pathlib import Path

import pytest

from tanist.client import Consumer, Start
from tanist.protocol import ResponseCode
from tests.support.attacked import wait_until
from tests.support.consuming import TOPIC, in_loop
from tests.support.requests import send_request
from tests.support.tanist_cluster import BrokerProcess
from tests.support.tanist_group import GroupProcess
from tests.support.topics import create_topic
from tests.support.wire import Wire

PULL_ENDS_S = 30.0
"""A pull that nobody answers."""


def _send(broker: BrokerProcess, body: bytes) -> None:
    """As soon as the broker serves as master."""
    with Wire(broker.address) as wire:
        wait_until(lambda: wire.ask(send_request(body, topic=TOPIC)).code == ResponseCode.SUCCESS)


@pytest.mark.takes(20)
def test_a_consumer_goes_on_while_its_master_is_frozen(tmp_path: Path) -> None:
    async def scenario(group: GroupProcess) -> None:
        namesrv, old = group.names.address, group.master()
        async with Consumer(
            group="billing", namesrv=namesrv, topics={TOPIC: "*"}, start=Start.FIRST
        ) as consumer:
            await asyncio.to_thread(_send, old, b"before")
            messages = aiter(consumer)
            assert (await anext(messages)).body == b"before"
            old.pause()
            new = await asyncio.to_thread(group.wait_for_master, besides=old)
            await asyncio.to_thread(_send, new, b"after")
            async with asyncio.timeout(PULL_ENDS_S / 2):
                assert (await anext(messages)).body == b"after"
            old.resume()

    with GroupProcess(tmp_path) as group:
        create_topic(group.master().address, TOPIC, queue_count=1)
        in_loop(scenario(group))
