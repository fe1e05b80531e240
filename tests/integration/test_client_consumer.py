"""A consumer and a broker: how messages come, are acknowledged, and come again."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tanist.client import (
    Averagely,
    ClientClosed,
    Consumer,
    InvalidArgument,
    Message,
    MessageQueue,
    NoRoute,
    Producer,
    ReceivedMessage,
    RetryLater,
    Sql,
    Start,
)
from tanist.client.consuming.broker_calls import BrokerCalls
from tanist.client.pulling.fetched import Fetched, Outcome
from tanist.client.pulling.fetching import Fetcher
from tanist.client.queues import queue_locks, rebalancing
from tanist.errors import RequestTimeout
from tanist.model.offsets import QueueOffset
from tanist.model.topics import dlq_topic
from tanist.protocol.response_errors import BadSubscription, TopicNotFound
from tanist.testing import EmbeddedBroker
from tests.support.consuming import (
    QUICK_RETRIES,
    TOPIC,
    Handled,
    are_shared,
    bodies,
    in_loop,
    own_queues,
    send,
    take,
    until,
)

GROUP = "billing"


def make_consumer(broker: EmbeddedBroker, **arguments: object) -> Consumer:
    given: dict[str, object] = {
        "group": GROUP,
        "namesrv": broker.namesrv,
        "topics": {TOPIC: "*"},
        "start": Start.FIRST,
        **arguments,
    }
    return Consumer(**given)  # pyright: ignore[reportArgumentType]


def queue_of(broker: EmbeddedBroker, queue_id: int = 0, topic: str = TOPIC) -> MessageQueue:
    return MessageQueue(topic=topic, broker_name=broker.broker_name, queue_id=queue_id)


def test_all_messages_come_once_and_those_acknowledged_do_not_come_again() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 4}) as broker:
            sent = await send(broker.namesrv, 40)
            async with make_consumer(broker) as consumer:
                first = await take(consumer, 40)
            assert sorted(bodies(first)) == sorted(sent)
            assert {message.topic for message in first} == {TOPIC}
            more = await send(broker.namesrv, 4, start=40)
            async with make_consumer(broker) as consumer:
                assert sorted(bodies(await take(consumer, 4))) == sorted(more)

    in_loop(scenario())


def test_messages_of_one_queue_come_in_their_order() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            sent = await send(broker.namesrv, 100)
            async with make_consumer(broker, prefetch_count=7) as consumer:
                assert bodies(await take(consumer, 100)) == sent

    in_loop(scenario())


def test_a_message_whose_block_ends_with_an_exception_comes_again() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}, settings=QUICK_RETRIES) as broker:
            await send(broker.namesrv, 3)

            async def bill() -> None:
                async with make_consumer(broker) as consumer:
                    async for message in consumer:
                        if message.body == b"1":
                            raise RuntimeError("cannot bill")

            with pytest.raises(RuntimeError, match="cannot bill"):
                await bill()
            async with make_consumer(broker) as consumer:
                again = await take(consumer, 2)
            assert {(message.body, message.reconsume_times) for message in again} == {(b"2", 0), (b"1", 1)}
            assert {message.topic for message in again} == {TOPIC}

    in_loop(scenario())


def test_a_message_whose_loop_was_left_comes_again_if_another_loop_begins() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}, settings=QUICK_RETRIES) as broker:
            await send(broker.namesrv, 3)
            async with make_consumer(broker) as consumer:
                assert bodies(await take(consumer, 1)) == [b"0"]
                assert bodies(await take(consumer, 3)) == [b"1", b"2", b"0"]

    in_loop(scenario())


def test_a_message_in_hand_of_a_cancelled_program_comes_again_at_once() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            await send(broker.namesrv, 3)
            came = asyncio.Event()

            async def work() -> None:
                async with make_consumer(broker) as consumer:
                    async for _ in consumer:
                        came.set()
                        await asyncio.sleep(600)

            working = asyncio.create_task(work())
            await came.wait()
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            async with make_consumer(broker) as consumer:
                again = await take(consumer, 3)
            assert [(message.body, message.reconsume_times) for message in again] == [
                (b"0", 0),
                (b"1", 0),
                (b"2", 0),
            ]

    in_loop(scenario())


def test_a_consumer_without_offsets_begins_where_it_is_told_to(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            # In clustering a broker itself has a new group begin with the first message of a young queue.
            own = {"broadcasting": True, "offsets_dir": tmp_path}
            await send(broker.namesrv, 3)
            async with make_consumer(broker, group="from-last", start=Start.LAST, **own) as last:
                middle = datetime.now(UTC)
                await asyncio.sleep(0.01)
                later = await send(broker.namesrv, 3, start=3)
                assert bodies(await take(last, 3)) == later
            async with make_consumer(broker, group="from-time", start=middle, **own) as timed:
                assert bodies(await take(timed, 3)) == later
            async with make_consumer(broker, group="from-first", **own) as first:
                assert len(await take(first, 6)) == 6

    in_loop(scenario())


def test_only_messages_that_are_subscribed_to_come() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 2}) as broker:
            await send(broker.namesrv, 12, tags=("a", "b", "c"))
            async with make_consumer(broker, topics={TOPIC: "a || b"}) as consumer:
                handled = Handled()
                runs = asyncio.create_task(consumer.run(handled))
                await until(lambda: len(handled.messages) == 8)
                # What nobody wants is passed by, too.
                await until_lag_is_gone(consumer)
                assert len(handled.messages) == 8
                assert {message.tags for message in handled.messages} == {"a", "b"}
            await runs
            async with Producer(group="P", namesrv=broker.namesrv) as producer:
                for number in range(4):
                    message = Message(TOPIC, b"by-sql-%d" % number, properties={"amount": str(number)})
                    await producer.send(message)
            topics = {TOPIC: Sql("amount IS NOT NULL AND amount > 1")}
            async with make_consumer(broker, group="sql", topics=topics) as consumer:
                assert sorted(bodies(await take(consumer, 2))) == [b"by-sql-2", b"by-sql-3"]

    in_loop(scenario())


async def dead_letters(consumer: Consumer, broker: EmbeddedBroker, count: int) -> list[bytes]:
    """Wait for so many dead letters of the group; their bodies."""
    queue = queue_of(broker, topic=dlq_topic(GROUP))
    dead: list[ReceivedMessage] = []
    while len(dead) < count:
        # The topic is made with the first of them.
        with suppress(TopicNotFound):
            dead = await consumer.pull(queue, 0, timeout_s=10)
    return bodies(dead)


async def until_lag_is_gone(consumer: Consumer) -> None:
    while True:
        # A busy machine may take longer to answer than a consumer waits by default.
        with suppress(RequestTimeout):
            if sum((await consumer.lag()).values()) == 0:
                return
        await asyncio.sleep(0.05)


def test_members_share_the_queues_at_once_when_one_joins_or_leaves() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 8}) as broker, make_consumer(broker) as first:
            assert len(own_queues(first)) == 8
            async with make_consumer(broker) as second:
                await until(lambda: are_shared([first, second], 8), timeout_s=10)
                async with make_consumer(broker) as third, make_consumer(broker) as fourth:
                    await until(lambda: are_shared([first, second, third, fourth], 8), timeout_s=10)
                await until(lambda: are_shared([first, second], 8), timeout_s=10)
            await until(lambda: len(own_queues(first)) == 8, timeout_s=10)

    in_loop(scenario())


@pytest.mark.behaviour("S4-42")
def test_members_rebalance_now_and_then_although_nobody_tells_them_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert rebalancing.PERIOD_S == 20
    monkeypatch.setattr(rebalancing, "PERIOD_S", 0.2)
    # Nobody is told of members that come and go.

    def ignore(_rebalancer: rebalancing.Rebalancer) -> None: ...

    monkeypatch.setattr(rebalancing.Rebalancer, "soon", ignore)

    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 4}) as broker, make_consumer(broker) as first:
            async with make_consumer(broker) as second:
                await until(lambda: are_shared([first, second], 4))
            await until(lambda: len(own_queues(first)) == 4)

    in_loop(scenario())


def test_no_message_is_lost_while_members_come_and_go() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 8}) as broker:
            handled = Handled()
            async with make_consumer(broker) as first:
                running = asyncio.create_task(first.run(handled))
                sent = await send(broker.namesrv, 100)
                async with make_consumer(broker) as second:
                    other = asyncio.create_task(second.run(handled))
                    sent += await send(broker.namesrv, 100, start=100)
                sent += await send(broker.namesrv, 100, start=200)
                await until(lambda: set(handled.bodies) == set(sent))
            await asyncio.gather(running, other)

    in_loop(scenario())


def test_no_more_handlers_run_at_a_time_than_asked_for() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 4}) as broker:
            await send(broker.namesrv, 60)
            running, most, done = 0, 0, 0

            async def handle(_message: ReceivedMessage) -> None:
                nonlocal running, most, done
                running += 1
                most = max(most, running)
                await asyncio.sleep(0.001)
                running -= 1
                done += 1

            async with make_consumer(broker) as consumer:
                runs = asyncio.create_task(consumer.run(handle, concurrency=5))
                await until(lambda: done == 60)
            await runs
            assert most == 5

    in_loop(scenario())


def test_what_a_handler_fails_at_comes_again_and_is_then_a_dead_letter() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}, settings=QUICK_RETRIES) as broker:
            await send(broker.namesrv, 2)
            tries: list[tuple[bytes, int]] = []

            async def handle(message: ReceivedMessage) -> None:
                tries.append((message.body, message.reconsume_times))
                if message.body == b"1":
                    raise RuntimeError("never")

            async with make_consumer(broker, max_retries=2) as consumer:
                runs = asyncio.create_task(consumer.run(handle))
                await until(lambda: len(tries) == 4)
                await until_lag_is_gone(consumer)
                assert await dead_letters(consumer, broker, 1) == [b"1"]
            await runs
            assert tries == [(b"0", 0), (b"1", 0), (b"1", 1), (b"1", 2)]

    in_loop(scenario())


def test_a_handler_may_say_when_a_message_comes_again_or_give_it_up() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}, settings={"messageDelayLevel": "1s 1h 1h 1h"}) as broker:
            await send(broker.namesrv, 1)
            later = Handled(failures=1, error=lambda: RetryLater(delay_level=1))
            async with make_consumer(broker) as consumer:
                runs = asyncio.create_task(consumer.run(later))
                await until(lambda: later.bodies == [b"0"])
            await runs
            await send(broker.namesrv, 1, start=1)
            given_up = Handled(failures=1, error=lambda: RetryLater(delay_level=-1))
            async with make_consumer(broker) as consumer:
                runs = asyncio.create_task(consumer.run(given_up))
                assert await dead_letters(consumer, broker, 1) == [b"1"]
            await runs
            assert given_up.tries == {b"1": 1}

    in_loop(scenario())


def test_in_order_a_queue_waits_for_a_message_that_fails() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 2}) as broker:
            for queue_id in range(2):
                await send(broker.namesrv, 5, start=queue_id * 10, queue=queue_of(broker, queue_id))
            seen: list[bytes] = []
            in_hand: set[int] = set()

            async def handle(message: ReceivedMessage) -> None:
                assert message.queue.queue_id not in in_hand
                in_hand.add(message.queue.queue_id)
                await asyncio.sleep(0)
                in_hand.discard(message.queue.queue_id)
                seen.append(message.body)
                if message.body == b"12" and message.reconsume_times < 2:
                    raise RuntimeError("not yet")

            async with make_consumer(broker, orderly=True) as consumer:
                runs = asyncio.create_task(consumer.run(handle))
                await until(lambda: len(seen) == 12)
            await runs
            assert [body for body in seen if len(body) == 1] == [b"%d" % n for n in range(5)]
            others = [body for body in seen if len(body) == 2]
            assert others == [b"10", b"11", b"12", b"12", b"12", b"13", b"14"]

    in_loop(scenario())


def test_in_order_a_message_that_fails_too_often_is_a_dead_letter() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            await send(broker.namesrv, 2)
            handled = Handled(failures=1)
            async with make_consumer(broker, orderly=True, max_retries=0) as consumer:
                runs = asyncio.create_task(consumer.run(handled))
                assert await dead_letters(consumer, broker, 2) == [b"0", b"1"]
            await runs
            assert handled.tries == {b"0": 1, b"1": 1}

    in_loop(scenario())


def test_in_order_no_queue_is_worked_on_by_two_members() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 4}) as broker:
            working: set[int] = set()
            seen: dict[int, list[int]] = {queue_id: [] for queue_id in range(4)}

            async def handle(message: ReceivedMessage) -> None:
                queue_id = message.queue.queue_id
                assert queue_id not in working
                working.add(queue_id)
                await asyncio.sleep(0.005)
                working.discard(queue_id)
                seen[queue_id].append(int(message.body))

            async with make_consumer(broker, orderly=True) as first:
                running = asyncio.create_task(first.run(handle))
                await send(broker.namesrv, 100)
                async with make_consumer(broker, orderly=True) as second:
                    other = asyncio.create_task(second.run(handle))
                    await until(lambda: are_shared([first, second], 4), timeout_s=20)
                    await send(broker.namesrv, 100, start=100)
                await until(lambda: sum(map(len, seen.values())) >= 200)
            await asyncio.gather(running, other)
            for numbers in seen.values():
                # Offsets are committed before a lock is given up, so nothing comes twice either.
                assert numbers == sorted(set(numbers))

    in_loop(scenario())


def test_paused_queues_rest_and_go_on_where_they_were() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 2}) as broker, make_consumer(broker) as consumer:
            handled = Handled()
            running = asyncio.create_task(consumer.run(handled))
            consumer.pause(queue_of(broker, 0))
            await send(broker.namesrv, 3, queue=queue_of(broker, 0))
            await send(broker.namesrv, 3, start=10, queue=queue_of(broker, 1))
            await until(lambda: len(handled.messages) == 3)
            assert {message.queue.queue_id for message in handled.messages} == {1}
            consumer.resume(queue_of(broker, 0))
            await until(lambda: len(handled.messages) == 6)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    in_loop(scenario())


def test_a_program_may_seek_by_offset_and_by_time() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            await send(broker.namesrv, 5)
            await asyncio.sleep(0.01)
            middle = datetime.now(UTC)
            await asyncio.sleep(0.01)
            await send(broker.namesrv, 5, start=5)
            queue = queue_of(broker)
            async with make_consumer(broker) as consumer:
                await take(consumer, 10)
                await consumer.seek(queue, 8)
                assert bodies(await take(consumer, 2)) == [b"8", b"9"]
                await consumer.seek(queue, middle)
                assert bodies(await take(consumer, 5)) == [b"%d" % n for n in range(5, 10)]
                await consumer.seek(queue, 3)
                await consumer.commit()
                assert (await consumer.lag())[queue] == 7
            async with make_consumer(broker) as consumer:
                assert bodies(await take(consumer, 1)) == [b"3"]

    in_loop(scenario())


def test_a_program_may_pull_by_hand_without_changing_what_the_group_gets() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            await send(broker.namesrv, 5)
            async with make_consumer(broker) as consumer:
                pulled = await consumer.pull(queue_of(broker), 2, max_count=2)
                assert bodies(pulled) == [b"2", b"3"]
                assert await consumer.pull(queue_of(broker), 5, timeout_s=0.05) == []
                with pytest.raises(InvalidArgument, match="the queue has 0 to 5") as refused:
                    await consumer.pull(queue_of(broker), 99)
                assert refused.value.argument == "offset"
                assert len(await take(consumer, 5)) == 5

    in_loop(scenario())


def test_closing_lets_handlers_end_and_keeps_what_they_did() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            await send(broker.namesrv, 3)
            began, may_end = asyncio.Event(), asyncio.Event()
            ended: list[bytes] = []

            async def handle(message: ReceivedMessage) -> None:
                began.set()
                await may_end.wait()
                ended.append(message.body)

            async with make_consumer(broker) as consumer:
                running = asyncio.create_task(consumer.run(handle, concurrency=1))
                await began.wait()
                asyncio.get_running_loop().call_later(0.05, may_end.set)
            await running
            assert ended == [b"0"]
            async with make_consumer(broker) as consumer:
                assert bodies(await take(consumer, 2)) == [b"1", b"2"]

    in_loop(scenario())


def test_closing_cancels_a_handler_that_takes_too_long_and_its_message_comes_again() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            await send(broker.namesrv, 1)
            began = asyncio.Event()

            async def handle(_message: ReceivedMessage) -> None:
                began.set()
                await asyncio.sleep(600)

            async with make_consumer(broker, timeout_s=0.2) as consumer:
                running = asyncio.create_task(consumer.run(handle))
                await began.wait()
            await running
            async with make_consumer(broker) as consumer:
                assert bodies(await take(consumer, 1)) == [b"0"]

    in_loop(scenario())


def test_a_consumer_that_is_not_open_says_so() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            consumer = make_consumer(broker)
            with pytest.raises(ClientClosed):
                await consumer.commit()
            async with consumer:
                loop = aiter(consumer)
            with pytest.raises(ClientClosed):
                consumer.pause()
            with pytest.raises(StopAsyncIteration):
                await anext(loop)
            # A consumer may be opened again.
            async with consumer:
                assert own_queues(consumer)

    in_loop(scenario())


def test_what_only_the_cluster_knows_to_be_wrong_is_told_when_the_consumer_is_opened() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            with pytest.raises(NoRoute, match="no route to topic Unknown: there is no such topic"):
                async with make_consumer(broker, topics={"Unknown": "*"}):
                    pass
            with pytest.raises(BadSubscription):
                async with make_consumer(broker, topics={TOPIC: Sql("amount >")}):
                    pass
            async with make_consumer(broker) as consumer:
                stranger = MessageQueue(topic="Unknown", broker_name="nowhere", queue_id=0)
                for call in (consumer.pause, consumer.resume):
                    with pytest.raises(InvalidArgument, match="queue="):
                        call(stranger)
                with pytest.raises(InvalidArgument, match="queue="):
                    await consumer.seek(stranger, 0)
                with pytest.raises(InvalidArgument, match="offset="):
                    await consumer.seek(queue_of(broker), datetime.now() - timedelta(1))  # noqa: DTZ005

    in_loop(scenario())


def test_without_a_name_server_opening_fails_in_time() -> None:
    async def scenario() -> None:
        consumer = Consumer(group=GROUP, namesrv="127.0.0.1:1", topics={TOPIC: "*"}, timeout_s=0.5)
        with pytest.raises(NoRoute, match="no name server answers"):
            await consumer.__aenter__()

    in_loop(scenario())


def test_a_program_that_is_cancelled_anywhere_leaves_no_task_behind() -> None:
    async def work(broker: EmbeddedBroker, handled: Handled) -> None:
        async with make_consumer(broker, timeout_s=0.5) as consumer:
            await consumer.run(handled)

    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 2}) as broker:
            sent = await send(broker.namesrv, 20)
            before = asyncio.all_tasks()
            for turn_count in range(0, 120, 3):
                working = asyncio.create_task(work(broker, Handled()))
                for _ in range(turn_count):
                    await asyncio.sleep(0)
                working.cancel()
                await asyncio.wait([working])
                assert working.cancelled()
                # The broker has tasks for its own connections, for a moment.
                await until(lambda: asyncio.all_tasks() <= before, timeout_s=10)
            more = await send(broker.namesrv, 2, start=20)
            async with make_consumer(broker) as consumer:
                handled = Handled()
                runs = asyncio.create_task(consumer.run(handled))
                await until(lambda: set(more) <= set(handled.bodies) <= set(sent + more))
            await runs

    in_loop(scenario())


def test_what_is_not_finished_comes_again_when_a_broker_has_lost_the_end_of_a_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fetch, was_cut = Fetcher.fetch, asyncio.Event()

    async def fetch_or_be_cut(
        fetcher: Fetcher, queue: MessageQueue, offset: QueueOffset, **options: Any
    ) -> Fetched:
        if offset < 6 or was_cut.is_set():
            return await fetch(fetcher, queue, offset, **options)
        was_cut.set()
        return Fetched(
            outcome=Outcome.MOVED,
            messages=[],
            next_offset=QueueOffset(4),
            min_offset=QueueOffset(0),
            max_offset=QueueOffset(4),
            broker_id=0,
            suggested_id=0,
        )

    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            sent = await send(broker.namesrv, 6)
            seen: list[bytes] = []

            async def handle(message: ReceivedMessage) -> None:
                seen.append(message.body)
                await was_cut.wait()

            monkeypatch.setattr(Fetcher, "fetch", fetch_or_be_cut)
            async with make_consumer(broker) as consumer:
                runs = asyncio.create_task(consumer.run(handle, concurrency=1))
                await until(lambda: b"5" in seen)
            await runs
            assert sorted(set(seen)) == sent

    in_loop(scenario())


def test_in_order_a_queue_goes_on_with_a_handler_after_its_loop_was_left() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            sent = await send(broker.namesrv, 2)
            handled = Handled()
            async with make_consumer(broker, orderly=True) as consumer:
                assert bodies(await take(consumer, 1)) == sent[:1]
                runs = asyncio.create_task(consumer.run(handled))
                await until(lambda: handled.bodies == sent)
            await runs

    in_loop(scenario())


def test_in_order_a_member_that_lost_its_lock_goes_on_where_the_next_one_left_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(queue_locks, "RENEW_S", 0.1)
    lock, is_stolen = BrokerCalls.lock, False

    async def lock_unless_stolen(
        calls: BrokerCalls, broker_name: str, queues: list[MessageQueue]
    ) -> frozenset[MessageQueue]:
        return frozenset() if is_stolen else await lock(calls, broker_name, queues)

    async def scenario() -> None:
        nonlocal is_stolen
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            await send(broker.namesrv, 6)
            seen: list[bytes] = []
            may_end = asyncio.Event()

            async def handle(message: ReceivedMessage) -> None:
                seen.append(message.body)
                await may_end.wait()

            monkeypatch.setattr(BrokerCalls, "lock", lock_unless_stolen)
            async with make_consumer(broker, orderly=True) as consumer:
                runs = asyncio.create_task(consumer.run(handle))
                await until(lambda: len(seen) == 1)
                is_stolen = True
                await until(lambda: "queue lock lost" in caplog.text)
                consumption = consumer._consumption  # pyright: ignore[reportPrivateUsage]
                assert consumption is not None
                await consumption.calls.commit_offset(queue_of(broker), QueueOffset(4))
                may_end.set()
                await consumer.commit()
                is_stolen = False
                await until(lambda: len(seen) == 3)
            await runs
            assert seen == [b"0", b"4", b"5"]

    in_loop(scenario())


def test_a_strategy_that_fails_once_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(rebalancing, "PERIOD_S", 0.1)

    class Moody:
        name = "MOODY"
        asked = 0

        def allocate(
            self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
        ) -> list[MessageQueue]:
            self.asked += 1
            if self.asked == 4:
                raise ZeroDivisionError
            return Averagely().allocate(group, client_id, queues, client_ids)

    async def scenario() -> None:
        strategy = Moody()
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker, make_consumer(broker, strategy=strategy):
            await until(lambda: strategy.asked > 4)
        assert "rebalance failed" in caplog.text

    in_loop(scenario())


@pytest.mark.parametrize("outcome", [Outcome.NOTHING, Outcome.RETRY])
def test_a_broker_that_does_not_wait_for_messages_is_not_asked_all_the_time(
    monkeypatch: pytest.MonkeyPatch, outcome: Outcome
) -> None:
    asked = 0

    async def find_nothing(
        _fetcher: Fetcher, _queue: MessageQueue, offset: QueueOffset, **_: object
    ) -> Fetched:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0)
        return Fetched(
            outcome=outcome,
            messages=[],
            next_offset=offset,
            min_offset=offset,
            max_offset=offset,
            broker_id=0,
            suggested_id=0,
        )

    async def scenario() -> None:
        monkeypatch.setattr(Fetcher, "fetch", find_nothing)
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker, make_consumer(broker):
            await until(lambda: asked > 2)
            await asyncio.sleep(0.3)
        # Two queues, that of retries among them, and at most every 25 ms at first.
        assert asked < 40

    in_loop(scenario())
