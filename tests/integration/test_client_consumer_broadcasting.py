"""Broadcasting consumers: each gets every message, and keeps its offsets in a file of its own."""

import asyncio
import logging
from contextlib import suppress
from pathlib import Path

import pytest

from tanist.client import Consumer, InvalidArgument, MessageQueue, Start
from tanist.client.offsets.offset_file import OffsetFile, encode_offsets
from tanist.client.pulling.fetched import Fetched, Outcome
from tanist.client.pulling.fetching import Fetcher
from tanist.client.queues.rebalancing import PERSIST_S
from tanist.model.offsets import QueueOffset
from tanist.model.topics import OFFSET_MOVED_TOPIC
from tanist.protocol import Command, RequestCode
from tanist.remoting import RemotingClient
from tanist.testing import EmbeddedBroker
from tests.support.consuming import TOPIC, Handled, bodies, in_loop, send, take, until

GROUP = "everywhere"


def make_consumer(broker: EmbeddedBroker, folder: Path, **arguments: object) -> Consumer:
    given: dict[str, object] = {
        "group": GROUP,
        "namesrv": broker.namesrv,
        "topics": {TOPIC: "*"},
        "start": Start.FIRST,
        "broadcasting": True,
        "offsets_dir": folder,
        **arguments,
    }
    return Consumer(**given)  # pyright: ignore[reportArgumentType]


def queue_of(broker: EmbeddedBroker, queue_id: int) -> MessageQueue:
    return MessageQueue(topic=TOPIC, broker_name=broker.broker_name, queue_id=queue_id)


def offset_file(folder: Path, *, instance: str = "DEFAULT") -> Path:
    return folder / f"127.0.0.1@{instance}" / GROUP / "offsets.json"


def kept_offsets(folder: Path, **options: str) -> dict[int, int]:
    """What the file says, by queue id."""
    kept = OffsetFile(offset_file(folder, **options)).read()
    return {queue.queue_id: offset for queue, offset in kept.offsets.items()}


def write_offsets(folder: Path, broker: EmbeddedBroker, offsets: dict[int, int]) -> None:
    path = offset_file(folder)
    path.parent.mkdir(parents=True)
    table = {queue_of(broker, queue_id): QueueOffset(offset) for queue_id, offset in offsets.items()}
    path.write_bytes(encode_offsets(table))


def test_every_member_gets_every_message_and_keeps_its_own_offsets(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 2}) as broker:
            sent = await send(broker.namesrv, 10)
            async with (
                make_consumer(broker, tmp_path, instance="one") as one,
                make_consumer(broker, tmp_path, instance="two") as two,
            ):
                assert sorted(bodies(await take(one, 10))) == sorted(sent)
                assert sorted(bodies(await take(two, 10))) == sorted(sent)
            assert kept_offsets(tmp_path, instance="one") == {0: 5, 1: 5}
            assert kept_offsets(tmp_path, instance="two") == {0: 5, 1: 5}

    in_loop(scenario())


