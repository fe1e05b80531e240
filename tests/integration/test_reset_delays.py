"""Whatever is under way between a consumer and its broker while a group is reset, the reset holds.

Each kind of frame is held back in turn, for less and for more time than a client waits for an answer, and all
that is said after it on the same connection with it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from tanist.broker.state import BrokerState
from tanist.client import Consumer
from tanist.client.queues import rebalancing
from tanist.model.offsets import QueueOffset
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies.base import encode_body
from tanist.protocol.bodies.reset import QueueReceipt, QueueTarget, QueueTargets, ReceiptState
from tanist.protocol.headers.reset import ApplyResetRequest
from tanist.remoting import RemotingClient
from tanist.testing import EmbeddedBroker
from tests.support.consuming import TOPIC, Turnstile, running, send
from tests.support.delayed_wire import DelayedWire, Said
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
STOOD_AT = 6
COUNT = 12
TIMEOUT_S = 3.0
"""How long the client waits for an answer."""

COMMIT = RequestCode.UPDATE_CONSUMER_OFFSET
HELD = {
    "a pull": Said(RequestCode.PULL_MESSAGE),
    "the answer to a pull": Said(RequestCode.PULL_MESSAGE, is_answer=True),
    "a commit": Said(COMMIT),
    "the answer to a commit": Said(COMMIT, is_answer=True),
    "the order": Said(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, by_server=True),
    "the question for the offset": Said(RequestCode.QUERY_CONSUMER_OFFSET),
    "the answer to that": Said(RequestCode.QUERY_CONSUMER_OFFSET, is_answer=True),
    "the receipt": Said(RequestCode.RESET_RECEIPT),
    "the answer to the receipt": Said(RequestCode.RESET_RECEIPT, is_answer=True),
}


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> States:
    use_virtual_clocks(monkeypatch)
    # What is acknowledged is committed when the scenario says so.
    monkeypatch.setattr(rebalancing, "PERSIST_S", 600.0)
    return keep_states(monkeypatch)


async def apply_reset(broker: EmbeddedBroker, target: int) -> None:
    operator = RemotingClient()
    try:
        answer = await operator.request(
            broker.address,
            Command.request(
                RequestCode.APPLY_RESET,
                ApplyResetRequest(
                    order_id=ORDER, topic=TOPIC, group=GROUP, caller="somebody", is_forced=True
                ),
                body=encode_body(QueueTargets(targets=[QueueTarget(queue_id=0, target=QueueOffset(target))])),
            ),
            timeout_s=5,
        )
    finally:
        await operator.close()
    assert answer.code == ResponseCode.SUCCESS, answer.remark


def receipt_of(state: BrokerState, client_id: str) -> tuple[ReceiptState, list[QueueReceipt], str]:
    order = state.resets.find(ORDER)
    assert order is not None
    (receipt,) = [each for each in order.view().receipts if each.client_id == client_id]
    return receipt.state, receipt.queues, receipt.reason


def has_first(state: BrokerState, client_id: str) -> bool:
    """Whether the broker knows what the client took first."""
    _, queues, _ = receipt_of(state, client_id)
    return bool(queues) and queues[0].first_offset is not None


async def reset_meanwhile(
    broker: EmbeddedBroker,
    consumer: Consumer,
    handled: Turnstile,
    *,
    hold: Callable[[], None],
    order: Callable[[], Awaitable[None]],
) -> None:
    """Order the reset while a message is in hand, an offset is committed and messages are pulled."""
    handled.allow(STOOD_AT)
    await virtually_until(lambda: len(handled.messages) == STOOD_AT)
    hold()
    committing = asyncio.ensure_future(consumer.commit())
    await send(broker.namesrv, 1, start=COUNT)
    await order()
    # Acknowledged after the order was given, and maybe before it has come.
    handled.allow(1)
    await asyncio.gather(committing, return_exceptions=True)


async def assert_goes_on(handled: Turnstile, sent: list[bytes], target: int) -> None:
    """All from the target on comes, in order and once, after at most what was in hand when the order came."""
    handled.allow(2 * COUNT)
    await virtually_until(lambda: sent[-1] in handled.bodies)
    before = len(handled.messages) - len(sent[target:])
    assert handled.bodies[before:] == sent[target:]
    assert handled.bodies[:before] == sent[:before]
    assert before <= STOOD_AT + 2


@pytest.mark.behaviour("S4-18", "S4-33", "S4-50")
@pytest.mark.parametrize("target", [2, 10], ids=["back", "forward"])
@pytest.mark.parametrize("delay_s", [TIMEOUT_S / 2, TIMEOUT_S * 2])
@pytest.mark.parametrize("name", HELD)
def test_nothing_that_is_late_takes_a_reset_back(
    states: States, name: str, delay_s: float, target: int
) -> None:
    wire, held = DelayedWire(), HELD[name]

    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            sent = [*await send(broker.namesrv, COUNT), b"%d" % COUNT]
            handled, state = Turnstile(), states[-1]
            consumer = make_consumer(broker, timeout_s=TIMEOUT_S)
            async with consumer, running(consumer, handled, concurrency=1):
                await reset_meanwhile(
                    broker,
                    consumer,
                    handled,
                    hold=partial(wire.hold, held, delay_s),
                    order=partial(apply_reset, broker, target),
                )
                me = consumer.client_id

                def has_moved() -> bool:
                    # At no time is it anything else: the consumer may die at any.
                    assert state.offsets.find(GROUP, TOPIC, 0) == target
                    return receipt_of(state, me)[0] is ReceiptState.CONFIRMED

                await virtually_until(has_moved, within_s=60)
                # By now all that was said before has arrived.
                await asyncio.sleep(delay_s)
                assert wire.held == [held]
                assert has_moved()
                await assert_goes_on(handled, sent, target)
                await consumer.commit()
                assert state.offsets.find(GROUP, TOPIC, 0) == COUNT + 1
                await virtually_until(lambda: has_first(state, me))
                assert receipt_of(state, me)[1][0].first_offset == target

    run_virtually(scenario(), wire)


@pytest.mark.behaviour("S4-18", "S4-33")
@pytest.mark.parametrize("target", [2, 10], ids=["back", "forward"])
@pytest.mark.parametrize("name", [name for name in HELD if "receipt" not in name])
def test_nothing_that_is_late_takes_back_what_a_broker_leaves_to_its_clients(
    states: States, name: str, target: int
) -> None:
    """RocketMQ's brokers order a reset, and change no offset themselves."""
    wire, held = DelayedWire(), HELD[name]

    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            sent = [*await send(broker.namesrv, COUNT), b"%d" % COUNT]
            handled, state = Turnstile(), states[-1]
            consumer = make_consumer(broker, timeout_s=TIMEOUT_S)
            async with consumer, running(consumer, handled, concurrency=1):

                async def order() -> None:
                    order_reset(states, consumer, {queue_of(broker, 0): target})

                await reset_meanwhile(
                    broker, consumer, handled, hold=partial(wire.hold, held, TIMEOUT_S * 2), order=order
                )
                await virtually_until(lambda: state.offsets.find(GROUP, TOPIC, 0) == target, within_s=60)
                await asyncio.sleep(TIMEOUT_S * 2)
                assert wire.held == [held]
                assert state.offsets.find(GROUP, TOPIC, 0) == target
                await assert_goes_on(handled, sent, target)
                await consumer.commit()
                assert state.offsets.find(GROUP, TOPIC, 0) == COUNT + 1

    run_virtually(scenario(), wire)


