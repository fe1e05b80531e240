"""Consumers go on at the slave while their master is gone, and come back: nothing is lost, all is counted."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from tanist.broker.queue_look import queue_bounds
from tanist.client import Consumer
from tanist.model.reading import EndedBy
from tanist.protocol.bodies.slave_consume import LedgerEvent
from tests.support.consuming import TOPIC, Turnstile, are_shared, in_loop, running, send, until
from tests.support.read_pair import ReadPair

GROUP = "billing"
QUEUES = 4


def member(pair: ReadPair, name: str = "one", *, group: str = GROUP) -> Consumer:
    return Consumer(group=group, namesrv=pair.namesrv, topics={TOPIC: "*"}, instance=name, prefetch_count=4)


def ends(pair: ReadPair) -> Mapping[int, int]:
    store = pair.master.state.store
    return {queue: int(queue_bounds(store, TOPIC, queue)[1]) for queue in range(QUEUES)}


@pytest.mark.behaviour("S3-5")
@pytest.mark.behaviour("S3-39")
@pytest.mark.behaviour("S3-40")
@pytest.mark.behaviour("S3-41")
@pytest.mark.behaviour("S3-43")
@pytest.mark.behaviour("S3-44")
@pytest.mark.behaviour("S3-54")
def test_a_group_reads_on_at_the_slave_and_comes_back_with_every_message_handled_once(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with ReadPair.serving(tmp_path, topics={TOPIC: QUEUES}) as pair:
            handled = Turnstile()
            async with (
                member(pair, "one") as one,
                member(pair, "two") as two,
                running(one, handled),
                running(two, handled),
            ):
                await until(lambda: are_shared([one, two], QUEUES))
                sent = await send(pair.namesrv, 60)
                handled.allow(20)
                await until(lambda: len(handled.bodies) == 20)
                await one.commit()
                await two.commit()
                await pair.in_step()
                base = pair.master.offsets(GROUP, TOPIC)
                await pair.switch()
                handled.allow(20)
                await until(lambda: len(handled.bodies) == 40)
                await one.commit()
                await two.commit()
                assert pair.slave.has_served(GROUP, TOPIC)
                at_slave = pair.slave.offsets(GROUP, TOPIC)
                assert sum(at_slave.values()) > sum(base.values())
                await pair.hand_back()
                at_master = pair.master.offsets(GROUP, TOPIC)
                assert at_master == at_slave
                handled.allow(100)
                await until(lambda: len(handled.bodies) >= 60)
                sent += await send(pair.namesrv, 20, start=60)
                await until(lambda: len(handled.bodies) >= 80)
                await one.commit()
                await two.commit()
            assert Counter(handled.bodies) == Counter(sent)
            assert pair.master.offsets(GROUP, TOPIC) == ends(pair)
            await until(lambda: pair.slave.offsets(GROUP, TOPIC) == ends(pair))
            record = pair.slave.status.record
            assert record is not None
            assert (record.reader, record.ended_by) == (None, EndedBy.HAND_BACK)
            assert pair.slave.status.permission == "NONE"
            key = f"{TOPIC}@{GROUP}"
            (switched,) = await pair.slave.entries(LedgerEvent.SWITCH)
            assert len(switched.conditions) == 7
            assert all(condition.holds for condition in switched.conditions)
            assert switched.offsets[key] == base
            # All that was sent, and not acknowledged where the slave knew of it, might have come twice.
            assert switched.duplicates[GROUP] == 60 - sum(base.values())
            (left,) = await pair.slave.entries(LedgerEvent.HAND_BACK)
            (adopted,) = await pair.master.entries(LedgerEvent.HAND_BACK)
            assert left.offsets[key] == adopted.offsets[key] == at_slave
            assert left.duplicates_at_most is not None
            assert (left.term, left.round) == (adopted.term, adopted.round) == (1, 1)

    in_loop(scenario())


def test_what_the_master_was_told_before_it_went_is_not_taken_back_by_the_slave(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ReadPair.serving(tmp_path, topics={TOPIC: QUEUES}) as pair:
            await send(pair.namesrv, 40)
            await pair.in_step()
            for queue in range(QUEUES):
                for group in ("quiet", "behind", "ahead", "reset"):
                    pair.master.state.offsets.commit(group, TOPIC, queue, 4)
            await pair.in_step()
            with pair.master.unheard():
                for queue in range(QUEUES):
                    for group in ("quiet", "behind", "ahead", "reset"):
                        pair.master.state.offsets.commit(group, TOPIC, queue, 8)
            await pair.switch()
            for queue in range(QUEUES):
                for group, offset in (("behind", 6), ("ahead", 9), ("reset", 2)):
                    pair.slave.state.offsets.commit(group, TOPIC, queue, offset)
            await pair.hand_back()
            for group, offset in (("quiet", 8), ("behind", 8), ("ahead", 9), ("reset", 2)):
                assert set(pair.master.offsets(group, TOPIC).values()) == {offset}, group
            await pair.in_step()

    in_loop(scenario())
