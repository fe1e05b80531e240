"""A producer and Tanist brokers, over sockets: every way of sending, and what a consumer would read."""

import asyncio
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tanist.client import (
    Credentials,
    InvalidArgument,
    Message,
    NoRoute,
    Producer,
    Receipt,
    SendFailed,
    SendStatus,
)
from tanist.client.received import ReceivedMessage, decode_messages
from tanist.errors import ConnectFailed
from tanist.model.route import MessageQueue
from tanist.protocol import ResponseCode
from tanist.protocol.response_errors import NoPermission, TopicNotFound
from tests.support.acl import KEY, PLAIN_ACL, SECRET
from tests.support.conditions import until
from tests.support.requests import pull_request
from tests.support.site import wait_until
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess
from tests.support.wire import Wire

T = "Orders"


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NameServerProcess]:
    with NameServerProcess(tmp_path_factory.mktemp("ns")) as server:
        yield server


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, names: NameServerProcess) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker"), names.address) as process:
        yield process
    assert "Traceback" not in process.process.output()


def read(broker: BrokerProcess, topic: str, queue_id: int = 0) -> list[ReceivedMessage]:
    """All messages of a queue."""
    queue = MessageQueue(topic=topic, broker_name=broker.name, queue_id=queue_id)
    found: list[ReceivedMessage] = []
    with Wire(broker.address) as wire:
        while True:
            answer = wire.ask(pull_request(len(found), topic=topic, queue_id=queue_id))
            if answer.code != ResponseCode.SUCCESS:
                return found
            found += decode_messages(memoryview(answer.body), queue)


def read_one(broker: BrokerProcess, receipt: Receipt) -> ReceivedMessage:
    queue = receipt.queue
    return read(broker, queue.topic, queue.queue_id)[receipt.queue_offset]


def read_topic(broker: BrokerProcess, topic: str) -> list[ReceivedMessage]:
    return [message for queue_id in range(4) for message in read(broker, topic, queue_id)]


def test_a_message_arrives_as_it_was_sent_and_lies_where_the_receipt_says(
    names: NameServerProcess, broker: BrokerProcess
) -> None:
    message = Message(
        T, "bezahlt: 3 €".encode(), tags="paid", keys=["o-17", "c-3"], properties={"shop": "Köln"}, flag=5
    )

    async def scenario() -> Receipt:
        async with Producer(group="g", namesrv=names.address) as producer:
            return await producer.send(message)

    receipt = asyncio.run(scenario())
    assert receipt.status is SendStatus.OK
    stored = read_one(broker, receipt)
    assert stored.body == message.body
    assert (stored.topic, stored.tags, stored.keys, stored.flag) == (T, "paid", ["o-17", "c-3"], 5)
    assert stored.properties["shop"] == "Köln"
    assert stored.message_id == receipt.message_id
    assert stored.offset_id == receipt.offset_id


def test_messages_with_one_sharding_key_keep_their_order_in_one_queue(
    names: NameServerProcess, broker: BrokerProcess
) -> None:
    async def scenario() -> list[Receipt]:
        async with Producer(group="g", namesrv=names.address) as producer:
            await producer.send(Message("Ordered", b"first"))
            sends = (
                producer.send(Message("Ordered", b"%d" % number, sharding_key=f"o-{number % 5}"))
                for number in range(200)
            )
            return await asyncio.gather(*sends)

    receipts = asyncio.run(scenario())
    for key in range(5):
        of_key = receipts[key::5]
        assert len({receipt.queue for receipt in of_key}) == 1
        offsets = [receipt.queue_offset for receipt in of_key]
        assert offsets == sorted(offsets)
    stored = read_one(broker, receipts[7])
    assert (stored.body, stored.sharding_key) == (b"7", "o-2")


def test_a_message_goes_to_the_queue_that_is_chosen(names: NameServerProcess, broker: BrokerProcess) -> None:
    queue = MessageQueue(topic="Chosen", broker_name=broker.name, queue_id=3)

    async def scenario() -> None:
        async with Producer(group="g", namesrv=names.address) as producer:
            receipts = [await producer.send(Message("Chosen", b"x"), queue=queue) for _ in range(5)]
            assert {receipt.queue for receipt in receipts} == {queue}
            missing = MessageQueue(topic="Chosen", broker_name=broker.name, queue_id=99)
            with pytest.raises(InvalidArgument, match="queue="):
                await producer.send(Message("Chosen", b"x"), queue=missing)
            elsewhere = MessageQueue(topic="Chosen", broker_name="nobody", queue_id=0)
            with pytest.raises(NoRoute, match="broker nobody"):
                await producer.send(Message("Chosen", b"x"), queue=elsewhere)

    asyncio.run(scenario())
    assert len(read(broker, "Chosen", 3)) == 5


