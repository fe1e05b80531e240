from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.broker.operating.counting import Counting
from tanist.broker.operating.stats import Stat
from tanist.broker.state import BrokerState
from tests.support.broker_tables import open_state
from tests.support.clocks import FakeClock
from tests.support.messages import TOPIC, make_message


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(now_ms=1_700_000_000_000)


@pytest.fixture
def state(tmp_path: Path, clock: FakeClock) -> Iterator[BrokerState]:
    state = open_state(tmp_path, clock=clock)
    with state.store:
        yield state


def _watched(state: BrokerState) -> Counting:
    counting = Counting(state)
    state.store.dispatcher.listeners.append(counting.on_indexed)
    return counting


def _append(state: BrokerState, count: int, *, topic: str = TOPIC, queue_id: int = 0) -> int:
    """How many bytes of the log they took."""
    appended = [
        state.store.append(make_message(n, topic=topic, queue_id=queue_id, body_bytes=10 * n))
        for n in range(count)
    ]
    state.store.dispatch()
    return sum(one.size_bytes for one in appended)


def test_what_came_in_is_counted_by_topic_in_messages_and_bytes(state: BrokerState, clock: FakeClock) -> None:
    counting = _watched(state)
    taken = _append(state, 30) + _append(state, 7, queue_id=1)
    _append(state, 2, topic="Other")
    clock.advance_ms(10_000)
    counting.tick()
    figures = [state.counters.find(stat, TOPIC) for stat in (Stat.TOPIC_PUT_NUMS, Stat.TOPIC_PUT_SIZE)]
    assert [found.minute.sum for found in figures if found] == [37, taken]
    assert state.counters.put_count == 39


def test_what_was_there_before_the_start_is_not_counted(state: BrokerState) -> None:
    _append(state, 5)
    counting = _watched(state)
    counting.tick()
    assert state.counters.put_count == 0
    _append(state, 2)
    counting.tick()
    counting.tick()
    assert state.counters.put_count == 2


def test_what_was_cut_meanwhile_is_not_counted(state: BrokerState) -> None:
    counting = _watched(state)
    _append(state, 1)
    end = state.store.log.log_end
    _append(state, 3)
    state.store.truncate_to(end)
    counting.tick()
    assert state.counters.put_count == 1
    _append(state, 1)
    counting.tick()
    assert state.counters.put_count == 2


def test_the_brokers_own_messages_are_none_of_the_days_messages(state: BrokerState) -> None:
    counting = _watched(state)
    _append(state, 3, topic="SCHEDULE_TOPIC_XXXX")
    _append(state, 1)
    counting.tick()
    assert (state.counters.put_count, state.counters.daily_puts.now) == (4, 1)


def test_a_queue_that_was_removed_and_begins_again_is_counted_from_its_beginning(state: BrokerState) -> None:
    _append(state, 3)
    counting = _watched(state)
    state.store.queues.remove_expired([TOPIC], state.store.log.log_end)
    state.store.log.next_queue_offsets.clear()
    counting.on_indexed(TOPIC, 0, 3)
    counting.tick()
    _append(state, 2)
    counting.tick()
    assert state.counters.put_count == 2
