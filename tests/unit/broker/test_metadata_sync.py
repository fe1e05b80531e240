import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import cast

import msgspec
import pytest

from tanist.broker import metadata_sync
from tanist.broker.handlers import delays, groups, offsets, topics
from tanist.broker.metadata_sync import MetadataSync, RunTimes, ask_for_table, fast_address
from tanist.broker.state import BrokerState
from tanist.clock import SystemClock
from tanist.errors import ConfigError, ConnectFailed, ResponseError
from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.topics import TopicConfig
from tanist.protocol.bodies.sync import TopicConfigTable
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.remoting import RemotingClient
from tests.support.broker_tables import SETTINGS, Asker, open_groups, open_offsets, open_state, open_topics
from tests.support.clocks import FakeClock
from tests.support.conditions import turns, until

MASTER = "10.0.0.1:10911"
SLAVE = msgspec.structs.replace(SETTINGS, listen_port=11911)
ORDER = [
    RequestCode.GET_ALL_TOPIC_CONFIG,
    RequestCode.GET_ALL_CONSUMER_OFFSET,
    RequestCode.GET_ALL_DELAY_OFFSET,
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
]


class _Master:
    """Answers from a broker's own tables, or as it is told, and keeps what it was asked."""

    def __init__(self, state: BrokerState) -> None:
        self.state = state
        self.asked: list[tuple[str, Command, float]] = []
        self.answers: dict[int, Callable[[Command], Command]] = {}
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self._asker = Asker(
            topics.routes(state) | offsets.routes(state) | delays.routes(state) | groups.routes(state)
        )

    async def request(self, address: str, command: Command, *, timeout_s: float) -> Command:
        self.asked.append((address, command, timeout_s))
        await self.may_answer.wait()
        if command.code in self.answers:
            return self.answers[command.code](command)
        return self._asker.ask(command.code)

    @property
    def codes(self) -> list[int]:
        return [command.code for _, command, _ in self.asked]

    @property
    def client(self) -> RemotingClient:
        return cast("RemotingClient", self)


class _Pair:
    def __init__(self, root: Path) -> None:
        self.master = _Master(open_state(root / "master"))
        self.slave = open_state(root / "slave", SLAVE, clock=FakeClock(now_ms=1_600_000_000_000))
        self.sync = self.new_sync()
        self.sync.use_master(MASTER)

    def new_sync(
        self,
        *,
        is_pushed: Callable[[], bool] = lambda: False,
        owns_offsets: Callable[[], bool] = lambda: False,
    ) -> MetadataSync:
        return MetadataSync(self.slave, self.master.client, is_pushed=is_pushed, owns_offsets=owns_offsets)

    def run(self, count: int = 1) -> None:
        async def runs() -> None:
            for _ in range(count):
                await self.sync.run_once()

        asyncio.run(runs())


@pytest.fixture
def pair(tmp_path: Path) -> _Pair:
    made = _Pair(tmp_path)
    state = made.master.state
    state.topics.put(TopicConfig(topic_name="Orders", write_queue_count=4))
    state.groups.put(SubscriptionGroupConfig(group_name="Billing", retry_max_times=3))
    state.offsets.commit("Billing", "Orders", 0, 17)
    state.delays.levels.on_delivered(3, 9)
    return made


def _refuse(remark: str) -> Callable[[Command], Command]:
    return lambda command: command.reply(ResponseCode.SYSTEM_ERROR, remark=remark)


# What one run does


@pytest.mark.behaviour("S1-13", "S1-20", "S1-21")
def test_a_run_asks_for_four_tables_in_order_the_topics_at_the_fast_port(pair: _Pair) -> None:
    pair.run()
    assert pair.master.codes == ORDER
    assert [address for address, _, _ in pair.master.asked] == ["10.0.0.1:10909", MASTER, MASTER, MASTER]
    assert [timeout_s for _, _, timeout_s in pair.master.asked] == [3.0] * 4
    assert all(not command.ext and not command.body for _, command, _ in pair.master.asked)


