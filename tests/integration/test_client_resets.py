"""Resets of a consumer by an order that wants receipts, on a virtual clock."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tanist.client import MessageQueue, ReceivedMessage
from tanist.client.consuming.broker_calls import BrokerCalls
from tanist.client.consuming.reset_order import OrderKey
from tanist.client.queues import rebalancing
from tanist.errors import ConnectFailed, ResponseError
from tanist.model.offsets import QueueOffset
from tanist.protocol.bodies.reset import QueueReceipt, QueueReceipts
from tanist.protocol.codes import ResponseCode
from tanist.testing import EmbeddedBroker
from tests.support.consuming import TOPIC, Handled, Turnstile, running, send
from tests.support.ordering import (
    GROUP,
    States,
    keep_states,
    make_consumer,
    order_reset,
    queue_of,
    use_virtual_clocks,
)
from tests.support.virtual_time import run_virtually, virtually_until

ORDER = "order-1"


class Receipts:
    """What brokers are told of orders. The next tries fail as ``failures`` say."""

    def __init__(self) -> None:
        self.told: list[tuple[str, QueueReceipts]] = []
        self.brokers: list[str] = []
        """Which of them, for each."""
        self.applied_ms: list[int] = []
        """When the order was applied, for each."""
        self.failures: list[Exception] = []

    async def send(self, _calls: BrokerCalls, order: OrderKey, receipts: QueueReceipts) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.told.append((order.order_id, receipts))
        self.brokers.append(order.broker_name)
        self.applied_ms.append(order.applied_ms)

    @property
    def queues(self) -> list[list[QueueReceipt]]:
        return [each.queues for _, each in self.told]


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> States:
    use_virtual_clocks(monkeypatch)
    # What is consumed is not to be committed before it was looked at.
    monkeypatch.setattr(rebalancing, "PERSIST_S", 600.0)
    return keep_states(monkeypatch)


@pytest.fixture
def receipts(monkeypatch: pytest.MonkeyPatch) -> Receipts:
    kept = Receipts()

    async def send_receipt(calls: BrokerCalls, *arguments: Any) -> None:
        await kept.send(calls, *arguments)

    monkeypatch.setattr(BrokerCalls, "send_receipt", send_receipt)
    return kept


def receipt(queue_id: int, old_offset: int | None, new_offset: int, first: int | None = None) -> QueueReceipt:
    return QueueReceipt(
        queue_id=queue_id,
        old_offset=None if old_offset is None else QueueOffset(old_offset),
        new_offset=QueueOffset(new_offset),
        first_offset=None if first is None else QueueOffset(first),
    )


def test_a_member_says_that_it_moved_and_what_it_took_first(states: States, receipts: Receipts) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 3}) as broker:
            for queue_id in range(2):
                await send(broker.namesrv, 5, start=queue_id * 10, queue=queue_of(broker, queue_id))
            handled = Turnstile()
            async with make_consumer(broker) as consumer, running(consumer, handled):
                handled.allow(10)
                await virtually_until(lambda: len(handled.messages) == 10)
                targets = {queue_of(broker, queue_id): queue_id + 2 for queue_id in range(2)}
                consumer.pause()
                order_reset(states, consumer, targets | {queue_of(broker, 2): 0}, order_id=ORDER)
                await virtually_until(lambda: len(receipts.told) == 1)
                assert receipts.told == [
                    (ORDER, QueueReceipts(queues=[receipt(0, 5, 2), receipt(1, 5, 3), receipt(2, 0, 0)]))
                ]
                handled.allow(5)
                consumer.resume()
                await virtually_until(lambda: len(receipts.told) == 2)
                # The third queue has no message: nothing is said of one.
                assert receipts.queues[1] == [receipt(0, 5, 2, 2), receipt(1, 5, 3, 3), receipt(2, 0, 0)]
                await virtually_until(lambda: len(handled.messages) == 15)
                await send(broker.namesrv, 1, start=99, queue=queue_of(broker, 2))
                await virtually_until(lambda: len(receipts.told) == 3)
                assert receipts.queues[2][2] == receipt(2, 0, 0, 0)

    run_virtually(scenario())


@pytest.mark.known_bug("stuck reset")
def test_an_order_that_is_told_again_moves_nothing_again(states: States, receipts: Receipts) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            await send(broker.namesrv, 5)
            handled = Handled()
            async with make_consumer(broker) as consumer, running(consumer, handled):
                await virtually_until(lambda: len(handled.messages) == 5)
                # While it is carried out, and when it is done.
                for _ in range(2):
                    order_reset(states, consumer, {queue_of(broker, 0): 3}, order_id=ORDER)
                moved = (ORDER, QueueReceipts(queues=[receipt(0, 5, 3, 3)]))
                await virtually_until(lambda: moved in receipts.told)
                receipts.told.clear()
                order_reset(states, consumer, {queue_of(broker, 0): 3}, order_id=ORDER)
                await virtually_until(lambda: receipts.told == [moved])
                assert handled.bodies[5:] == [b"3", b"4"]
                order_reset(states, consumer, {queue_of(broker, 0): 4}, order_id="order-2")
                moved = ("order-2", QueueReceipts(queues=[receipt(0, 5, 4, 4)]))
                await virtually_until(lambda: moved in receipts.told)
                assert handled.bodies[7:] == [b"4"]

    run_virtually(scenario())


def test_each_broker_of_a_topic_may_give_the_same_order_for_its_queues(
    states: States, receipts: Receipts
) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker, make_consumer(broker) as consumer:
            order_reset(states, consumer, {queue_of(broker, 0): 0}, order_id=ORDER)
            await virtually_until(
                lambda: receipts.told == [(ORDER, QueueReceipts(queues=[receipt(0, 0, 0)]))]
            )
            other = MessageQueue(topic=TOPIC, broker_name="other", queue_id=0)
            order_reset(states, consumer, {other: 0}, order_id=ORDER)
            await virtually_until(lambda: receipts.brokers == [broker.broker_name, "other"])
            # Nothing there is ours.
            assert receipts.told[1] == (ORDER, QueueReceipts())

    run_virtually(scenario())


def test_an_order_that_was_undone_and_is_given_again_is_followed_again_and_its_receipt_says_which(
    states: States, receipts: Receipts
) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            await send(broker.namesrv, 5)
            handled = Handled()
            async with make_consumer(broker) as consumer, running(consumer, handled):
                await virtually_until(lambda: len(handled.messages) == 5)
                for number, applied_ms in enumerate((100, 200), start=1):
                    targets = {queue_of(broker, 0): 3}
                    order_reset(states, consumer, targets, order_id=ORDER, applied_ms=applied_ms)
                    await virtually_until(lambda number=number: len(handled.messages) == 5 + 2 * number)
                    await virtually_until(lambda applied_ms=applied_ms: applied_ms in receipts.applied_ms)

    run_virtually(scenario())


def test_an_order_of_a_master_that_was_replaced_is_passed_over_after_one_of_the_new_master(
    states: States, receipts: Receipts
) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            await send(broker.namesrv, 5)
            handled = Handled()
            async with make_consumer(broker) as consumer, running(consumer, handled):
                await virtually_until(lambda: len(handled.messages) == 5)
                for number, (epoch, to) in enumerate(((2, 3), (1, 0), (2, 4)), start=1):
                    targets = {queue_of(broker, 0): to}
                    order_reset(states, consumer, targets, order_id=f"order-{number}", master_epoch=epoch)
                    if epoch == 2:
                        await virtually_until(
                            lambda number=number: f"order-{number}" in {told for told, _ in receipts.told}
                        )
                await virtually_until(lambda: len(handled.messages) == 5 + 2 + 1)
                assert "order-2" not in {told for told, _ in receipts.told}

    run_virtually(scenario())


def refuse_commits(monkeypatch: pytest.MonkeyPatch, is_refused: Callable[[MessageQueue, int], bool]) -> None:
    commit = BrokerCalls.commit_offset

    async def commit_or_not(calls: BrokerCalls, queue: MessageQueue, consumer_offset: QueueOffset) -> None:
        if is_refused(queue, consumer_offset):
            raise ResponseError(ResponseCode.SYSTEM_ERROR, "so the test says")
        await commit(calls, queue, consumer_offset)

    monkeypatch.setattr(BrokerCalls, "commit_offset", commit_or_not)


@pytest.mark.behaviour("S4-50")
def test_an_offset_that_no_broker_keeps_is_told_as_a_failure_and_tried_again_when_told_again(
    states: States, receipts: Receipts, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: set[int] = {1}
    refuse_commits(monkeypatch, lambda queue, offset: queue.queue_id in refused and offset == 2)

    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 2}) as broker:
            targets = {queue_of(broker, queue_id): 2 for queue_id in range(2)}
            for queue in targets:
                await send(broker.namesrv, 5, queue=queue)
            handled = Handled()
            async with make_consumer(broker) as consumer, running(consumer, handled):
                await virtually_until(lambda: len(handled.messages) == 10)
                await consumer.commit()
                order_reset(states, consumer, targets, order_id=ORDER)
                await virtually_until(lambda: len(receipts.told) == 1)
                assert receipts.told[0][1] == QueueReceipts(
                    queues=[receipt(0, 5, 2, 2)], failure="queue 1: it went on at 5 instead of 2"
                )
                await virtually_until(lambda: len(handled.messages) == 13)
                refused.clear()
                order_reset(states, consumer, targets, order_id=ORDER)
                await virtually_until(lambda: len(handled.messages) == 16)
                moved = QueueReceipts(queues=[receipt(0, 5, 2, 2), receipt(1, 5, 2, 2)])
                await virtually_until(lambda: receipts.told[-1] == (ORDER, moved))

    run_virtually(scenario())


def test_a_receipt_that_gets_lost_is_sent_again(states: States, receipts: Receipts) -> None:
    receipts.failures = [ConnectFailed("broker", "not now")] * 3

    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker, make_consumer(broker) as consumer:
            order_reset(states, consumer, {queue_of(broker, 0): 0}, order_id=ORDER)
            await virtually_until(lambda: len(receipts.told) == 1)
            # A broker that wants none is not asked again, unless it tells the order again.
            receipts.failures = [ResponseError(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, "what?")]
            order_reset(states, consumer, {queue_of(broker, 0): 0}, order_id=ORDER)
            await asyncio.sleep(60)
            assert len(receipts.told) == 1
            order_reset(states, consumer, {queue_of(broker, 0): 0}, order_id=ORDER)
            await virtually_until(lambda: len(receipts.told) == 2)

    run_virtually(scenario())


def test_more_resets_than_may_wait_are_told_as_failures(states: States, receipts: Receipts) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            await send(broker.namesrv, 1)
            began = asyncio.Event()

            async def handle(_message: ReceivedMessage) -> None:
                began.set()
                await asyncio.sleep(5)

            async with make_consumer(broker) as consumer, running(consumer, handle):
                await began.wait()
                for number in range(17):
                    order_reset(states, consumer, {queue_of(broker, 0): 1}, order_id=str(number))
                await virtually_until(lambda: len(receipts.told) == 17)
                failed = [(order_id, told.failure) for order_id, told in receipts.told if told.failure]
                assert failed == [("16", "16 resets are under way already")]

    run_virtually(scenario())


def test_a_member_that_does_not_read_the_topic_has_moved_none_of_its_queues(
    states: States, receipts: Receipts
) -> None:
    async def scenario() -> None:
        topics = {TOPIC: 1, "Other": 1}
        async with (
            EmbeddedBroker(topics=topics) as broker,
            make_consumer(broker, topics={"Other": "*"}) as consumer,
        ):
            order_reset(states, consumer, {queue_of(broker, 0): 0}, order_id=ORDER)
            await virtually_until(lambda: receipts.told == [(ORDER, QueueReceipts())])

    run_virtually(scenario())


@pytest.mark.behaviour("S4-29", "S4-30")
@pytest.mark.known_bug("stuck reset")
def test_a_broadcasting_member_goes_where_it_was_told_before_it_had_taken_its_queues(
    states: States, receipts: Receipts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that waited for it tells it with its first heartbeat."""
    own = {"broadcasting": True, "offsets_dir": tmp_path, "instance": "one"}

    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            await send(broker.namesrv, 6)
            handled = Handled()
            async with make_consumer(broker, **own) as consumer, running(consumer, handled):
                await virtually_until(lambda: len(handled.messages) == 6)
            consumer = make_consumer(broker, **own)
            tell_at_join(monkeypatch, states, {queue_of(broker, 0): 4, queue_of(broker, 7): 1})
            async with consumer, running(consumer, handled):
                await virtually_until(lambda: len(handled.messages) == 8)
                assert handled.bodies[6:] == [b"4", b"5"]
                # The topic has no eighth queue.
                await virtually_until(lambda: [receipt(0, 6, 4, 4)] in receipts.queues)

    run_virtually(scenario())


