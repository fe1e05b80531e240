"""What an operator sees of a switch and of the hand-back: how it stands, alarms, and what came twice."""

import asyncio
import logging
from pathlib import Path

import pytest

from tanist.broker.operating.broker_metrics import broker_sampler
from tanist.broker.operating.slave_consume_figures import slave_consume_metrics
from tanist.protocol import Command, ResponseCode
from tanist.protocol.bodies.slave_consume import LedgerEvent
from tests.support.consuming import in_loop, send, until
from tests.support.read_pair import PairBroker, ReadPair
from tests.support.requests import GROUP, TOPIC, pull_request
from tests.support.wire import Wire

COUNT = 20


async def pull(broker: PairBroker, offset: int) -> None:
    def ask() -> Command:
        with Wire(broker.address) as wire:
            return wire.ask(pull_request(offset))

    assert (await asyncio.to_thread(ask)).code == ResponseCode.SUCCESS


def metric(broker: PairBroker, name: str, label: str) -> float:
    """The sample of a metric whose last label this is."""
    samples = [
        sample
        for family in slave_consume_metrics(broker_sampler(broker.state), broker.state)
        for sample in family.samples
    ]
    (found,) = [one.value for one in samples if one.name == name and [*one.labels.values()][-1] == label]
    return found


@pytest.mark.behaviour("S3-67", "S3-68", "S3-69")
def test_a_switch_and_a_hand_back_are_shown_told_and_what_came_twice_is_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def told(event: LedgerEvent) -> int:
        return sum(
            record.levelno == logging.WARNING and f"slave consumption {event.value} " in record.getMessage()
            for record in caplog.records
        )

    async def scenario() -> None:
        async with ReadPair.serving(tmp_path, topics={TOPIC: 1}) as pair:
            master, slave = pair.master, pair.slave
            await send(pair.namesrv, COUNT, topic=TOPIC)
            master.state.offsets.commit(GROUP, TOPIC, 0, 5)
            # All that is there is in the hands of a client, which dies with its master.
            await pull(master, 5)
            await pair.in_step()
            assert (slave.status.reader, slave.status.delivered_twice) == (None, {})
            await pair.switch()
            status = slave.status
            assert status.record is not None
            assert (status.permission, status.reader) == ("READ", slave.address)
            assert status.record.since_ms > 0
            assert status.reason == "the group is in slave consumption"
            assert "link to the master down: down" in status.record.reason
            assert told(LedgerEvent.SWITCH) == 1
            await pull(slave, 5)
            assert slave.status.delivered_twice == {GROUP: COUNT - 5}
            slave.state.offsets.commit(GROUP, TOPIC, 0, 8)
            await pair.hand_back()
            await pull(master, 8)
            assert master.status.delivered_twice == {GROUP: COUNT - 8}
            assert metric(master, "tanist_slave_consume_delivered_twice_total", GROUP) == COUNT - 8
            assert metric(slave, "tanist_slave_consume_delivered_twice_total", GROUP) == COUNT - 5
            assert metric(slave, "tanist_slave_consume_events_total", "SWITCH") == 1
            # The master has the offsets, and the slave has ended it.
            await until(lambda: told(LedgerEvent.HAND_BACK) == 2)
            assert metric(master, "tanist_slave_consume_events_total", "HAND_BACK") == 1

    in_loop(scenario())
