"""Answers that wait for the disk, for slaves, or for both."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tanist.broker import pending as pending_module
from tanist.errors import NotWritable, ResponseError
from tanist.ha.settings import HaSettings
from tanist.model.message import Appended
from tanist.protocol.codes import ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.frame import FrameDecoder, encode_command
from tanist.store import StoreSettings
from tests.support.conditions import turns, until
from tests.support.fake_connection import FakeConnection
from tests.support.messages import SMALL, make_message
from tests.support.played_slaves import PlayedSlaves
from tests.support.working_broker import SYNC, WorkingBroker, working_broker

R = ResponseCode
IMPATIENT = HaSettings(slave_timeout=20)


class _Answering:
    """A broker whose answers wait, and one client that gets them."""

    def __init__(self, broker: WorkingBroker, slaves: PlayedSlaves | None) -> None:
        self.broker = broker
        self.state = broker.state
        self.pending = broker.state.writer.pending
        self.connection = FakeConnection("10.0.0.5:40112")
        if slaves is not None:
            self.slaves = slaves
            self.pending.use(slaves.double_write)

    def send(self, number: int = 0, *, tells_why_not: bool = True) -> Appended:
        """Append a message whose answer waits until it is safe."""
        appended = self.state.writer.append(make_message(number, tag="red"))
        frame = encode_command(Command.request(310, opaque=number).reply())
        self.pending.answer_when_safe(appended, self.connection, frame, tells_why_not=tells_why_not)
        return appended

    @property
    def answers(self) -> list[tuple[int, int]]:
        """Which sends were answered, and with which code."""
        return [(answer.opaque, answer.code) for answer in self.connection.sent]

    async def answered(self, *answers: tuple[int, int]) -> None:
        await until(lambda: len(self.answers) >= len(answers))
        assert self.answers == list(answers)


def run(
    root: Path,
    scenario: Callable[[_Answering], Awaitable[None]],
    *,
    settings: StoreSettings = SMALL,
    ha: HaSettings | None = None,
) -> None:
    """Without ``ha`` there are no slaves to wait for."""

    async def with_broker() -> None:
        async with working_broker(root, store_settings=settings) as broker:
            await scenario(_Answering(broker, None if ha is None else PlayedSlaves(ha)))
            # What was appended is dispatched before the store goes.
            await turns()

    asyncio.run(with_broker())


@pytest.mark.behaviour("S1-105")
def test_who_is_no_sync_master_waits_for_no_slave(tmp_path: Path) -> None:
    async def scenario(answering: _Answering) -> None:
        assert not answering.pending.is_on
        answering.send(1)
        assert answering.answers == [(1, R.SUCCESS)]

    run(tmp_path, scenario)


class TestDisk:
    def test_an_answer_comes_when_the_message_is_on_disk(self, tmp_path: Path) -> None:
        async def scenario(answering: _Answering) -> None:
            answering.broker.disk.may_sync.clear()
            answering.broker.start_flushing()
            appended = answering.send(1)
            await turns()
            assert answering.answers == []
            answering.broker.disk.may_sync.set()
            await answering.answered((1, R.SUCCESS))
            assert answering.state.store.log.flushed_to >= appended.end

        run(tmp_path, scenario, settings=SYNC)

    def test_a_disk_that_fails_is_a_timeout(self, tmp_path: Path) -> None:
        async def scenario(answering: _Answering) -> None:
            answering.broker.disk.is_sync_broken = True
            answering.broker.start_flushing()
            answering.send(1)
            await answering.answered((1, R.FLUSH_DISK_TIMEOUT))
            with pytest.raises(NotWritable):
                answering.send(2)

        run(tmp_path, scenario, settings=SYNC)

    def test_a_message_that_is_cut_again_was_not_stored(self, tmp_path: Path) -> None:
        async def scenario(answering: _Answering) -> None:
            appended = answering.send(1, tells_why_not=False)
            answering.state.store.truncate_to(appended.log_offset)
            answering.broker.start_flushing()
            await answering.answered((1, R.SERVICE_NOT_AVAILABLE))

        run(tmp_path, scenario, settings=SYNC, ha=HaSettings())

    def test_who_closes_waits_for_the_disk(self, tmp_path: Path) -> None:
        async def scenario(answering: _Answering) -> None:
            answering.send(1)
            answering.broker.start_flushing()
            await answering.pending.close(5)
            assert answering.answers == [(1, R.SUCCESS)]

        run(tmp_path, scenario, settings=SYNC)

    def test_who_closes_does_not_wait_for_ever(self, tmp_path: Path) -> None:
        async def scenario(answering: _Answering) -> None:
            answering.broker.disk.may_sync.clear()
            answering.broker.start_flushing()
            answering.send(1)
            await answering.pending.close(0.01)
            assert answering.answers == [(1, R.FLUSH_DISK_TIMEOUT)]

        run(tmp_path, scenario, settings=SYNC)


class TestSlaves:
    @pytest.mark.behaviour("S1-107", "S1-108")
    def test_an_answer_comes_when_a_slave_holds_the_message(self, tmp_path: Path) -> None:
        async def scenario(answering: _Answering) -> None:
            slave = answering.slaves.join()
            appended = answering.send(1)
            answering.slaves.ack(slave, appended.end - 1)
            assert answering.answers == []
            answering.slaves.ack(slave, appended.end)
            assert answering.answers == [(1, R.SUCCESS)]
            assert len(answering.pending) == 0

        run(tmp_path, scenario, ha=HaSettings())

    @pytest.mark.behaviour("S1-109", "S1-125")
    def test_without_a_slave_the_sender_is_told_so_at_once_and_the_message_stays(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def scenario(answering: _Answering) -> None:
            appended = answering.send(1)
            assert answering.answers == [(1, R.SLAVE_NOT_AVAILABLE)]
            assert answering.state.store.record_at(appended.log_offset) is not None

        run(tmp_path, scenario, ha=HaSettings())
        (line,) = caplog.messages
        assert line.startswith("slave not available topic=TopicA tags=red client=10.0.0.5:40112 ")

    @pytest.mark.behaviour("S1-113", "S1-119", "S1-125")
    def test_a_slave_that_is_too_slow_is_a_timeout_with_a_line_in_the_log(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        ends: list[int] = []

        async def scenario(answering: _Answering) -> None:
            answering.slaves.join()
            started_s = asyncio.get_running_loop().time()
            ends.append(answering.send(1).end)
            await answering.answered((1, R.FLUSH_SLAVE_TIMEOUT))
            assert asyncio.get_running_loop().time() - started_s >= 0.02

        run(tmp_path, scenario, ha=IMPATIENT)
        (record,) = caplog.records
        assert record.levelno == logging.ERROR
        assert record.getMessage() == (
            f"flush slave timeout topic=TopicA tags=red client=10.0.0.5:40112 end={ends[0]} count=1"
        )

    def test_each_runs_out_at_its_own_time_by_one_timer(self, tmp_path: Path) -> None:
        async def scenario(answering: _Answering) -> None:
            loop, started_s = asyncio.get_running_loop(), asyncio.get_running_loop().time()
            late = R.FLUSH_SLAVE_TIMEOUT
            answering.slaves.join()
            answering.send(1)
            await until(lambda: loop.time() - started_s > 0.01)
            second_s = loop.time()
            answering.send(2)
            await answering.answered((1, late), (2, late))
            assert loop.time() - second_s >= 0.02
            # Nobody waits now, and the next one is looked after all the same.
            answering.send(3)
            await answering.answered((1, late), (2, late), (3, late))

        run(tmp_path, scenario, ha=IMPATIENT)

    def test_a_dead_slave_does_not_flood_the_log(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pending_module, "_TOLD_EVERY_S", 60.0)

        async def scenario(answering: _Answering) -> None:
            for number in range(50):
                answering.send(number)
            assert answering.pending.failed == {R.SLAVE_NOT_AVAILABLE: 50}
            monkeypatch.setattr(pending_module, "_TOLD_EVERY_S", 0.0)
            answering.send(50)

        run(tmp_path, scenario, ha=HaSettings())
        assert [line.rpartition(" ")[2] for line in caplog.messages] == ["count=1", "count=51"]

    def test_what_would_only_be_sent_again_is_answered_as_it_is_when_it_is_late(self, tmp_path: Path) -> None:
        async def scenario(answering: _Answering) -> None:
            answering.send(1, tells_why_not=False)
            assert answering.answers == [(1, R.SUCCESS)]
            assert answering.pending.failed == {R.SLAVE_NOT_AVAILABLE: 1}

        run(tmp_path, scenario, ha=HaSettings())

    def test_who_closes_waits_for_slaves_and_then_tells_who_is_not_replicated(self, tmp_path: Path) -> None:
        async def scenario(answering: _Answering) -> None:
            slave = answering.slaves.join()
            first, _ = answering.send(1), answering.send(2)
            closing = asyncio.create_task(answering.pending.close(0.05))
            await turns()
            answering.slaves.ack(slave, first.end)
            assert answering.answers == [(1, R.SUCCESS)]
            await closing
            assert answering.answers == [(1, R.SUCCESS), (2, R.FLUSH_SLAVE_TIMEOUT)]

        run(tmp_path, scenario, ha=HaSettings())

    def test_with_too_few_in_step_a_message_is_refused(self, tmp_path: Path) -> None:
        async def scenario(answering: _Answering) -> None:
            assert not answering.pending.has_room
            with pytest.raises(ResponseError, match="IN_SYNC_REPLICAS_NOT_ENOUGH") as refusal:
                answering.pending.check(is_waiting=False)
            assert refusal.value.code == R.SYSTEM_ERROR
            answering.slaves.join()
            answering.pending.check(is_waiting=True)

        run(tmp_path, scenario, ha=HaSettings(min_in_sync_replicas=2))


class _PlayedLane:
    """Keeps the answers that it is to send, as a lane of C would send them."""

    def __init__(self) -> None:
        self.codes: list[int] = []

    def answer(self, answers: list[Any]) -> None:
        for frame in answers[1::2]:
            self.codes += [answer.code for answer in FrameDecoder().feed(frame)]


class TestTurns:
    """The answers to what came together wait together."""

    @staticmethod
    def send_three(answering: _Answering, lane: _PlayedLane, reign: Any = None) -> Appended:
        frame = encode_command(Command.request(310).reply())
        first, _, last = (answering.state.writer.append(make_message(number)) for number in range(3))
        line = SimpleNamespace(connection=answering.connection)
        answering.pending.answer_all_when_safe(first.log_offset, last.end, [line, frame] * 3, lane, reign)
        return last

    def test_they_leave_when_the_last_of_them_is_held(self, tmp_path: Path) -> None:
        async def scenario(answering: _Answering) -> None:
            lane, slave = _PlayedLane(), answering.slaves.join(acked_to=answering.state.store.log.log_end)
            last = self.send_three(answering, lane)
            answering.slaves.ack(slave, last.end - 1)
            assert (lane.codes, len(answering.pending)) == ([], 3)
            answering.slaves.ack(slave, last.end)
            assert lane.codes == [R.SUCCESS] * 3
            assert len(answering.pending) == 0

        run(tmp_path, scenario, ha=HaSettings())

    def test_they_all_say_why_not(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        async def scenario(answering: _Answering) -> None:
            lane = _PlayedLane()
            self.send_three(answering, lane)
            assert lane.codes == [R.SLAVE_NOT_AVAILABLE] * 3
            assert answering.pending.failed[R.SLAVE_NOT_AVAILABLE] == 3
            assert "client=10.0.0.5:40112" in caplog.text

        run(tmp_path, scenario, ha=HaSettings())

    def test_they_count_as_many_as_they_are(self, tmp_path: Path) -> None:
        async def scenario(answering: _Answering) -> None:
            answering.slaves.join(acked_to=answering.state.store.log.log_end)
            before = answering.pending.room
            self.send_three(answering, _PlayedLane())
            assert before - answering.pending.room == 3
            answering.pending.end_reign()

        run(tmp_path, scenario, ha=HaSettings())

    def test_they_count_while_the_turn_goes_on(self, tmp_path: Path) -> None:
        async def scenario(answering: _Answering) -> None:
            answering.slaves.join(acked_to=answering.state.store.log.log_end)
            before, kept = answering.pending.room, list[Any]()
            answering.pending.keep(kept)
            kept += [None, b""] * (before - 1)
            assert answering.pending.room == 1
            kept += [None, b""]
            with pytest.raises(ResponseError, match="too many sends wait"):
                answering.pending.check(is_waiting=True)
            answering.pending.keep(None)
            assert answering.pending.room == before

        run(tmp_path, scenario, ha=HaSettings())

    def test_those_of_a_reign_that_is_over_are_told_so(self, tmp_path: Path) -> None:
        async def scenario(answering: _Answering) -> None:
            def may_acknowledge(_end: int) -> bool:
                return False

            lane, over = _PlayedLane(), SimpleNamespace(may_acknowledge=may_acknowledge)
            answering.slaves.join(acked_to=answering.state.store.log.log_end)
            self.send_three(answering, lane, over)
            assert lane.codes == [R.FLUSH_SLAVE_TIMEOUT] * 3

        run(tmp_path, scenario, ha=HaSettings())

    def test_they_wait_for_the_disk_too(self, tmp_path: Path) -> None:
        async def scenario(answering: _Answering) -> None:
            lane = _PlayedLane()
            answering.broker.disk.is_sync_broken = True
            answering.broker.start_flushing()
            self.send_three(answering, lane)
            await until(lambda: lane.codes == [R.FLUSH_DISK_TIMEOUT] * 3)

        run(tmp_path, scenario, settings=SYNC)


@pytest.mark.parametrize("settings", [SYNC, SMALL], ids=["disk", "slaves"])
def test_so_many_may_wait_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: StoreSettings
) -> None:
    monkeypatch.setattr(pending_module, "MAX_WAITING_SENDS", 2)

    async def scenario(answering: _Answering) -> None:
        slave = answering.slaves.join()
        for number in range(2):
            assert answering.pending.has_room
            answering.send(number)
        with pytest.raises(ResponseError, match="OVERLOAD") as refusal:
            answering.pending.check(is_waiting=True)
        assert refusal.value.code == R.SYSTEM_BUSY
        answering.pending.check(is_waiting=False)
        answering.broker.start_flushing()
        answering.slaves.ack(slave, answering.state.store.log.log_end)
        await answering.answered((0, R.SUCCESS), (1, R.SUCCESS))
        assert answering.pending.has_room

    run(tmp_path, scenario, settings=settings, ha=HaSettings())


class TestDiskAndSlaves:
    @pytest.mark.behaviour("S1-107")
    @pytest.mark.parametrize("is_disk_first", [True, False])
    def test_an_answer_waits_for_both_whichever_comes_first(
        self, tmp_path: Path, is_disk_first: bool
    ) -> None:
        async def scenario(answering: _Answering) -> None:
            slave = answering.slaves.join()
            end = answering.send(1).end
            if is_disk_first:
                answering.broker.start_flushing()
                await until(lambda: answering.state.store.log.flushed_to >= end)
            else:
                answering.slaves.ack(slave, end)
            await turns()
            assert answering.answers == []
            if is_disk_first:
                answering.slaves.ack(slave, end)
            else:
                answering.broker.start_flushing()
            await answering.answered((1, R.SUCCESS))

        run(tmp_path, scenario, settings=SYNC, ha=HaSettings())

    @pytest.mark.parametrize(
        ("is_acked", "code"), [(True, R.FLUSH_DISK_TIMEOUT), (False, R.FLUSH_SLAVE_TIMEOUT)]
    )
    def test_where_both_are_late_the_slaves_count(
        self, tmp_path: Path, is_acked: bool, code: ResponseCode
    ) -> None:
        async def scenario(answering: _Answering) -> None:
            slave = answering.slaves.join()
            end = answering.send(1).end
            if is_acked:
                answering.slaves.ack(slave, end)
            await answering.answered((1, code))

        slow = msgspec.structs.replace(SYNC, sync_flush_timeout=20)
        run(tmp_path, scenario, settings=slow, ha=IMPATIENT)

    def test_without_a_slave_the_disk_is_waited_for_all_the_same(self, tmp_path: Path) -> None:
        async def scenario(answering: _Answering) -> None:
            answering.send(1)
            await turns()
            assert answering.answers == []
            answering.broker.start_flushing()
            await answering.answered((1, R.SLAVE_NOT_AVAILABLE))

        run(tmp_path, scenario, settings=SYNC, ha=HaSettings())

    def test_who_closes_tells_all(self, tmp_path: Path) -> None:
        async def scenario(answering: _Answering) -> None:
            answering.slaves.join()
            answering.send(1)
            await answering.pending.close(0.01)
            assert answering.answers == [(1, R.FLUSH_SLAVE_TIMEOUT)]
            assert len(answering.pending) == 0

        run(tmp_path, scenario, settings=SYNC, ha=HaSettings())