@pytest.mark.behaviour("S1-27")
def test_after_a_run_all_four_tables_equal_the_masters_also_on_disk(pair: _Pair, tmp_path: Path) -> None:
    pair.run()
    master, slave = pair.master.state, pair.slave
    root = tmp_path / "slave"
    for table in (slave.topics.table, open_topics(root).table):
        assert (table.topics, table.data_version) == (master.topics.table.topics, master.topics.data_version)
    for table in (slave.groups.table, open_groups(root).table):
        assert table == master.groups.table
    for table in (slave.offsets.table(), open_offsets(root).table()):
        assert table == master.offsets.table()
    assert slave.delays.levels.table() == master.delays.levels.table()
    slave.store.close()
    assert open_state(root).delays.levels.next_offset(3) == 9


@pytest.mark.behaviour("S1-16")
def test_tables_of_the_same_version_are_not_written_again(pair: _Pair, tmp_path: Path) -> None:
    pair.run()
    files = [tmp_path / "slave" / "config" / name for name in ("topics.json", "subscriptionGroup.json")]
    before, table = [file.stat().st_ino for file in files], pair.slave.topics.table
    pair.run()
    assert [file.stat().st_ino for file in files] == before
    assert pair.slave.topics.table is table


@pytest.mark.behaviour("S1-17", "S1-18")
def test_a_topic_that_the_master_deleted_goes_and_the_log_tells_of_the_update(
    pair: _Pair, caplog: pytest.LogCaptureFixture
) -> None:
    pair.slave.topics.put(TopicConfig(topic_name="OnlyHere"))
    pair.run()
    pair.master.state.topics.delete("Orders")
    caplog.set_level(logging.INFO)
    caplog.clear()
    pair.run()
    assert pair.slave.topics.find("Orders") is None
    assert pair.slave.topics.find("OnlyHere") is None
    assert pair.slave.topics.data_version == pair.master.state.topics.data_version
    assert [record.getMessage() for record in caplog.records] == [
        f"Update slave topic config from master, {MASTER}"
    ]


@pytest.mark.behaviour("S1-19")
def test_whoever_reads_a_table_during_a_run_sees_the_old_one_or_the_new(pair: _Pair) -> None:
    seen: list[TopicConfigTable] = []
    pair.slave.topics.on_change(lambda: seen.append(pair.slave.topics.table))
    before = pair.slave.topics.table
    pair.run()
    assert seen == [pair.slave.topics.table]
    # The table that a reader holds is not touched.
    assert before.topics
    assert "Orders" not in before.topics


@pytest.mark.behaviour("S1-28")
def test_offsets_are_taken_as_the_master_has_them_in_every_run_also_older_ones(pair: _Pair) -> None:
    pair.run()
    pair.slave.offsets.commit("Billing", "Orders", 0, 99)
    pair.slave.offsets.commit("Gone", "Orders", 0, 5)
    assert pair.slave.offsets.data_version == pair.master.state.offsets.data_version
    pair.run()
    assert pair.slave.offsets.find("Billing", "Orders", 0) == 17
    assert pair.slave.offsets.groups_of("Orders") == {"Billing"}


@pytest.mark.behaviour("S1-10")
def test_without_a_master_a_run_does_nothing_and_a_later_one_does(
    pair: _Pair, caplog: pytest.LogCaptureFixture
) -> None:
    pair.sync = pair.new_sync()
    pair.run()
    assert pair.master.asked == []
    assert caplog.records == []
    pair.sync.use_master(MASTER)
    pair.run()
    assert pair.master.codes == ORDER


@pytest.mark.behaviour("S1-11")
def test_a_broker_does_not_ask_itself(pair: _Pair) -> None:
    pair.sync.use_master(SLAVE.address)
    pair.run()
    assert pair.master.asked == []


def test_while_a_link_pushes_the_tables_nobody_is_asked(pair: _Pair) -> None:
    is_pushed = True
    pair.sync = pair.new_sync(is_pushed=lambda: is_pushed)
    pair.sync.use_master(MASTER)
    pair.run()
    assert pair.master.asked == []
    is_pushed = False
    pair.run()
    assert pair.master.codes == ORDER


def test_a_slave_that_is_read_keeps_its_own_offsets_topics_and_groups(pair: _Pair) -> None:
    is_read = True
    pair.sync = pair.new_sync(owns_offsets=lambda: is_read)
    pair.sync.use_master(MASTER)
    pair.slave.offsets.commit("Billing", "Orders", 0, 99)
    pair.run()
    assert pair.slave.offsets.table().offset_table == {"Orders@Billing": {0: 99}}
    assert pair.sync.missing == ("topic config", "consumer offset", "subscription group")
    assert (pair.slave.topics.find("Orders"), pair.slave.groups.find("Billing")) == (None, None)
    is_read = False
    pair.run()
    assert pair.slave.topics.table.topics == pair.master.state.topics.table.topics
    assert pair.slave.offsets.table() == pair.master.state.offsets.table()
    assert pair.sync.missing == ()


