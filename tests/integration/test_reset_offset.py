"""``tanist admin resetOffset``, a broker and consumers: planned, applied, confirmed and taken back."""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tanist.admin.resets.progress import Outcome
from tanist.admin.resets.refused import ResetRefused
from tanist.cli.main import tanist
from tanist.client import Consumer, Message, Producer, Start
from tanist.protocol.response_errors import NoPermission
from tanist.testing import EmbeddedBroker
from tests.support.consuming import TOPIC, Handled, Turnstile, in_loop, own_queues, running, send, until
from tests.support.site import wait_until
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess
from tests.support.topics import create_topic, route_brokers

GROUP = "billing"
COUNT = 20


class Operator:
    """Runs the command line beside the event loop in which brokers and consumers live."""

    def __init__(self, namesrv: str, folder: Path) -> None:
        self._namesrv = namesrv
        self.plan = folder / "plan.json"

    async def runs(self, command: str, *arguments: str) -> Result:
        # The level of its log is that of the whole process, the broker and the consumers included.
        words = ["-v", "admin", *command.split(), *arguments]
        environment = {"NAMESRV_ADDR": self._namesrv}
        return await asyncio.to_thread(CliRunner().invoke, tanist, words, env=environment)

    async def plans(self, *targets: str) -> dict[str, Any]:
        to = [word for target in targets for word in ("--to", target)]
        result = await self.runs(
            "resetOffset plan", "-g", GROUP, "-t", TOPIC, *to, "-o", str(self.plan), "--json"
        )
        assert result.exit_code == 0, result.exception
        return json.loads(result.stdout)

    async def does(self, command: str, *arguments: str, plan: Path | None = None) -> str:
        """A command about the plan that has to end well; what it shows."""
        result = await self.runs(f"resetOffset {command}", str(plan or self.plan), *arguments)
        assert result.exit_code == 0, (result.output, result.exception)
        return result.stdout


def consumer_of(namesrv: str, instance: str, **other: Any) -> Consumer:
    return Consumer(
        group=GROUP,
        namesrv=namesrv,
        topics={TOPIC: "*"},
        start=Start.FIRST,
        instance=instance,
        **other,
    )


def targets(plan: dict[str, Any]) -> dict[int, int]:
    return {queue["queueId"]: queue["target"] for queue in plan["queues"]}


