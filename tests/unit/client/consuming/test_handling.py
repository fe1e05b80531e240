"""How messages are handed out, acknowledged and given back, without a broker."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from tanist.client import ClientClosed, ReceivedMessage, RetryLater
from tanist.client.consuming import handling
from tanist.client.consuming.broker_calls import BrokerCalls
from tanist.client.consuming.handler_run import HandlerRun
from tanist.client.consuming.handling import Delivery
from tanist.client.consuming.message_iterator import LoopsInHand
from tanist.client.consuming.retrying import RetryRules
from tanist.client.queues.owned_queue import OwnedQueue
from tanist.client.session.tasks import OwnedTasks
from tanist.clock import SystemClock
from tanist.errors import ConnectFailed, MQError
from tanist.protocol import ResponseCode
from tanist.protocol.response_errors import NotMaster
from tests.support.conditions import turns, until
from tests.support.received import QUEUE, at, received
from tests.support.virtual_time import run_virtually

RULES = RetryRules(is_orderly=False, is_broadcasting=False, max_retries=3)


class SentBack:
    """Brokers that take messages back, or copies of them, after they refused a few times."""

    def __init__(self, *, failures: int = 0, error: MQError | None = None) -> None:
        self.messages: list[tuple[int, int, int]] = []
        self.copies: list[tuple[int, int, int]] = []
        self._failures = failures
        self._error = error or ConnectFailed("broker", "it is away")

    async def send_back(self, message: ReceivedMessage, *, delay_level: int = 0, max_retries: int) -> None:
        if self._failures:
            self._failures -= 1
            raise self._error
        self.messages.append((message.queue_offset, delay_level, max_retries))

    async def send_copy(self, message: ReceivedMessage, *, delay_level: int = 0, max_retries: int) -> None:
        if self._failures:
            self._failures -= 1
            raise self._error
        self.copies.append((message.queue_offset, delay_level, max_retries))


class Bench:
    """A delivery with one queue of messages."""

    def __init__(
        self, *offsets: int, rules: RetryRules = RULES, failures: int = 0, error: MQError | None = None
    ) -> None:
        self.brokers = SentBack(failures=failures, error=error)
        self.tasks = OwnedTasks()
        self.delivery = Delivery(cast("BrokerCalls", self.brokers), self.tasks, SystemClock(), rules)
        self.owned = OwnedQueue(QUEUE, at(0))
        if offsets:
            self.add(*offsets)

    def add(self, *offsets: int) -> None:
        cached = self.owned.cached
        cached.add(received(*offsets), fetched_from=cached.next_offset, next_offset=at(offsets[-1] + 1))
        self.delivery.put(self.owned, len(offsets))

    @property
    def consumer_offset(self) -> int:
        return self.owned.cached.consumer_offset


def in_loop(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(10):
            await scenario()

    asyncio.run(bounded())


def test_the_offset_moves_on_with_the_smallest_unfinished_message() -> None:
    async def scenario() -> None:
        bench = Bench(0, 1, 2)
        first, second, third = [await bench.delivery.take() for _ in range(3)]
        bench.delivery.done(second)
        assert bench.consumer_offset == 0
        bench.delivery.done(first)
        assert bench.consumer_offset == 2
        bench.delivery.done(third)
        assert bench.consumer_offset == 3

    in_loop(scenario)


def test_a_message_that_failed_holds_the_offset_until_its_broker_has_it() -> None:
    async def scenario() -> None:
        bench = Bench(0, 1, failures=2)
        first, second = await bench.delivery.take(), await bench.delivery.take()
        bench.delivery.failed(first, RetryLater(delay_level=5))
        bench.delivery.done(second)
        await turns()
        assert (bench.consumer_offset, bench.brokers.messages) == (0, [])
        assert await bench.delivery.wait_idle([bench.owned], 5)
        assert bench.brokers.messages == [(0, 5, 3)]
        assert bench.consumer_offset == 2
        await bench.tasks.close()

    in_loop(scenario)


def test_a_message_that_its_broker_does_not_take_back_is_sent_to_the_group_as_a_copy() -> None:
    async def scenario() -> None:
        bench = Bench(0, failures=3)
        bench.delivery.failed(await bench.delivery.take(), RetryLater(delay_level=5))
        assert await bench.delivery.wait_idle([bench.owned], 5)
        assert (bench.brokers.messages, bench.brokers.copies) == ([], [(0, 5, 3)])
        assert bench.consumer_offset == 1
        await bench.tasks.close()

    in_loop(scenario)


def test_a_message_of_a_queue_that_went_while_it_was_sent_back_is_not_sent_again() -> None:
    async def scenario() -> None:
        bench = Bench(0, failures=1)
        bench.delivery.failed(await bench.delivery.take(), RuntimeError())
        await turns()
        bench.owned.drop()
        assert await bench.delivery.wait_idle([bench.owned], 5)
        assert (bench.brokers.messages, bench.brokers.copies) == ([], [])
        await bench.tasks.close()

    in_loop(scenario)


def test_a_message_that_no_broker_takes_comes_again_from_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handling, "NOT_SENT_BACK_S", 0.01)

    async def scenario() -> None:
        bench = Bench(0, failures=99)
        bench.delivery.failed(await bench.delivery.take(), RuntimeError())
        again = await bench.delivery.take()
        assert (again[1].queue_offset, again[1].reconsume_times) == (0, 1)
        assert bench.consumer_offset == 0
        bench.delivery.done(again)
        assert bench.consumer_offset == 1
        await bench.tasks.close()

    in_loop(scenario)


def test_a_broker_without_a_master_is_asked_once_and_a_message_that_nobody_takes_comes_later_each_time() -> (
    None
):
    refusal = NotMaster(ResponseCode.SYSTEM_ERROR, "a slave is read", master_address=None)

    async def scenario() -> None:
        # Each time the broker itself is asked once, and then for a copy.
        bench = Bench(0, failures=2 * 6, error=refusal)
        taken = await bench.delivery.take()
        waits: list[float] = []
        for _ in range(6):
            began_s = asyncio.get_running_loop().time()
            bench.delivery.failed(taken, RuntimeError())
            taken = await bench.delivery.take()
            waits.append(round(asyncio.get_running_loop().time() - began_s))
        assert waits == [5, 10, 20, 40, 80, 80]
        assert bench.consumer_offset == 0
        bench.delivery.failed(taken, RuntimeError())
        assert await bench.delivery.wait_idle([bench.owned], 5)
        assert bench.brokers.messages == [(0, 0, 3)]
        await bench.tasks.close()

    run_virtually(scenario())


def test_a_message_of_a_queue_that_was_dropped_is_not_given_back() -> None:
    async def scenario() -> None:
        bench = Bench(0, failures=1)
        taken = await bench.delivery.take()
        bench.owned.drop()
        bench.delivery.failed(taken, RuntimeError())
        assert await bench.delivery.wait_idle([bench.owned], 5)
        await turns()
        assert bench.brokers.messages == []

    in_loop(scenario)


def test_whoever_waits_gets_the_message_also_if_another_one_stops_waiting() -> None:
    async def scenario() -> None:
        bench = Bench()
        first, second = (asyncio.create_task(bench.delivery.take()) for _ in range(2))
        await turns()
        bench.add(0)
        first.cancel()
        assert (await second)[1].queue_offset == 0
        with pytest.raises(asyncio.CancelledError):
            await first

    in_loop(scenario)


def test_closing_ends_all_waiting() -> None:
    async def scenario() -> None:
        bench = Bench()
        waiting = [asyncio.create_task(bench.delivery.take()) for _ in range(3)]
        await turns()
        bench.delivery.close()
        for taker in waiting:
            with pytest.raises(ClientClosed):
                await taker

    in_loop(scenario)


def test_a_cancelled_handler_leaves_its_message_to_the_next() -> None:
    async def scenario() -> None:
        bench = Bench(0)
        began = asyncio.Event()

        async def handle(_message: ReceivedMessage) -> None:
            began.set()
            await asyncio.sleep(600)

        run = asyncio.create_task(HandlerRun(bench.delivery, handle).run(2))
        await began.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert (await bench.delivery.take())[1].queue_offset == 0
        assert bench.owned.in_hand_count == 1

    in_loop(scenario)


def test_a_cancelled_run_ends_although_its_handler_ends_its_work_first() -> None:
    async def scenario() -> None:
        bench = Bench(0, 1)
        begun = asyncio.Event()

        async def stubborn(_message: ReceivedMessage) -> None:
            begun.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                await turns()

        running = asyncio.create_task(HandlerRun(bench.delivery, stubborn).run(1))
        await begun.wait()
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()
        # The message was handled, and counts; nobody began with the next one.
        assert (bench.consumer_offset, bench.owned.in_hand_count) == (1, 0)

    in_loop(scenario)


def test_a_handler_that_waited_for_something_cancelled_has_failed_and_the_next_message_is_handled() -> None:
    async def scenario() -> None:
        bench = Bench(0, 1)
        handled: list[int] = []

        async def handle(message: ReceivedMessage) -> None:
            handled.append(message.queue_offset)
            if message.queue_offset == 0:
                waited = asyncio.get_running_loop().create_future()
                waited.cancel()
                await waited

        run = asyncio.create_task(HandlerRun(bench.delivery, handle).run(1))
        await until(lambda: bench.consumer_offset == 2)
        assert (handled, bench.brokers.messages) == ([0, 1], [(0, 0, 3)])
        bench.delivery.close()
        await run
        await bench.tasks.close()

    in_loop(scenario)


def test_in_order_a_failure_at_the_end_leaves_the_message_unfinished_without_a_wait() -> None:
    async def scenario() -> None:
        bench = Bench(0, rules=RetryRules(is_orderly=True, is_broadcasting=False, max_retries=None))
        taken = await bench.delivery.take()
        bench.delivery.close()
        bench.delivery.failed(taken, RuntimeError())
        assert bench.owned.in_hand_count == 0
        assert bench.consumer_offset == 0

    in_loop(scenario)


def test_a_loop_acknowledges_each_message_when_it_asks_for_the_next() -> None:
    async def scenario() -> None:
        bench = Bench(0, 1)
        loop = LoopsInHand(bench.delivery).begin()
        await anext(loop)
        assert bench.consumer_offset == 0
        await anext(loop)
        assert bench.consumer_offset == 1

    in_loop(scenario)


@pytest.mark.parametrize(
    ("error", "offset", "sent_back"),
    [(None, 1, []), (RuntimeError(), 1, [(0, 0, 3)]), (asyncio.CancelledError(), 0, [])],
    ids=["well", "with an error", "cancelled"],
)
def test_what_is_in_hand_at_the_end_depends_on_how_it_ends(
    error: BaseException | None, offset: int, sent_back: list[tuple[int, int, int]]
) -> None:
    async def scenario() -> None:
        bench = Bench(0)
        loops = LoopsInHand(bench.delivery)
        loop = loops.begin()
        await anext(loop)
        loops.end(error)
        await bench.delivery.wait_idle([bench.owned], 5)
        await until(lambda: bench.consumer_offset == offset)
        assert bench.brokers.messages == sent_back
        assert bench.owned.in_hand_count == 0
        await bench.tasks.close()

    in_loop(scenario)


def test_waiting_for_handlers_ends_in_time() -> None:
    async def scenario() -> None:
        bench = Bench(0)
        taken = await bench.delivery.take()
        assert not await bench.delivery.wait_idle([bench.owned], 0.01)
        bench.delivery.done(taken)
        assert await bench.delivery.wait_idle([bench.owned], 0.01)

    in_loop(scenario)