def test_an_answer_that_comes_when_the_link_is_there_is_dropped(pair: _Pair) -> None:
    is_pushed = False

    def link(command: Command) -> Command:
        nonlocal is_pushed
        is_pushed = True
        return command.reply(body=b'{"topicConfigTable":{"Old":{"topicName":"Old"}}}')

    pair.sync = pair.new_sync(is_pushed=lambda: is_pushed)
    pair.sync.use_master(MASTER)
    pair.master.answers[RequestCode.GET_ALL_TOPIC_CONFIG] = link
    before = pair.slave.topics.table
    pair.run()
    assert pair.slave.topics.table is before


@pytest.mark.behaviour("S1-12")
def test_an_answer_of_who_was_the_master_is_dropped_and_the_next_step_asks_the_new_one(pair: _Pair) -> None:
    new = "10.0.0.2:10911"

    def move(command: Command) -> Command:
        pair.sync.use_master(new)
        return command.reply(body=b'{"topicConfigTable":{"Old":{"topicName":"Old"}}}')

    pair.master.answers[RequestCode.GET_ALL_TOPIC_CONFIG] = move
    before = pair.slave.topics.table
    pair.run()
    assert pair.slave.topics.table is before
    assert [address for address, _, _ in pair.master.asked] == ["10.0.0.1:10909", new, new, new]


# What fails


def _lose(_command: Command) -> Command:
    raise ConnectFailed(MASTER, "refused")


def _break(_command: Command) -> Command:
    raise ValueError("a bug")


def _babble(command: Command) -> Command:
    return command.reply(body=b"{not json")