def test_the_messages_of_a_batch_follow_each_other_and_keep_their_ids(
    names: NameServerProcess, broker: BrokerProcess
) -> None:
    messages = [
        Message("Batch", b"%d" % number, tags=f"t{number}", keys=[f"k{number}"]) for number in range(50)
    ]

    async def scenario() -> Receipt:
        async with Producer(group="g", namesrv=names.address) as producer:
            return await producer.send_batch(messages)

    receipt = asyncio.run(scenario())
    stored = read(broker, "Batch", receipt.queue.queue_id)[receipt.queue_offset :]
    assert [message.body for message in stored] == [message.body for message in messages]
    assert [message.tags for message in stored] == [message.tags for message in messages]
    assert ",".join(message.message_id for message in stored) == receipt.message_id
    assert ",".join(message.offset_id for message in stored) == receipt.offset_id


@pytest.mark.parametrize("compression", ["zlib", "lz4", "zstd"])
def test_a_compressed_body_is_read_as_it_was(
    names: NameServerProcess, broker: BrokerProcess, compression: str
) -> None:
    body = os.urandom(1000) * 20

    async def scenario() -> Receipt:
        async with Producer(group="g", namesrv=names.address, compression=compression) as producer:
            return await producer.send(Message("Compressed", body))

    stored = read_one(broker, asyncio.run(scenario()))
    assert stored.body == body
    assert stored.stored_bytes < 4000


def test_one_way_messages_arrive(names: NameServerProcess, broker: BrokerProcess) -> None:
    async def scenario() -> None:
        async with Producer(group="g", namesrv=names.address) as producer:
            for number in range(500):
                await producer.send_oneway(Message("OneWay", b"%d" % number))
            await producer.send(Message("OneWay", b"last"))

    asyncio.run(scenario())
    wait_until(lambda: len(read_topic(broker, "OneWay")) == 501)
    assert {message.body for message in read_topic(broker, "OneWay")} == {
        b"last",
        *(b"%d" % number for number in range(500)),
    }


def test_delayed_messages_come_when_they_are_due(names: NameServerProcess, broker: BrokerProcess) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=2)
    late = {
        b"level": Message("Late", b"level", delay_level=1),
        b"delay": Message("Late", b"delay", delay_s=2),
        b"time": Message("Late", b"time", deliver_at=soon),
    }

    async def scenario() -> None:
        async with Producer(group="g", namesrv=names.address) as producer:
            for message in late.values():
                await producer.send(message)
            await producer.send(Message("Late", b"now", deliver_at=soon - timedelta(hours=1)))

    asyncio.run(scenario())
    assert [message.body for message in read_topic(broker, "Late")] == [b"now"]
    wait_until(lambda: len(read_topic(broker, "Late")) == 4)
    for message in read_topic(broker, "Late"):
        if message.body == b"now":
            continue
        least_ms = 2000 if message.body == b"delay" else 0
        assert message.store_timestamp_ms - message.born_timestamp_ms >= least_ms - 1000
        assert message.body in late
    (timed,) = [message for message in read_topic(broker, "Late") if message.body == b"time"]
    assert timed.store_timestamp_ms >= int(soon.timestamp()) * 1000 - 1000


def test_ten_thousand_sends_at_once_are_all_stored_once(
    names: NameServerProcess, broker: BrokerProcess
) -> None:
    async def scenario() -> list[Receipt]:
        async with Producer(group="g", namesrv=names.address, timeout_s=60) as producer:
            sends = (producer.send(Message("Many", b"%d" % number)) for number in range(10_000))
            return await asyncio.gather(*sends)

    receipts = asyncio.run(scenario())
    assert len({(receipt.queue, receipt.queue_offset) for receipt in receipts}) == 10_000
    assert sorted(int(message.body) for message in read_topic(broker, "Many")) == list(range(10_000))


