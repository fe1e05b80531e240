"""Slave consumption that is cut short: restarts, an operator's word, and what never reached the slave."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tanist.broker.slave_consume.slave_duty import SlaveDuty
from tanist.client import Consumer, Message, Producer, Start
from tanist.errors import ResponseError
from tanist.model.reading import EndedBy
from tanist.protocol.bodies.slave_consume import LedgerEvent
from tanist.protocol.codes import ResponseCode
from tanist.protocol.command import Command
from tanist.remoting import RemotingClient
from tests.support.consuming import TOPIC, Handled, Turnstile, in_loop, running, send, until
from tests.support.read_pair import ReadPair
from tests.support.requests import pull_request

GROUP = "billing"


def member(pair: ReadPair, **arguments: Any) -> Consumer:
    given: dict[str, Any] = {"group": GROUP, "topics": {TOPIC: "*"}, "prefetch_count": 4, **arguments}
    return Consumer(namesrv=pair.namesrv, **given)


async def pull(address: str) -> Command:
    """What a broker says to who reads from it, whatever routes and registry say."""
    client = RemotingClient()
    try:
        return await client.request(address, pull_request(0, topic=TOPIC), timeout_s=10)
    finally:
        await client.close()


async def view_names(pair: ReadPair, group: str) -> None:
    """Wait until the slave knows from its master who consumes there."""
    duty = pair.slave.state.slave_consume
    assert isinstance(duty, SlaveDuty)
    await until(lambda: duty.master_view is not None and group in duty.master_view.members)


def test_a_slave_that_is_started_anew_while_it_is_read_goes_on_and_hands_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ReadPair.serving(tmp_path, topics={TOPIC: 1}) as pair:
            handled = Turnstile()
            async with member(pair) as consumer, running(consumer, handled, concurrency=1):
                sent = await send(pair.namesrv, 20)
                handled.allow(4)
                await until(lambda: len(handled.bodies) == 4)
                await consumer.commit()
                await pair.in_step()
                await pair.switch()
                handled.allow(6)
                await until(lambda: len(handled.bodies) == 10)
                await consumer.commit()
                await pair.slave.crash()
                await pair.slave.start()
                await pair.slave.has("READ")
                assert pair.slave.status.term == 1
                # What it was told since it is read may be lost, and is told again; but nothing of before.
                assert pair.slave.offsets(GROUP, TOPIC)[0] in (4, 10)
                handled.allow(4)
                await until(lambda: len(handled.bodies) == 14)
                await consumer.commit()
                await pair.hand_back()
                assert pair.master.offsets(GROUP, TOPIC) == {0: 14}
                handled.allow(100)
                await until(lambda: len(handled.bodies) >= 20)
            assert Counter(handled.bodies) == Counter(sent)

    in_loop(scenario())


@pytest.mark.behaviour("S3-37")
def test_a_master_that_returns_while_the_slave_is_down_waits_for_it_or_for_an_operator(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with ReadPair.serving(tmp_path, topics={TOPIC: 1}) as pair:
            await send(pair.namesrv, 20)
            pair.master.state.offsets.commit(GROUP, TOPIC, 0, 4)
            await pair.in_step()
            await pair.switch()
            pair.slave.state.offsets.commit(GROUP, TOPIC, 0, 12)
            duty = pair.slave.state.slave_consume
            assert duty is not None
            with pytest.raises(ResponseError, match="this is a slave"):
                await duty.end("an operator's word", is_forced=False)
            await pair.slave.stop()
            await pair.master.start()
            await until(lambda: pair.master.status.record is not None)
            status = pair.master.status
            assert (status.permission, status.reader) == ("NONE", pair.slave.address)
            master = pair.master.state.slave_consume
            assert master is not None
            refusal = await pull(pair.master.address)
            assert refusal.code == ResponseCode.NO_PERMISSION
            assert f"{pair.slave.address} is read" in str(refusal.remark)
            assert "is ended" in await master.end("the slave is lost", is_forced=False)
            await pair.master.has("FULL")
            (entry,) = await pair.master.entries(LedgerEvent.ENDED_BY_OPERATOR)
            assert entry.reason == "the slave is lost"
            assert entry.offsets[f"{TOPIC}@{GROUP}"] == {0: 4}
            # It knows nothing of what the slave was told: all from its own offset on may come twice.
            assert entry.duplicates == {GROUP: 16}
            assert entry.duplicates_at_most == 16
            with pytest.raises(ResponseError, match="no slave consumption to end"):
                await master.end("once more", is_forced=False)
            # The slave comes back to a group that is read elsewhere, and takes the master's offsets.
            await pair.slave.start()
            await pair.is_ready()
            assert pair.slave.status.permission == "NONE"
            assert pair.slave.offsets(GROUP, TOPIC) == {0: 4}
            record = pair.slave.status.record
            assert record is not None
            assert (record.reader, record.ended_by) == (None, EndedBy.OPERATOR)

    in_loop(scenario())


def test_a_topic_and_a_group_that_never_reached_the_slave_are_there_again_with_the_master(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with ReadPair.serving(tmp_path, topics={TOPIC: 1}) as pair:
            sent = await send(pair.namesrv, 4)
            await pair.in_step()
            # The slave goes for a moment, and does not hear of what is made meanwhile.
            await pair.slave.stop()
            async with Producer(group="senders", namesrv=pair.namesrv) as producer:
                await producer.send(Message("Late", b"late"), timeout_s=30)
            pair.master.state.groups.ensure("new")
            pair.master.state.offsets.commit("new", TOPIC, 0, 2)
            await pair.master.stop()
            await pair.slave.start()
            await pair.slave.has("READ")
            assert pair.slave.state.topics.find("Late") is None
            handled = Handled()
            async with member(pair, group="new", start=Start.FIRST) as consumer, running(consumer, handled):
                # A slave makes no group, and begins none that it does not know anew: it waits for the master.
                await until(lambda: pair.slave.state.clients.member_ids("new") == [consumer.client_id])
                await pair.hand_back()
                sent += await send(pair.namesrv, 1, start=4)
                await until(lambda: len(handled.bodies) >= 3)
            assert Counter(handled.bodies) == Counter(sent[2:])
            assert pair.master.state.topics.find("Late") is not None
            await pair.in_step()
            assert pair.slave.state.topics.find("Late") is not None

    in_loop(scenario())


@pytest.mark.behaviour("S3-55")
def test_a_switch_has_no_bound_where_a_group_consumed_that_never_committed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ReadPair.serving(tmp_path, topics={TOPIC: 2}) as pair:
            handled = Turnstile()
            async with member(pair, group="shy", start=Start.FIRST) as consumer, running(consumer, handled):
                await send(pair.namesrv, 10)
                pair.master.state.offsets.commit(GROUP, TOPIC, 0, 3)
                await pair.in_step()
                await view_names(pair, "shy")
                await pair.switch()
                (entry,) = await pair.slave.entries(LedgerEvent.SWITCH)
            assert entry.duplicates_at_most is None
            assert "shy" in entry.reason
            # Of the second queue that group had told nothing.
            assert entry.duplicates == {GROUP: 2 + 5}

    in_loop(scenario())
