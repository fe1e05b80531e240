"""Orders to move a group, at a broker with consumers that were not written to be moved by it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tanist.client import Consumer, MessageQueue, Start
from tanist.model.offsets import QueueOffset
from tanist.protocol import Command, RequestCode
from tanist.protocol.bodies.base import encode_body
from tanist.protocol.bodies.reset import (
    ClientReceipt,
    QueueTarget,
    QueueTargets,
    ReceiptState,
    ResetOrders,
    ResetOrderView,
    ResetState,
)
from tanist.protocol.codes import ResponseCode
from tanist.protocol.headers.base import Header
from tanist.protocol.headers.reset import ApplyResetRequest, GetResetOrdersRequest
from tanist.protocol.java_json import decode_java_json
from tanist.remoting import RemotingClient
from tanist.testing import EmbeddedBroker
from tests.support.consuming import TOPIC, Handled, are_shared, in_loop, send, until

GROUP = "billing"
COUNT = 12
QUEUE_COUNT = 3


class Operator:
    """Asks one broker."""

    def __init__(self, broker: EmbeddedBroker) -> None:
        self._broker = broker
        self._client = RemotingClient()

    async def close(self) -> None:
        await self._client.close()

    async def ask(self, code: RequestCode, header: Header, body: bytes = b"") -> Command:
        request = Command.request(code, header, body=body)
        answer = await self._client.request(self._broker.address, request, timeout_s=40)
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        return answer

    async def apply(
        self, order_id: str, targets: dict[int, int], *, expected: int | None = None
    ) -> ResetOrderView:
        """Order these targets, where the group stands at ``expected``; without one, wherever it stands."""
        rows = [
            QueueTarget(
                queue_id=queue_id,
                expected_offset=None if expected is None else QueueOffset(expected),
                target=QueueOffset(target),
            )
            for queue_id, target in targets.items()
        ]
        header = ApplyResetRequest(
            order_id=order_id, topic=TOPIC, group=GROUP, caller="ann", is_forced=expected is None
        )
        body = encode_body(QueueTargets(targets=rows))
        return decode_java_json((await self.ask(RequestCode.APPLY_RESET, header, body)).body, ResetOrderView)

    async def orders(self, seen_version: int = -1) -> ResetOrders:
        header = GetResetOrdersRequest(seen_version=seen_version, wait_ms=0 if seen_version < 0 else 5_000)
        return decode_java_json((await self.ask(RequestCode.GET_RESET_ORDERS, header)).body, ResetOrders)

    async def confirmed(self, count: int) -> list[ClientReceipt]:
        """The receipts of the last order, when so many clients have confirmed it."""
        seen = await self.orders()
        while True:
            receipts = seen.orders[-1].receipts
            if sum(receipt.state is ReceiptState.CONFIRMED for receipt in receipts) == count:
                return receipts
            seen = await self.orders(seen.version)


@asynccontextmanager
async def members(
    broker: EmbeddedBroker, root: Path, count: int, *, is_broadcasting: bool
) -> AsyncGenerator[list[Handled]]:
    """So many members at work, each with what it was given."""
    handled = [Handled() for _ in range(count)]
    consumers: list[Consumer] = []
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        for number, each in enumerate(handled):
            consumer = Consumer(
                group=GROUP,
                namesrv=broker.namesrv,
                topics={TOPIC: "*"},
                start=Start.FIRST,
                instance=f"member-{number}",
                broadcasting=is_broadcasting,
                offsets_dir=root / "offsets" if is_broadcasting else None,
            )
            consumers.append(await stack.enter_async_context(consumer))
            tasks.create_task(consumer.run(each))
        # Before that queues go from one to another, and their messages may come twice.
        await until(lambda: is_broadcasting or are_shared(consumers, QUEUE_COUNT))
        yield handled


@asynccontextmanager
async def operator(broker: EmbeddedBroker) -> AsyncGenerator[Operator]:
    made = Operator(broker)
    try:
        yield made
    finally:
        await made.close()


def got(handled: list[Handled], count: int) -> bool:
    """Whether the members have got so many all together."""
    return sum(len(each.messages) for each in handled) == count


@pytest.mark.behaviour("S4-1", "S4-30", "S4-50")
@pytest.mark.parametrize("is_server_side", [False, True], ids=["sent to clients", "answered to pulls"])
@pytest.mark.parametrize("is_broadcasting", [False, True], ids=["clustering", "broadcasting"])
def test_all_members_go_back_and_each_is_seen_to(
    tmp_path: Path, is_broadcasting: bool, is_server_side: bool
) -> None:
    """RocketMQ's server side reset moves one of several broadcasting members: the first that pulls."""
    each_count = COUNT * 3 if is_broadcasting else COUNT
    settings = {"useServerSideResetOffset": str(is_server_side).lower()}

    async def scenario() -> None:
        async with (
            EmbeddedBroker(topics={TOPIC: QUEUE_COUNT}, settings=settings) as broker,
            members(broker, tmp_path, 3, is_broadcasting=is_broadcasting) as handled,
            operator(broker) as asks,
        ):
            await send(broker.namesrv, COUNT)
            await until(lambda: got(handled, each_count))
            await asks.apply("o1", dict.fromkeys(range(QUEUE_COUNT), 0))
            receipts = await asks.confirmed(3)
            assert {receipt.state for receipt in receipts} == {ReceiptState.CONFIRMED}
            await until(lambda: got(handled, each_count * 2))
            if is_broadcasting:
                assert all(len(each.messages) == COUNT * 2 for each in handled)

    in_loop(scenario())


def test_an_order_is_known_after_a_restart_and_given_again_changes_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: QUEUE_COUNT}, store=tmp_path) as broker:
            async with members(broker, tmp_path, 1, is_broadcasting=False) as handled:
                first = MessageQueue(topic=TOPIC, broker_name=broker.broker_name, queue_id=0)
                await send(broker.namesrv, COUNT, queue=first)
                await until(lambda: got(handled, COUNT))
            async with operator(broker) as asks:
                before = await asks.apply("o1", {0: 4}, expected=COUNT)
                assert (before.state, before.before) == (ResetState.APPLIED, {0: COUNT})
        async with EmbeddedBroker(store=tmp_path) as broker, operator(broker) as asks:
            assert await asks.apply("o1", {0: 4}, expected=COUNT) == before
            async with members(broker, tmp_path, 1, is_broadcasting=False) as handled:
                await until(lambda: got(handled, COUNT - 4))

    in_loop(scenario())