def test_the_route_of_a_topic_that_a_send_created_is_learnt(
    names: NameServerProcess, broker: BrokerProcess
) -> None:
    async def scenario() -> None:
        async with Producer(group="g", namesrv=names.address) as producer:
            await producer.send(Message("Fresh", b"x"))
            table = producer._parts().session.routes.table
            await until(lambda: table.get("Fresh") is not None, timeout_s=30)

    asyncio.run(scenario())


def test_a_topic_that_brokers_do_not_make_is_not_found(tmp_path: Path) -> None:
    async def scenario(address: str) -> None:
        async with Producer(group="g", namesrv=address) as producer:
            with pytest.raises(TopicNotFound):
                await producer.send(Message("Unknown", b"x"))

    with (
        NameServerProcess(tmp_path / "ns") as own,
        BrokerProcess(tmp_path / "broker", own.address, autoCreateTopicEnable="false"),
    ):
        asyncio.run(scenario(own.address))


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[NameServerProcess, BrokerProcess, BrokerProcess]]:
    with (
        NameServerProcess(tmp_path / "ns") as own,
        BrokerProcess(tmp_path / "a", own.address, name="broker-a") as first,
        BrokerProcess(tmp_path / "b", own.address, name="broker-b") as second,
    ):
        yield own, first, second


def test_sends_go_on_at_the_other_broker_when_one_is_killed(
    pair: tuple[NameServerProcess, BrokerProcess, BrokerProcess],
) -> None:
    own, first, second = pair

    async def scenario() -> list[Receipt]:
        async with Producer(group="g", namesrv=own.address, timeout_s=30) as producer:
            receipts = [await producer.send(Message(T, b"before")) for _ in range(16)]
            assert {receipt.queue.broker_name for receipt in receipts} == {"broker-a", "broker-b"}
            sends = [asyncio.ensure_future(producer.send(Message(T, b"%d" % n))) for n in range(2000)]
            await until(lambda: sum(send.done() for send in sends) > 100, timeout_s=60)
            first.kill()
            after = await asyncio.gather(*sends)
            later = [await producer.send(Message(T, b"later")) for _ in range(20)]
            assert {receipt.queue.broker_name for receipt in later} == {"broker-b"}
            return after

    receipts = asyncio.run(scenario())
    bodies = {message.body for message in read_topic(second, T)}
    for number, receipt in enumerate(receipts):
        if receipt.queue.broker_name == "broker-b":
            assert b"%d" % number in bodies


def test_a_broker_that_comes_back_is_used_again(tmp_path: Path, names: NameServerProcess) -> None:
    with NameServerProcess(tmp_path / "ns") as own, BrokerProcess(tmp_path / "a", own.address) as only:

        async def scenario() -> None:
            async with Producer(group="g", namesrv=own.address, timeout_s=30) as producer:
                await producer.send(Message(T, b"before"))
                only.kill()
                with pytest.raises(SendFailed) as failed:
                    await producer.send(Message(T, b"while it is away"), timeout_s=1)
                assert isinstance(failed.value.__cause__, ConnectFailed)
                only.restart()
                assert (await producer.send(Message(T, b"after"))).status is SendStatus.OK

        asyncio.run(scenario())


def test_a_producer_signs_what_it_sends(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yml"
    rules.write_text(PLAIN_ACL)

    async def scenario(address: str) -> None:
        known = Credentials(KEY, SECRET)
        async with Producer(group="g", namesrv=address, credentials=known, timeout_s=30) as producer:
            assert (await producer.send(Message("Both", b"x", tags="a"))).status is SendStatus.OK
            await producer.send_batch([Message("Both", b"1"), Message("Both", b"2")])
            with pytest.raises(SendFailed) as failed:
                await producer.send(Message("Denied", b"x"))
            assert isinstance(failed.value.__cause__, NoPermission)
        stranger = Credentials(KEY, "not-the-secret")
        async with Producer(group="g", namesrv=address, credentials=stranger, timeout_s=30) as producer:
            with pytest.raises(SendFailed) as failed:
                await producer.send(Message("Both", b"x"))
            assert isinstance(failed.value.__cause__, NoPermission)
            assert "not-the-secret" not in str(failed.value)

    with (
        NameServerProcess(tmp_path / "ns") as own,
        BrokerProcess(tmp_path / "broker", own.address, aclEnable="true", aclConfigPath=rules),
    ):
        asyncio.run(scenario(own.address))