@pytest.mark.behaviour("S4-34")
def test_a_member_goes_on_where_its_file_says(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            await send(broker.namesrv, 5)
            write_offsets(tmp_path, broker, {0: 3})
            async with make_consumer(broker, tmp_path) as consumer:
                assert bodies(await take(consumer, 2)) == [b"3", b"4"]
            await send(broker.namesrv, 1, start=5)
            async with make_consumer(broker, tmp_path) as consumer:
                assert bodies(await take(consumer, 1)) == [b"5"]

    in_loop(scenario())


@pytest.mark.behaviour("S4-27")
def test_offsets_are_kept_every_five_seconds_by_themselves(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            await send(broker.namesrv, 3)
            handled = Handled()
            async with make_consumer(broker, tmp_path) as consumer:
                runs = asyncio.create_task(consumer.run(handled))
                await until(lambda: len(handled.messages) == 3)
                await until(lambda: kept_offsets(tmp_path) == {0: 3}, timeout_s=15)
            await runs

    assert PERSIST_S == 5
    in_loop(scenario())


def test_what_fails_comes_again_to_the_same_member_and_its_offset_waits(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            await send(broker.namesrv, 1)
            failing, other = Handled(failures=1), Handled()
            async with (
                make_consumer(broker, tmp_path, instance="one") as one,
                make_consumer(broker, tmp_path, instance="two") as two,
            ):
                runs = [asyncio.create_task(one.run(failing)), asyncio.create_task(two.run(other))]
                await until(lambda: failing.tries[b"0"] == 1 and other.tries[b"0"] == 1)
                await one.commit()
                assert kept_offsets(tmp_path, instance="one") == {0: 0}
                await until(lambda: failing.bodies == [b"0"])
                await one.commit()
                assert kept_offsets(tmp_path, instance="one") == {0: 1}
            await asyncio.gather(*runs)
            assert other.tries == {b"0": 1}

    in_loop(scenario())


def test_what_fails_too_often_is_given_up_because_there_are_no_dead_letters(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            await send(broker.namesrv, 1)
            failing = Handled(failures=9)
            async with make_consumer(broker, tmp_path, max_retries=1) as consumer:
                runs = asyncio.create_task(consumer.run(failing))
                await until(lambda: failing.tries[b"0"] == 2)
                await until(lambda: "message given up" in caplog.text)
            await runs
            assert kept_offsets(tmp_path) == {0: 1}

    in_loop(scenario())


@pytest.mark.behaviour("S4-40", "S4-41", "S4-44", "S4-45", "S4-47", "S4-48")
def test_a_file_whose_offsets_are_all_too_large_heals_within_one_rebalance(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 8}) as broker:
            for queue_id in (6, 7):
                await send(broker.namesrv, 3, queue=queue_of(broker, queue_id))
            write_offsets(tmp_path, broker, {6: 999_999_999, 7: 999_999_999})
            async with make_consumer(broker, tmp_path) as consumer:
                # Long before the next regular rebalance, which comes after 20 s.
                await until(lambda: {6, 7} <= ids(consumer) and corrections(caplog) == 2, timeout_s=10)
                await until(lambda: kept_offsets(tmp_path).items() >= {(6, 3), (7, 3)}, timeout_s=10)
                for queue_id in (6, 7):
                    await send(broker.namesrv, 1, start=queue_id, queue=queue_of(broker, queue_id))
                assert sorted(bodies(await take(consumer, 2))) == [b"6", b"7"]
                await consumer.commit()
                assert corrections(caplog) == 2
                # Operators are told once of each.
                assert await offset_moved_events(broker, consumer, 2) == 2
            assert kept_offsets(tmp_path) == {**dict.fromkeys(range(6), 0), 6: 4, 7: 4}

    in_loop(scenario())


@pytest.mark.behaviour("S4-36", "S4-44")
def test_a_file_whose_offsets_are_all_too_small_heals_within_one_rebalance(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # Files of the log that hold a few dozen messages, and are old enough to go at once.
    settings = {"mappedFileSizeCommitLog": str(16 << 10), "fileReservedTime": "0"}

    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 2}, settings=settings) as broker:
            sent = await send(broker.namesrv, 600)
            async with make_consumer(broker, tmp_path / "operator") as operator:
                await until_expired(broker, operator)
            write_offsets(tmp_path, broker, {0: 1, 1: 1})
            handled = Handled()
            async with make_consumer(broker, tmp_path) as consumer:
                runs = asyncio.create_task(consumer.run(handled))
                await until(lambda: set(sent[-10:]) <= set(handled.bodies), timeout_s=10)
            await runs
            assert corrections(caplog) == 2
            assert kept_offsets(tmp_path) == {0: 300, 1: 300}

    in_loop(scenario())


async def offset_moved_events(broker: EmbeddedBroker, consumer: Consumer, least: int) -> int:
    """How many events of corrections there are, once there are so many."""
    queue = MessageQueue(topic=OFFSET_MOVED_TOPIC, broker_name=broker.broker_name, queue_id=0)
    async with asyncio.timeout(10):
        while len(events := await consumer.pull(queue, 0)) < least:
            pass
    return len(events)


async def until_expired(broker: EmbeddedBroker, operator: Consumer) -> None:
    """Have the oldest files of the log deleted; wait until each queue has lost its first messages."""
    client = RemotingClient()
    try:
        request = Command.request(RequestCode.DELETE_EXPIRED_COMMITLOG)
        await client.request(broker.address, request, timeout_s=10)
    finally:
        await client.close()
    for queue_id in (0, 1):
        with suppress(InvalidArgument):
            while True:
                # Refused, as soon as the offset is none of the queue's any more.
                await operator.pull(queue_of(broker, queue_id), 1, max_count=1)


@pytest.mark.behaviour("S4-43")
def test_only_queues_with_wrong_offsets_are_corrected(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 2}) as broker:
            for queue_id in (0, 1):
                await send(broker.namesrv, 3, start=queue_id * 10, queue=queue_of(broker, queue_id))
            write_offsets(tmp_path, broker, {0: 999_999_999, 1: 1})
            async with make_consumer(broker, tmp_path) as consumer:
                assert bodies(await take(consumer, 2)) == [b"11", b"12"]
                await until(lambda: ids(consumer) == {0, 1} and corrections(caplog) == 1)
            assert kept_offsets(tmp_path) == {0: 3, 1: 3}

    in_loop(scenario())


@pytest.mark.behaviour("S4-51")
def test_a_queue_that_is_corrected_again_and_again_raises_an_alarm_and_is_asked_less_and_less(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.ERROR)
    asked = 0

    async def move(_fetcher: Fetcher, _queue: MessageQueue, offset: QueueOffset, **_: object) -> Fetched:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0)
        moved = QueueOffset(offset + 1)
        return Fetched(
            outcome=Outcome.MOVED,
            messages=[],
            next_offset=moved,
            min_offset=moved,
            max_offset=moved,
            broker_id=0,
            suggested_id=0,
        )

    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            monkeypatch.setattr(Fetcher, "fetch", move)
            async with make_consumer(broker, tmp_path):
                await until(lambda: "again and again" in caplog.text)

    in_loop(scenario())
    assert asked == 3


def ids(consumer: Consumer) -> set[int]:
    return {queue.queue_id for queue in consumer.assignment}


def corrections(caplog: pytest.LogCaptureFixture) -> int:
    return sum(record.getMessage().startswith("offset corrected group") for record in caplog.records)