def tell_at_join(monkeypatch: pytest.MonkeyPatch, states: States, offsets: dict[MessageQueue, int]) -> None:
    rebalance = rebalancing.Rebalancer.rebalance

    async def tell_first(rebalancer: rebalancing.Rebalancer) -> bool:
        monkeypatch.setattr(rebalancing.Rebalancer, "rebalance", rebalance)
        (client_id,) = states[-1].clients.member_ids(GROUP)
        order_reset(states, _Named(client_id), offsets, order_id=ORDER)  # pyright: ignore[reportArgumentType]
        await asyncio.sleep(1)
        return await rebalance(rebalancer)

    monkeypatch.setattr(rebalancing.Rebalancer, "rebalance", tell_first)


class _Named:
    def __init__(self, client_id: str) -> None:
        self.client_id = client_id


@pytest.mark.behaviour("S4-16")
@pytest.mark.parametrize(("handling_s", "takes_s", "first"), [(7.0, 7.0, 2), (600.0, 10.0, None)])
def test_work_that_is_under_way_has_ten_seconds_to_end(
    states: States,
    receipts: Receipts,
    caplog: pytest.LogCaptureFixture,
    *,
    handling_s: float,
    takes_s: float,
    first: int | None,
) -> None:
    caplog.set_level(logging.INFO, "tanist.client")

    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            await send(broker.namesrv, 3)
            seen: list[bytes] = []

            async def handle(message: ReceivedMessage) -> None:
                seen.append(message.body)
                await asyncio.sleep(handling_s)

            async with make_consumer(broker, timeout_s=1.0) as consumer, running(consumer, handle):
                await virtually_until(lambda: seen == [b"0", b"1"])
                order_reset(states, consumer, {queue_of(broker, 0): 2}, order_id=ORDER)
                waited_s = await virtually_until(lambda: len(receipts.told) == 1, within_s=30)
                assert takes_s - 0.1 < waited_s < takes_s + 0.1
                assert receipts.queues == [[receipt(0, 0, 2, first)]]
                # Those who take longer than that change nothing any more.
                assert states[-1].offsets.find(GROUP, TOPIC, 0) == 2

    run_virtually(scenario())
    assert ("moved while messages are in hand" in caplog.text) == (handling_s > takes_s)
