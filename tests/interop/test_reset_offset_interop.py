"""``tanist admin resetOffset`` with a broker of RocketMQ, which knows no orders and gives no receipts."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tanist.cli.main import tanist
from tanist.client import Consumer, Start
from tests.support.consuming import Handled, in_loop, running, send, until
from tests.support.rocketmq import RocketMQ

pytestmark = pytest.mark.partner("java", "maven")

TOPIC = GROUP = "ResetOffsetInterop"
COUNT = 8


class Operator:
    """Runs the command line beside the event loop of a consumer."""

    def __init__(self, namesrv: str, folder: Path) -> None:
        self._namesrv = namesrv
        self.plan = str(folder / "plan.json")

    async def runs(self, *words: str) -> Result:
        arguments = ["admin", *words]
        return await asyncio.to_thread(
            CliRunner().invoke, tanist, arguments, env={"NAMESRV_ADDR": self._namesrv}
        )

    async def resets(self, *words: str) -> str:
        result = await self.runs("resetOffset", *words)
        assert result.exit_code == 0, (result.output, result.exception)
        return result.stdout

    async def plans(self, target: str) -> dict[str, Any]:
        words = ("plan", "-g", GROUP, "-t", TOPIC, "--to", target, "-o", self.plan, "--json")
        return json.loads(await self.resets(*words))


def consumer(namesrv: str) -> Consumer:
    return Consumer(group=GROUP, namesrv=namesrv, topics={TOPIC: "*"}, start=Start.FIRST)


@pytest.mark.behaviour("S4-4", "S4-50")
def test_a_group_of_a_stock_broker_is_moved_offline_and_online_and_no_receipt_is_claimed(
    shared_rocketmq: RocketMQ, tmp_path: Path
) -> None:
    namesrv = shared_rocketmq.name_server
    shared_rocketmq.mqadmin("updateTopic", "-c", "tanist-tests", "-t", TOPIC, "-r", "1", "-w", "1")

    async def scenario() -> None:
        operator = Operator(namesrv, tmp_path)
        await send(namesrv, COUNT, topic=TOPIC)
        async with consumer(namesrv) as first, running(first, handled := Handled()):
            await until(lambda: len(handled.messages) == COUNT)

        # Offline: the offset is committed for them, and taken back.
        plan = await operator.plans("offset=5")
        assert [queue["now"] for queue in plan["queues"]] == [COUNT]
        assert "no client's receipt can be had" in await operator.resets("apply", operator.plan, "--yes")
        assert "at target" in await operator.resets("verify", operator.plan)
        await operator.resets("undo", operator.plan, "--yes")

        async with consumer(namesrv) as second, running(second, again := Handled()):
            await until(lambda: bool(second.assignment))
            # Online: this broker can only be told a time, and tells its clients.
            await operator.plans("offset=5")
            refused = await operator.runs("resetOffset", "apply", operator.plan, "--yes")
            assert "to a time only" in str(refused.exception)
            plan = await operator.plans(str(handled.messages[5].store_timestamp_ms))
            assert any("no Tanist broker" in text for text in plan["warnings"])
            shown = await operator.runs("resetOffset", "apply", operator.plan, "--yes", "--wait", "0")
            assert "no client's receipt can be had" in shown.stdout
            target = plan["queues"][0]["target"]
            await until(lambda: len(again.messages) == COUNT - target)

            ours = await operator.runs("skipAccumulatedMessage", "-g", GROUP, "-t", TOPIC)
            theirs = await asyncio.to_thread(
                shared_rocketmq.mqadmin, "skipAccumulatedMessage", "-g", GROUP, "-t", TOPIC
            )
            assert ours.stdout.splitlines() == theirs.splitlines()[-2:]

    in_loop(scenario())
