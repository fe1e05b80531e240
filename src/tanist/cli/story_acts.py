"""The acts of the demo: what is done in each, and what is measured of what was promised."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tanist.admin.asking import asking
from tanist.admin.cluster import broker_consume_stats, topic_stats
from tanist.admin.replication import ha_status
from tanist.admin.slave_consume import slave_consume_status
from tanist.cli.story import (
    GROUP,
    TOPIC,
    Stage,
    StoryFailed,
    Told,
    Verdict,
    reading,
    seen,
    send,
    stage,
    tanist,
)
from tanist.client.message import Message
from tanist.client.producer import Producer
from tanist.client.session.wire import Wire
from tanist.errors import MQError
from tanist.up.control import Act
from tanist.up.plan import Mode

Tell = Callable[[str], None]

UP_S = 5.0
READ_ON_S = 10.0
SWITCH_S = 10.0
_FIRST, _MORE = 2000, 500
_BEFORE_KILL = 200


async def fixed_roles(home: Path, tell: Tell) -> list[Verdict]:
    """Send, kill the master, read on from the slave, and give back what was read."""
    told = Told(hold_at=_BEFORE_KILL)
    async with stage(home, Mode.FIXED_ROLES) as (up, took_s), asking() as wire:
        verdicts = [Verdict(f"up in under {UP_S:g} s", f"{took_s:.1f} s", took_s < UP_S)]
        tell(f"a master and its slave are up, with console and controller, after {took_s:.1f} s")
        async with Producer(group="story", namesrv=up.name_server) as producer:
            await send(producer, told, 1)
            await _both_hold(wire, up)
            await send(producer, told, _FIRST)
            # Those that came before the slave did were told not to be on it.
            tell(f"{len(told.acked)} messages are acknowledged, each held by both brokers")
            async with reading(up.name_server, told):
                await seen("the first messages are read", lambda: len(told.got) >= _BEFORE_KILL)
                verdicts += await _kill_and_read(up, wire, told, tell)
                verdicts.append(await _hand_back(up, wire, producer, told, tell))
    return verdicts


async def _kill_and_read(up: Stage, wire: Wire, told: Told, tell: Tell) -> list[Verdict]:
    await up.order(Act.KILL, "master")
    before, killed_s = len(told.got), time.monotonic()
    told.go_on.set()
    tell(f"kill -9 to the master, {before} messages are read until now")
    # What it held in memory is not what the slave was read for.
    await seen("reading goes on", lambda: len(told.got) >= before + _BEFORE_KILL)
    went_on_s = time.monotonic() - killed_s
    await seen("the rest is read", lambda: told.lost == 0)
    tell(f"consumers read on from the slave after {went_on_s:.1f} s")
    status = await slave_consume_status(wire, up.brokers[1])
    counted = status.delivered_twice.get(GROUP, 0)
    return [
        Verdict(
            f"consumers read on within {READ_ON_S:g} s of a kill -9",
            f"{went_on_s:.1f} s",
            went_on_s < READ_ON_S,
        ),
        Verdict(
            "nothing acknowledged is lost with the master",
            f"{told.lost} of {len(told.acked)} missing",
            told.lost == 0,
        ),
        Verdict(
            "what comes twice is counted",
            f"{told.twice} came twice, {counted} counted",
            told.twice <= counted,
        ),
    ]


async def _hand_back(up: Stage, wire: Wire, producer: Producer, told: Told, tell: Tell) -> Verdict:
    await up.order(Act.RESTART)

    async def is_master_read() -> bool:
        try:
            return (await slave_consume_status(wire, up.brokers[0])).permission == "FULL"
        except MQError:
            return False

    back_s = await seen("the master is read again", is_master_read)
    twice, sent = told.twice, len(told.acked)
    await send(producer, told, _MORE)
    await seen("all is read at the master", lambda: told.lost == 0)
    tell(f"the master is back: the slave handed its offsets over after {back_s:.1f} s")
    again = told.twice - twice
    return Verdict(
        "the slave hands back what was read",
        f"after {back_s:.1f} s; {len(told.acked) - sent} more read, {again} of all again",
        told.lost == 0,
    )


async def auto_switch(home: Path, tell: Tell, *, has_spark: bool) -> list[Verdict]:
    """Reset a group and take it back, kill a master that is replaced, archive, and compare the replicas."""
    told = Told()
    async with stage(home, Mode.AUTO_SWITCH) as (up, _), asking() as wire:
        async with Producer(group="story", namesrv=up.name_server) as producer:
            await send(producer, told, 1)
            await _both_hold(wire, up)
            await send(producer, told, _MORE)
            async with reading(up.name_server, told):
                verdicts = await _reset(up, wire, told, home, tell)
                verdicts += await _switch(up, wire, producer, told, tell)
        if has_spark:
            verdicts += await archive_and_audit(up, wire, home, tell)
    return verdicts


async def _switch(up: Stage, wire: Wire, producer: Producer, told: Told, tell: Tell) -> list[Verdict]:
    await up.order(Act.KILL, "master")
    killed_s = time.monotonic()
    receipt = await producer.send(Message(TOPIC, b"after the switch"), timeout_s=60)
    switched_s = time.monotonic() - killed_s
    told.acked.append(receipt.message_id)
    tell(f"kill -9 to the elected master: the slave took over, and the next send, after {switched_s:.1f} s")
    await send(producer, told, _MORE)
    await up.order(Act.RESTART)
    await _both_hold(wire, up)
    await send(producer, told, _MORE)
    await seen("all is read", lambda: told.lost == 0)
    tell("the old master follows the new one, and both are in step")
    return [
        Verdict(
            f"another master takes messages within {SWITCH_S:g} s",
            f"{switched_s:.1f} s",
            switched_s < SWITCH_S,
        ),
        Verdict(
            "nothing acknowledged is lost by the switch",
            f"{told.lost} of {len(told.acked)} missing",
            told.lost == 0,
        ),
    ]


async def _reset(up: Stage, wire: Wire, told: Told, home: Path, tell: Tell) -> list[Verdict]:
    async def is_all_acknowledged() -> bool:
        # Clients tell it every few seconds, and a plan goes by what brokers know.
        stats = await broker_consume_stats(wire, await _master(wire, up))
        offsets = (
            at.consumer_offset
            for by_group in stats.consume_stats_list
            for table in by_group.get(GROUP, ())
            for queue, at in table.offset_table.items()
            if queue.topic == TOPIC
        )
        return sum(offsets) == await _stored(wire, up)

    await seen("the group has acknowledged all", is_all_acknowledged)
    plan, twice = home / "story.plan.json", told.twice
    command = ("admin", "resetOffset")
    wanted = ("-n", up.name_server, "-g", GROUP, "-t", TOPIC, "--to", "earliest", "-o", plan)
    code, said = await tanist(*command, "plan", *wanted, "--json")
    if code:
        return [Verdict("a reset is planned first", said.strip(), False)]
    planned = json.loads(said)
    queues, again = planned["queues"], planned["replayed"]
    preview, _ = await tanist(*command, "preview", plan)
    tell(f"a reset to the beginning is planned: {again} messages of {len(queues)} queues would come again")
    applied, said = await tanist(*command, "apply", plan, "--yes", "--json")
    done: dict[str, Any] = json.loads(said) if applied == 0 else {}
    await seen("they come again", lambda: told.twice - twice >= again)
    confirmed = len(done.get("confirmed", ()))
    undone, _ = await tanist(*command, "undo", plan, "--yes", "--json")
    back, said = await tanist(*command, "verify", plan.with_name("story.plan.undo.json"), "--json")
    tell(f"applied, {confirmed} client confirmed, {told.twice - twice} came again; undone")
    return [
        Verdict(
            "a reset moves the group as previewed, and clients confirm",
            f"{told.twice - twice} of {again} came again, {confirmed} of 1 confirmed",
            preview == applied == 0 and 0 < again <= told.twice - twice and confirmed == 1,
        ),
        Verdict("a reset is undone", _undo_words(undone, back, said), undone == back == 0),
    ]


def _undo_words(undone: int, back: int, said: str) -> str:
    if undone == back == 0:
        return "the group stands where it stood"
    return f"exit codes {undone} and {back}: {said.strip()[:200]}"


async def archive_and_audit(up: Stage, wire: Wire, home: Path, tell: Tell) -> list[Verdict]:
    """Archive the topic, and compare the stores of both brokers."""
    archive = home / "archive"
    tell("Spark archives the topic, and compares the logs of both brokers byte for byte")
    code, said = await tanist(
        *("spark", "archive", "--namesrv", up.name_server, "--topics", TOPIC),
        *("--to", archive, "--once", "--json"),
    )
    rows = json.loads(said)["rows"] if code == 0 else None
    there = await _stored(wire, up)
    audited, found = await tanist("spark", "audit", *up.stores, "--json")
    return [
        Verdict(
            "Spark archives each message once",
            f"{rows} of {there}" if code == 0 else said.strip()[-200:],
            rows == there,
        ),
        Verdict("both replicas hold the same bytes", _audit_words(found), audited == 0),
    ]


def _audit_words(said: str) -> str:
    """What an audit found, of the JSON that it says; or the end of what it says if it found nothing."""
    try:
        report: dict[str, Any] = json.loads(said)
    except ValueError:
        return said.strip()[-200:]
    if blocks := report["differentBlocks"]:
        return f"{blocks} blocks differ, first at log offset {report['firstDifference']}: {report['record']}"
    if problems := report["indexProblems"]:
        return f"the logs are equal; of the indexes {len(problems)} are not: {problems[0]}"
    return f"{report['logEnd'] - report['logStart']} bytes are equal"


async def _stored(wire: Wire, up: Stage) -> int:
    """How many messages the topic has, as its master says."""
    stats = await topic_stats(wire, await _master(wire, up), TOPIC)
    return sum(queue.max_offset - queue.min_offset for queue in stats.offset_table.values())


async def _master(wire: Wire, up: Stage) -> str:
    for address in up.brokers:
        if (await ha_status(wire, address)).is_master:
            return address
    raise StoryFailed("no broker says that it is master")


async def _both_hold(wire: Wire, up: Stage) -> None:
    """Wait until the slave is in step with its master."""

    async def is_in_step() -> bool:
        for address in up.brokers:
            try:
                status = await ha_status(wire, address)
            except MQError:
                return False
            if status.is_master:
                members = None if status.controlled is None else status.controlled.sync_state_set
                return status.in_sync_slave_count == 1 and (members is None or len(members) == 2)
        return False

    await seen("both brokers are in step", is_in_step)