@pytest.mark.behaviour("S4-18", "S4-30", "S4-33", "S4-50")
@pytest.mark.parametrize(
    "name", ["a pull", "the answer to a pull", "the order", "the receipt", "the answer to the receipt"]
)
def test_nothing_that_is_late_takes_back_the_reset_of_a_broadcasting_member(
    states: States, tmp_path: Path, name: str
) -> None:
    wire, held, target = DelayedWire(), HELD[name], 2

    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            sent = [*await send(broker.namesrv, COUNT), b"%d" % COUNT]
            handled, state = Turnstile(), states[-1]
            consumer = make_consumer(broker, timeout_s=TIMEOUT_S, broadcasting=True, offsets_dir=tmp_path)
            async with consumer, running(consumer, handled, concurrency=1):
                await reset_meanwhile(
                    broker,
                    consumer,
                    handled,
                    hold=partial(wire.hold, held, TIMEOUT_S * 2),
                    order=partial(apply_reset, broker, target),
                )
                me = consumer.client_id
                await virtually_until(lambda: receipt_of(state, me)[0] is ReceiptState.CONFIRMED, within_s=60)
                await asyncio.sleep(TIMEOUT_S * 2)
                assert wire.held == [held]
                await assert_goes_on(handled, sent, target)
                await virtually_until(lambda: has_first(state, me))
                assert receipt_of(state, me)[1][0].first_offset == target

    run_virtually(scenario(), wire)
