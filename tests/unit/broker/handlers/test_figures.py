from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tanist.broker.handlers.figures import routes
from tanist.broker.state import BrokerState
from tanist.model.topics import SCHEDULE_TOPIC, TIMER_TOPIC
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.stats import BrokerStats
from tanist.protocol.bodies.tables import KVTable
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.messages import ViewBrokerStatsRequest
from tests.support.broker_tables import Asker, open_state
from tests.support.clocks import FakeClock
from tests.support.messages import make_message

START_MS = 1_700_000_000_000
READ_BY_CLUSTER_LIST = {
    *("brokerActive", "brokerVersionDesc", "putTps", "getTransferredTps"),
    *("sendThreadPoolQueueSize", "pullThreadPoolQueueSize", "ackThreadPoolQueueSize"),
    *("sendThreadPoolQueueHeadWaitTimeMills", "pullThreadPoolQueueHeadWaitTimeMills"),
    *("ackThreadPoolQueueHeadWaitTimeMills", "pageCacheLockTimeMills", "earliestMessageTimeStamp"),
    *("commitLogDiskRatio", "timerReadBehind", "timerOffsetBehind", "timerCongestNum"),
    *("timerEnqueueTps", "timerDequeueTps"),
    *("msgPutTotalYesterdayMorning", "msgPutTotalTodayMorning", "msgPutTotalTodayNow"),
    *("msgGetTotalYesterdayMorning", "msgGetTotalTodayMorning", "msgGetTotalTodayNow"),
}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(now_ms=START_MS)


@pytest.fixture
def state(tmp_path: Path, clock: FakeClock) -> Iterator[BrokerState]:
    state = open_state(tmp_path, clock=clock)
    state.writer = cast("Any", SimpleNamespace(pending=range(3)))
    with state.store:
        yield state


@pytest.fixture
def broker(state: BrokerState) -> Asker:
    return Asker(routes(state))


def _runtime(broker: Asker) -> dict[str, str]:
    return decode_java_json(broker.ask(RequestCode.GET_BROKER_RUNTIME_INFO).body, KVTable).table


def _view(broker: Asker, name: str, key: str) -> Command:
    return broker.ask(
        RequestCode.VIEW_BROKER_STATS_DATA, ViewBrokerStatsRequest(stats_name=name, stats_key=key)
    )


def test_cluster_list_finds_all_that_it_reads(broker: Asker) -> None:
    assert _runtime(broker).keys() >= READ_BY_CLUSTER_LIST


def test_the_log_is_told_of_as_it_is(state: BrokerState, broker: Asker, clock: FakeClock) -> None:
    assert _runtime(broker)["earliestMessageTimeStamp"] == "-1"
    state.store.append(make_message(0))
    state.store.dispatch()
    clock.advance_ms(90_061_000)
    state.store.append(make_message(1))
    found = _runtime(broker)
    log = state.store.log
    assert found["earliestMessageTimeStamp"] == str(START_MS)
    assert (found["commitLogMinOffset"], found["commitLogMaxOffset"]) == ("0", str(log.log_end))
    assert found["dispatchBehindBytes"] == str(log.log_end - state.store.dispatcher.dispatched_to) != "0"
    assert found["remainHowManyDataToFlush"] == f"{log.log_end} B"
    assert 0 < float(found["commitLogDiskRatio"]) <= 1
    assert found["sendThreadPoolQueueSize"] == "3"
    assert found["runtime"] == "[ 1 days, 1 hours, 1 minutes, 1 seconds ]"
    assert found["bootTimestamp"] == str(START_MS)


def test_rates_are_told_over_three_spans(state: BrokerState, broker: Asker, clock: FakeClock) -> None:
    state.counters.on_put("T", count=60, size_bytes=6000, is_system=False)
    state.counters.on_pulled("T", "G", count=30, size_bytes=3000, is_system=False)
    for _ in range(30):
        clock.advance_ms(1000)
        state.counters.on_tick(clock.now_ms(), local_day=1)
    found = _runtime(broker)
    assert found["putTps"] == "0.0 2.0 2.0"
    assert found["getTransferredTps"] == "0.0 1.0 1.0"
    assert found["msgPutTotalTodayNow"] == "60"
    assert found["msgGetTotalTodayNow"] == "30"
    assert found["putMessageAverageSize"] == "100.0"


def test_a_counter_is_told_over_three_windows(state: BrokerState, broker: Asker, clock: FakeClock) -> None:
    state.counters.on_put("T", count=5, size_bytes=500, is_system=False)
    clock.advance_ms(10_000)
    state.counters.on_tick(clock.now_ms(), local_day=1)
    found = decode_java_json(_view(broker, "TOPIC_PUT_NUMS", "T").body, BrokerStats)
    assert (found.minute.sum, found.minute.tps, found.hour.sum, found.day.sum) == (5, 0.5, 0, 0)


def test_a_counter_that_is_not_there_is_refused_by_name(broker: Asker) -> None:
    answer = _view(broker, "TOPIC_PUT_NUMS", "Nobody")
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "Nobody" in (answer.remark or "")


def test_each_delay_level_tells_how_far_it_is(state: BrokerState, broker: Asker) -> None:
    for number in range(3):
        state.store.append(make_message(number, topic=SCHEDULE_TOPIC, queue_id=1))
    state.store.dispatch()
    state.delays.levels.on_delivered(2, 1)
    assert _runtime(broker)["scheduleMessageOffset_2"] == "1,3"


def test_it_is_told_how_many_messages_the_timer_has_not_taken_in(state: BrokerState, broker: Asker) -> None:
    for number in range(3):
        state.store.append(make_message(number, topic=TIMER_TOPIC))
    state.store.dispatch()
    assert _runtime(broker)["timerOffsetBehind"] == "3"
    state.delays.timers.read_to = 2
    assert _runtime(broker)["timerOffsetBehind"] == "1"