@pytest.mark.behaviour("S1-14")
@pytest.mark.parametrize("code", ORDER)
@pytest.mark.parametrize("answer", [_lose, _break, _refuse("not now"), _babble])
def test_a_step_that_fails_is_told_once_with_the_address_and_the_others_are_done(
    pair: _Pair,
    caplog: pytest.LogCaptureFixture,
    code: RequestCode,
    answer: Callable[[Command], Command],
) -> None:
    pair.master.answers[code] = answer
    pair.run(2)
    assert pair.master.codes == ORDER * 2
    (line,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert MASTER in line.getMessage()
    followed = {
        RequestCode.GET_ALL_TOPIC_CONFIG: pair.slave.topics.find("Orders") is not None,
        RequestCode.GET_ALL_CONSUMER_OFFSET: pair.slave.offsets.find("Billing", "Orders", 0) == 17,
        RequestCode.GET_ALL_DELAY_OFFSET: pair.slave.delays.levels.next_offset(3) == 9,
        RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: pair.slave.groups.find("Billing") is not None,
    }
    assert [asked for asked, has in followed.items() if not has] == [code]


def test_a_step_that_works_again_is_told(pair: _Pair, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    pair.master.answers[RequestCode.GET_ALL_DELAY_OFFSET] = _lose
    pair.run()
    pair.master.answers.clear()
    pair.run()
    assert f"slave has got delay offset from master again, {MASTER}" in caplog.messages


@pytest.mark.behaviour("S1-23")
def test_a_master_without_topics_takes_none_from_the_slave(
    pair: _Pair, caplog: pytest.LogCaptureFixture
) -> None:
    pair.run()
    before = pair.slave.topics.table
    pair.master.state.topics.table = TopicConfigTable()
    pair.run()
    assert pair.slave.topics.table is before
    assert "No topic in this broker" in caplog.text
    assert "127.0.0.1:5" in caplog.text


@pytest.mark.behaviour("S1-25")
def test_a_refusal_is_an_error_with_its_code_and_remark(pair: _Pair) -> None:
    code = RequestCode.GET_ALL_CONSUMER_OFFSET
    pair.master.answers[code] = lambda command: command.reply(ResponseCode.NO_PERMISSION, remark="not you")
    with pytest.raises(ResponseError) as caught:
        asyncio.run(ask_for_table(pair.master.client, MASTER, code))
    assert (caught.value.code, caught.value.remark) == (ResponseCode.NO_PERMISSION, "not you")


@pytest.mark.parametrize("address", ["", "nowhere", ":10911", "host:port"])
def test_what_is_no_address_has_no_fast_port(address: str) -> None:
    with pytest.raises(ConfigError):
        fast_address(address)


def test_the_fast_port_of_an_ipv6_address_is_two_below() -> None:
    assert fast_address("[::1]:10911") == "[::1]:10909"


# The schedule


@pytest.mark.behaviour("S1-7")
def test_the_first_run_comes_after_3_s_and_then_one_every_10_s_at_a_fixed_rate() -> None:
    times, now_s, began = RunTimes(100.0), 100.0, list[float]()
    for duration_s in (0.0, 4.0, 0.5, 0.0):
        now_s += times.wait_s(now_s)
        began.append(now_s)
        times.on_run(now_s)
        now_s += duration_s
    assert began == [103.0, 113.0, 123.0, 133.0]


@pytest.mark.behaviour("S1-29")
def test_after_a_run_that_took_too_long_the_next_comes_at_once_and_none_is_made_up_for() -> None:
    times, now_s, began = RunTimes(0.0), 0.0, list[float]()
    for duration_s in (35.0, 1.0, 1.0, 1.0):
        now_s += times.wait_s(now_s)
        began.append(now_s)
        times.on_run(now_s)
        now_s += duration_s
    assert began == [3.0, 38.0, 48.0, 58.0]


def test_a_run_that_is_wanted_soon_comes_at_once_but_not_more_often_than_each_second() -> None:
    times = RunTimes(100.0)
    times.hasten(100.5)
    assert times.wait_s(100.5) == 0
    times.on_run(100.5)
    times.hasten(100.7)
    assert times.wait_s(100.7) == pytest.approx(0.8)


@pytest.fixture
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_sync, "FIRST_S", 0.001)
    monkeypatch.setattr(metadata_sync, "PERIOD_S", 0.001)


@pytest.mark.behaviour("S1-15")
@pytest.mark.usefixtures("_in_a_hurry")
def test_what_escapes_a_run_is_told_and_the_next_one_comes(
    pair: _Pair, caplog: pytest.LogCaptureFixture
) -> None:
    failures = [ValueError("a bug"), ValueError("another")]

    def is_pushed() -> bool:
        if failures:
            raise failures.pop(0)
        return False

    async def scenario() -> None:
        pair.slave.clock = SystemClock()
        sync = pair.new_sync(is_pushed=is_pushed)
        async with asyncio.TaskGroup() as tasks:
            sync.start(tasks)
            sync.use_master(MASTER)
            await until(lambda: len(pair.master.asked) >= len(ORDER))
            await sync.close()

    asyncio.run(scenario())
    assert [record.levelno for record in caplog.records if record.exc_info] == [logging.ERROR] * 2


@pytest.mark.behaviour("S1-5", "S1-6", "S1-8")
@pytest.mark.usefixtures("_in_a_hurry")
def test_a_new_schedule_ends_the_one_before_and_lets_its_run_finish(pair: _Pair) -> None:
    async def scenario() -> None:
        pair.slave.clock = SystemClock()
        master, sync = pair.master, pair.new_sync()
        async with asyncio.TaskGroup() as tasks:
            master.may_answer.clear()
            sync.start(tasks)
            sync.use_master(MASTER)
            await until(lambda: len(master.asked) == 1)
            for _ in range(3):
                sync.start(tasks)
                assert sync.master_address is None
            sync.use_master(MASTER)
            await turns()
            assert len(master.asked) == 1
            master.may_answer.set()
            await until(lambda: len(master.asked) >= 3 * len(ORDER))
            # One behind the other: the run that was under way went to its end, and no two schedules ask.
            assert master.codes[: 3 * len(ORDER)] == ORDER * 3
            sync.stop()
            assert sync.master_address is None
            # The tasks end by themselves, without being cancelled.
        count = len(master.asked)
        await turns()
        assert len(master.asked) == count

    asyncio.run(scenario())


@pytest.mark.usefixtures("_in_a_hurry")
def test_a_broker_that_stops_does_not_wait_for_its_master(pair: _Pair) -> None:
    async def scenario() -> None:
        pair.slave.clock = SystemClock()
        pair.master.may_answer.clear()
        sync = pair.new_sync()
        async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
            sync.start(tasks)
            sync.use_master(MASTER)
            await until(lambda: len(pair.master.asked) == 1)
            await sync.close()

    asyncio.run(scenario())
