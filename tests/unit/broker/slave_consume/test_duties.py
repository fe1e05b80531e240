"""What the duties of master and slave write down, and what operators have done by them."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import NoReturn, TypeVar

import pytest

from tanist.broker.settings import BrokerRole, BrokerSettings
from tanist.broker.slave_consume.actions import MasterAction, Tell
from tanist.broker.slave_consume.duty import DutyFiles, DutyParts, ReadingDuty, in_turns
from tanist.broker.slave_consume.gate import ReadGate
from tanist.broker.slave_consume.ledger import LedgerEvent, LedgerFile
from tanist.broker.slave_consume.master_duty import MasterDuty
from tanist.broker.slave_consume.master_standing import MasterStanding
from tanist.broker.slave_consume.saved import SavedStandingFile
from tanist.broker.slave_consume.slave_duty import SlaveDuty
from tanist.broker.slave_consume.slave_standing import SlaveStanding
from tanist.clock import SystemClock
from tanist.coord import Create, open_registry
from tanist.errors import ResponseError
from tanist.model.reading import (
    FULL,
    Assigned,
    Assignment,
    GroupRole,
    ReadRecord,
    alive_path,
    encode_record,
    read_record_path,
)
from tanist.model.topics import WRITE, TopicConfig
from tanist.store.disk import Disk
from tests.support.broker_tables import open_state
from tests.support.conditions import until
from tests.support.messages import TOPIC, make_message

GROUP, SLAVE = "broker-a", "127.0.0.1:10921"
MASTER_SETTINGS = BrokerSettings(broker_cluster_name="pairs", broker_name=GROUP)
SLAVE_SETTINGS = BrokerSettings(
    broker_cluster_name="pairs",
    broker_name=GROUP,
    broker_role=BrokerRole.SLAVE,
    broker_id=1,
    listen_port=10921,
)
READ_FROM_SLAVE = ReadRecord(group=GROUP, term=2, reader=SLAVE, second=SLAVE)

D = TypeVar("D", bound=ReadingDuty)


@asynccontextmanager
async def running(
    kind: type[D], root: Path, settings: BrokerSettings, record: ReadRecord | None = None
) -> AsyncGenerator[D]:
    """A duty that has read this record."""
    open_session = partial(open_registry, f"sqlite://{root}/registry.db")
    if record is not None:
        async with open_session() as registry:
            # The slave seems alive, though nobody is there.
            presence = Create(alive_path(GROUP, SLAVE), b"{}")
            await registry.commit(Create(read_record_path(GROUP), encode_record(record)), presence)
    state = open_state(root, settings, clock=SystemClock())
    with state.store:
        state.topics.put(TopicConfig(topic_name=TOPIC))
        state.store.append(make_message())
        state.store.dispatch()
        state.offsets.commit("orders", TOPIC, 0, 0)
        gate = ReadGate(state, refuse_pulls=no_pulls_wait)
        files = DutyFiles(LedgerFile(Disk(), root), SavedStandingFile(Disk(), root))
        duty = kind(DutyParts(state, gate, open_session, "token", files))
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(duty.run())
            await until(lambda: duty.status().record is not None)
            yield duty
            task.cancel()


def no_pulls_wait(_error: Exception, /, *, is_relayed: bool) -> None:
    del is_relayed


def events(duty: ReadingDuty) -> list[LedgerEvent]:
    return [entry.event for entry in duty.ledger(10).entries]


@pytest.mark.behaviour("S3-65")
def test_a_master_that_has_given_up_is_restored_by_an_operator_and_that_is_written_down(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with running(MasterDuty, tmp_path, MASTER_SETTINGS) as duty:
            duty.standing.given_up = "alone"
            duty.standing.on_tick(0.0)
            assert (duty.status().state, duty.look().permission) == ("given up", 0)
            assert list(duty.duplicates_if_ended()) == []
            assert "permission again" in await duty.end("the slave is scrap", is_forced=False)
            assert duty.look().permission == FULL
            await until(lambda: events(duty) == [LedgerEvent.ENDED_BY_OPERATOR])
            (entry,) = duty.ledger(1).entries
            assert (entry.reason, entry.duplicates_at_most) == ("the slave is scrap", 0)
            with pytest.raises(ResponseError, match="no slave consumption to end"):
                await duty.end("", is_forced=False)

    asyncio.run(scenario())


@pytest.mark.behaviour("S3-68")
def test_a_master_that_gives_its_permission_up_raises_an_alarm(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with running(MasterDuty, tmp_path, MASTER_SETTINGS) as duty:
            await until(lambda: duty.look().permission == FULL)
            duty.standing.given_up = "alone"
            duty._do([Tell()])
            await until(lambda: events(duty) == [LedgerEvent.GAVE_UP])
            assert duty.event_counts[LedgerEvent.GAVE_UP] == 1

    asyncio.run(scenario())
    (alarm,) = [record for record in caplog.records if "slave consumption GAVE_UP" in record.getMessage()]
    assert alarm.levelno == logging.WARNING
    assert "reason=alone" in alarm.getMessage()


@pytest.mark.behaviour("S3-37")
def test_a_slave_that_is_alive_is_passed_over_only_by_force_and_what_comes_twice_is_counted(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with running(MasterDuty, tmp_path, MASTER_SETTINGS, READ_FROM_SLAVE) as duty:
            with pytest.raises(ResponseError, match=f"{SLAVE} is alive"):
                await duty.end("", is_forced=False)
            assert await in_turns(duty.duplicates_if_ended()) == {"orders": 1}
            await duty.end("it reads nonsense", is_forced=True)
            assert (duty.look().permission, duty.look().term) == (FULL, 2)
            await until(lambda: events(duty) == [LedgerEvent.ENDED_BY_OPERATOR])
            (entry,) = duty.ledger(1).entries
            assert (entry.duplicates, entry.offsets) == ({"orders": 1}, {f"{TOPIC}@orders": {0: 0}})

    asyncio.run(scenario())


def test_a_slave_that_is_read_again_after_a_restart_writes_that_down(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(SlaveDuty, tmp_path, SLAVE_SETTINGS, READ_FROM_SLAVE) as duty:
            await until(lambda: events(duty) == [LedgerEvent.RESUMED])
            assert duty.ledger(1).entries[0].term == 2
            assert duty.status().permission == "READ"
            with pytest.raises(ResponseError, match="this is a slave"):
                await duty.end("", is_forced=True)

    asyncio.run(scenario())


def test_a_slave_that_follows_writes_nothing_down(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(SlaveDuty, tmp_path, SLAVE_SETTINGS) as duty:
            assert events(duty) == []

    asyncio.run(scenario())


def test_what_an_administrator_assigned_outlives_a_change_of_other_settings(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(SlaveDuty, tmp_path, SLAVE_SETTINGS) as duty:
            duty.registry.assign(WRITE)
            await until(lambda: duty.status().configured_permission == "WRITE")
            duty.publish_permission()
            later = ReadRecord(group=GROUP, reason="written after it")
            await duty.registry.put(later, duty.registry.record_version)
            await until(lambda: duty.standing.record is not None and duty.standing.record.reason != "")
            assert duty.status().configured_permission == "WRITE"

    asyncio.run(scenario())


def test_a_role_that_takes_a_restart_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with running(SlaveDuty, tmp_path, SLAVE_SETTINGS) as duty:
            assigned = {
                role: Assignment(group=GROUP, brokers=(Assigned(address=SLAVE, role=role, broker_id=0),))
                for role in GroupRole
            }
            for role in (GroupRole.MASTER, GroupRole.MASTER, GroupRole.SLAVE, GroupRole.MASTER):
                duty._as_assigned(assigned[role])

    asyncio.run(scenario())
    told = [record for record in caplog.records if "role is another than at the start" in record.getMessage()]
    assert len(told) == 2


def test_what_fails_in_a_duty_can_be_caught_by_whoever_runs_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_self: SlaveStanding, _now_s: float) -> NoReturn:
        raise OSError("odd")

    async def scenario() -> None:
        monkeypatch.setattr(SlaveStanding, "on_check", fail)
        async with running(SlaveDuty, tmp_path, SLAVE_SETTINGS):
            await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup) as raised:
        asyncio.run(scenario())
    assert [str(error) for error in raised.value.exceptions] == ["odd"]


def test_a_master_whose_duty_failed_counts_on_its_presence_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost: list[MasterStanding] = []
    on_lost = MasterStanding.on_session_lost

    def noted(standing: MasterStanding) -> Sequence[MasterAction]:
        lost.append(standing)
        return on_lost(standing)

    def fail(_self: MasterStanding, _now_s: float) -> NoReturn:
        raise OSError("odd")

    async def scenario() -> None:
        async with running(MasterDuty, tmp_path, MASTER_SETTINGS):
            monkeypatch.setattr(MasterStanding, "on_session_lost", noted)
            monkeypatch.setattr(MasterStanding, "on_tick", fail)
            await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup):
        asyncio.run(scenario())
    assert len(lost) == 1