@pytest.mark.behaviour("S4-1", "S4-50")
def test_a_group_goes_back_is_confirmed_verified_and_taken_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 2}) as broker:
            operator, handled = Operator(broker.namesrv, tmp_path), Handled()
            sent = await send(broker.namesrv, COUNT)
            async with (
                consumer_of(broker.namesrv, "one") as one,
                consumer_of(broker.namesrv, "two") as two,
                running(one, handled),
                running(two, handled),
            ):
                await until(
                    lambda: (
                        len(handled.messages) == COUNT and len(own_queues(one)) == len(own_queues(two)) == 1
                    )
                )
                await one.commit()
                await two.commit()
                plan = await operator.plans("lag=4")
                assert targets(plan) == {0: COUNT // 2 - 4, 1: COUNT // 2 - 4}
                assert (plan["replayed"], plan["skipped"]) == (8, 0)
                assert "2 of 2 clients confirmed" in await operator.does("apply", "--yes", "--user", "ann")
                await until(lambda: len(handled.messages) == COUNT + 8)
                assert set(handled.bodies[COUNT:]) <= set(sent)
                assert "it holds" in await operator.does("verify")
                await operator.does("undo", "--yes")
                assert "it holds" in await operator.does("verify", plan=tmp_path / "plan.undo.json")
                again = await operator.runs("resetOffset apply", str(operator.plan), "--yes")
                assert (again.exit_code, "since then undone by" in again.stdout) == (Outcome.MOVED, True)
            # Nothing came again because of the undo: the group went forward to where it had been.
            assert len(handled.messages) == COUNT + 8
            listed = (await operator.runs("resetOffset list", "--json")).stdout
            first, second = json.loads(listed)["orders"]
            assert (first["caller"], second["undoes"]) == ("ann", plan["planId"])

    in_loop(scenario())


@pytest.mark.behaviour("S4-21", "S4-30")
def test_every_client_of_a_broadcasting_group_moves_and_says_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            operator, first, second = Operator(broker.namesrv, tmp_path), Handled(), Handled()
            await send(broker.namesrv, COUNT)
            async with (
                consumer_of(broker.namesrv, "one", broadcasting=True, offsets_dir=tmp_path) as one,
                consumer_of(broker.namesrv, "two", broadcasting=True, offsets_dir=tmp_path) as two,
                running(one, first),
                running(two, second),
            ):
                await until(lambda: len(first.messages) == len(second.messages) == COUNT)
                plan = await operator.plans("offset=15")
                assert (plan["model"], len(plan["clients"])) == ("BROADCASTING", 2)
                assert "2 of 2 clients confirmed" in await operator.does("apply", "--yes")
                await until(lambda: len(first.messages) == len(second.messages) == COUNT + 5)
                assert "it holds" in await operator.does("verify")

    in_loop(scenario())


def test_an_offline_group_starts_where_it_was_put_and_each_target_is_found(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            operator = Operator(broker.namesrv, tmp_path)
            async with Producer(group="senders", namesrv=broker.namesrv) as producer:
                receipts = [
                    await producer.send(Message(TOPIC, b"%d" % number, keys=[f"o-{number}"]))
                    for number in range(COUNT)
                ]
            async with consumer_of(broker.namesrv, "one") as one, running(one, handled := Handled()):
                await until(lambda: len(handled.messages) == COUNT)
            assert targets(await operator.plans(f"message={receipts[7].message_id}")) == {0: 7}
            assert targets(await operator.plans(f"message={receipts[8].offset_id}")) == {0: 8}
            assert targets(await operator.plans("key=o-9")) == {0: 9}
            assert targets(await operator.plans("-1h")) == {0: 0}
            assert targets(await operator.plans("group=billing")) == {0: COUNT}
            plan = await operator.plans("key=o-15")
            assert any("nobody of the group is online" in text for text in plan["warnings"])
            assert "1 of 1 queues are changed" in await operator.does("apply", "--yes")
            await operator.does("verify")
            async with consumer_of(broker.namesrv, "two") as two, running(two, again := Handled()):
                await until(lambda: len(again.messages) == COUNT - 15)
            assert again.messages[0].queue_offset == 15

    in_loop(scenario())


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={TOPIC: 1}) as broker:
            operator = Operator(broker.namesrv, tmp_path)
            unknown = await operator.runs("resetOffset plan", "-g", GROUP, "-t", TOPIC, "--to", "earliest")
            assert isinstance(unknown.exception, ResetRefused)
            assert f"knows a group {GROUP}" in str(unknown.exception)
            nowhere = await operator.runs(
                "resetOffset plan", "-g", GROUP, "-t", "Nowhere", "--to", "earliest"
            )
            assert "knows no topic Nowhere" in str(nowhere.exception)
            nothing = await operator.runs("resetOffset approve", "nothing")
            assert "no order nothing waits for approval" in str(nothing.exception)

    in_loop(scenario())


@pytest.mark.behaviour("S4-2", "S4-4", "S4-31", "S4-32", "S4-33", "S4-49")
def test_a_backlog_is_skipped_when_another_has_approved_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Asked for by a user, approved by an administrator, and followed by the consumer."""
    caplog.set_level(logging.INFO)

    async def scenario() -> None:
        settings = {"resetNeedsApproval": "true"}
        async with EmbeddedBroker(topics={TOPIC: 1}, settings=settings) as broker:
            operator = Operator(broker.namesrv, tmp_path)
            await send(broker.namesrv, COUNT)
            slow = Turnstile()
            slow.allow(1)
            async with consumer_of(broker.namesrv, "one") as consumer, running(consumer, slow, concurrency=1):
                await until(lambda: len(slow.messages) == 1)
                await consumer.commit()
                asked = await operator.runs("skipAccumulatedMessage", "-g", GROUP, "-t", TOPIC)
                assert asked.exit_code == Outcome.WAITING
                assert "nothing is changed before another says" in asked.stdout
                (order,) = json.loads((await operator.runs("resetOffset list", "--json")).stdout)["orders"]
                assert (order["state"], order["targets"][0]["target"]) == ("WAITING", COUNT)
                own = await operator.runs("resetOffset approve", order["orderId"], "--user", order["caller"])
                assert isinstance(own.exception, NoPermission)
                approved = await operator.runs("resetOffset approve", order["orderId"], "--user", "bob")
                assert approved.exit_code == 0, approved.exception
                # One more was in the handler's hands; nothing else of the backlog follows.
                slow.allow(COUNT)
                await until(lambda: "reset offset success" in caplog.text)
                await send(broker.namesrv, 1, start=COUNT)
                await until(lambda: b"%d" % COUNT in slow.bodies)
            assert [message.queue_offset for message in slow.messages] == [0, 1, COUNT]

    in_loop(scenario())
    lines = [record.getMessage() for record in caplog.records]
    story = [
        "[reset-offset] reset offset started by 127.0.0.1:",
        "invoke reset offset operation from broker",
        "suspend this consumer",
        "doRebalance",
        "resume this consumer",
        "[reset-offset] reset offset success",
    ]
    begin = next(at for at, line in enumerate(lines) if story[0] in line)
    told = lines[begin:]
    assert f"topic={TOPIC}, group={GROUP}, timestamp=-1, isForce=true" in told[0]
    positions = [next(at for at, line in enumerate(told) if words in line) for words in story]
    assert positions[:5] == sorted(positions[:5])
    assert f"topic={TOPIC}, group={GROUP}, clientId=127.0.0.1@one" in told[positions[5]]


def test_one_order_moves_a_group_at_two_brokers(tmp_path: Path) -> None:
    async def scenario(namesrv: str) -> None:
        operator, handled = Operator(namesrv, tmp_path), Handled()
        await send(namesrv, COUNT)
        async with consumer_of(namesrv, "one") as one, running(one, handled):
            await until(lambda: len(handled.messages) == COUNT)
            await one.commit()
            plan = await operator.plans("earliest")
            assert {queue["brokerName"] for queue in plan["queues"]} == {"broker-a", "broker-b"}
            assert "1 of 1 client confirmed" in await operator.does("apply", "--yes")
            await until(lambda: len(handled.messages) == 2 * COUNT)
            assert "it holds" in await operator.does("verify")
            orders = json.loads((await operator.runs("resetOffset list", "--json")).stdout)["orders"]
            assert [order["orderId"] for order in orders] == [plan["planId"]] * 2

    with (
        NameServerProcess(tmp_path / "names") as names,
        BrokerProcess(tmp_path / "a", names.address, name="broker-a") as broker_a,
        BrokerProcess(tmp_path / "b", names.address, name="broker-b") as broker_b,
    ):
        for broker in (broker_a, broker_b):
            create_topic(broker.address, TOPIC, queue_count=2)
        wait_until(lambda: len(route_brokers(names.address, TOPIC)) == 2)
        in_loop(scenario(names.address))
