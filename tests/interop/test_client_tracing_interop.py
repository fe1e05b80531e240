"""RocketMQ's operator command reads what Tanist's clients tell of their messages."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tanist.client import Consumer, Message, Producer, Start
from tanist.testing import EmbeddedBroker
from tests.support.looking_up import find_traces
from tests.support.rocketmq import RocketMQ
from tests.support.rocketmq.cluster import mqadmin_each
from tests.support.rocketmq.jars import CLIENT_LINES

pytestmark = pytest.mark.partner("java", "maven")


async def trace_some(namesrv: str, address: str) -> list[str]:
    """Send and consume some messages, and wait until their traces can be found. Gives the messages' ids."""
    async with Producer(group="py-orders", namesrv=namesrv, timeout_s=30, trace=True) as producer:
        one = await producer.send(Message("OrderTopic", b"paid", tags="paid", keys=["o-17"]))
        batch = await producer.send_batch([Message("OrderTopic", b"1"), Message("OrderTopic", b"2")])
    ids = [one.message_id, *batch.message_id.split(",")]
    topics = {"OrderTopic": "*"}
    async with Consumer(
        group="py-billing", namesrv=namesrv, timeout_s=30, topics=topics, start=Start.FIRST, trace=True
    ) as consumer:
        left = set(ids)
        async for message in consumer:
            left.discard(message.message_id)
            if not left:
                break
    for message_id in ids:
        await find_traces(address, message_id, count=3)
    return ids


def queries(ids: Sequence[str]) -> list[tuple[str, ...]]:
    return [("queryMsgTraceById", "-i", message_id) for message_id in ids]


def assert_shown(printed: Sequence[str]) -> None:
    for text in printed:
        assert re.search(r"^Pub +py-orders +127\.0\.0\.1 .* success", text, re.MULTILINE), text
        assert re.search(r"^Sub +py-billing +127\.0\.0\.1 .* success", text, re.MULTILINE), text


@pytest.mark.parametrize("line", CLIENT_LINES)
def test_mqadmin_shows_the_traces_of_tanist_clients(line: str, tmp_path: Path) -> None:
    with EmbeddedBroker() as broker:
        ids = asyncio.run(trace_some(broker.namesrv, broker.address))
        assert_shown(mqadmin_each(broker.namesrv, *queries(ids), home=tmp_path, line=line))


def test_mqadmin_shows_the_traces_that_tanist_clients_sent_to_rocketmq(rocketmq: RocketMQ) -> None:
    broker = rocketmq.start_broker()
    ids = asyncio.run(trace_some(rocketmq.name_server, broker.address))
    assert_shown(rocketmq.mqadmin_each(*queries(ids)))
