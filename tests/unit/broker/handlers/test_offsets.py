from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tanist.broker import memory
from tanist.broker.handlers.offsets import routes
from tanist.broker.settings import BrokerRole
from tanist.broker.state import BrokerState
from tanist.model.groups import TRANSACTION_GROUP
from tanist.model.offsets import QueueOffset
from tanist.model.topics import HALF_TOPIC, TopicConfig
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.sync import ConsumerOffsetTable
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.offsets import (
    ConsumerOffsetResponse,
    QueryConsumerOffsetRequest,
    UpdateConsumerOffsetRequest,
)
from tests.support.broker_tables import SETTINGS, Asker, open_state
from tests.support.clocks import FakeClock
from tests.support.messages import TOPIC, make_message

START_MS = 1_700_000_000_000


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(now_ms=START_MS)


@pytest.fixture
def state(tmp_path: Path, clock: FakeClock) -> Iterator[BrokerState]:
    state = open_state(tmp_path, clock=clock)
    state.topics.put(TopicConfig(topic_name=TOPIC))
    state.groups.ensure("G")
    with state.store:
        yield state


@pytest.fixture
def broker(state: BrokerState) -> Asker:
    return Asker(routes(state))


def _fill(state: BrokerState, clock: FakeClock, count: int, *, body_bytes: int = 0) -> None:
    """Messages in queue 0 of the topic, stored 100 ms apart, the first one at START_MS."""
    for number in range(count):
        state.store.append(make_message(number, body_bytes=body_bytes))
        clock.advance_ms(100)
    state.store.dispatch()


def _query(
    broker: Asker,
    queue_id: int = 0,
    *,
    group: str = "G",
    topic: str = TOPIC,
    set_zero_if_not_found: bool | None = None,
) -> Command:
    header = QueryConsumerOffsetRequest(
        consumer_group=group, topic=topic, queue_id=queue_id, set_zero_if_not_found=set_zero_if_not_found
    )
    return broker.ask(RequestCode.QUERY_CONSUMER_OFFSET, header)


def _commit(
    broker: Asker, offset: int, *, group: str = "G", topic: str = TOPIC, queue_id: int = 0
) -> Command:
    header = UpdateConsumerOffsetRequest(
        consumer_group=group, topic=topic, queue_id=queue_id, consumer_offset=QueueOffset(offset)
    )
    return broker.ask(RequestCode.UPDATE_CONSUMER_OFFSET, header)


def _about_queue(broker: Asker, code: RequestCode, topic: str = TOPIC, **more: str) -> dict[str, str]:
    answer = broker.ask(code, ext={"topic": topic, "queueId": "0"} | more)
    assert answer.code == ResponseCode.SUCCESS
    return answer.ext


# Where a group stands


def test_a_committed_offset_is_answered(broker: Asker) -> None:
    assert _commit(broker, 5).code == ResponseCode.SUCCESS
    assert _query(broker).ext == {"offset": "5"}
    assert _commit(broker, 2).code == ResponseCode.SUCCESS
    assert _query(broker).ext == {"offset": "2"}


def test_a_new_group_begins_at_0_in_a_young_queue(
    state: BrokerState, broker: Asker, clock: FakeClock
) -> None:
    _fill(state, clock, 3)
    answer = _query(broker)
    assert (answer.code, answer.ext) == (ResponseCode.SUCCESS, {"offset": "0"})


def test_a_new_group_decides_itself_if_it_asks_for_that(
    state: BrokerState, broker: Asker, clock: FakeClock
) -> None:
    _fill(state, clock, 3)
    assert _query(broker, set_zero_if_not_found=False).code == ResponseCode.QUERY_NOT_FOUND
    assert _query(broker, set_zero_if_not_found=True).code == ResponseCode.SUCCESS


def test_a_new_group_decides_itself_in_a_queue_nobody_has_written_to(broker: Asker) -> None:
    assert _query(broker, 3).code == ResponseCode.QUERY_NOT_FOUND


def test_a_new_group_begins_where_a_topic_begins_that_was_deleted_and_made_again(
    state: BrokerState, broker: Asker, clock: FakeClock
) -> None:
    _fill(state, clock, 3)
    state.store.delete_topics([TOPIC])
    assert _query(broker).code == ResponseCode.QUERY_NOT_FOUND
    _fill(state, clock, 2)
    assert _query(broker).header(ConsumerOffsetResponse).consumer_offset == 3


def test_a_new_group_decides_itself_once_the_first_message_is_old(
    state: BrokerState, broker: Asker, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of this much memory the log's end is taken to fill 40 %.
    monkeypatch.setattr(memory, "_memory_bytes", lambda: 2500)
    _fill(state, clock, 1)
    assert _query(broker).code == ResponseCode.SUCCESS
    _fill(state, clock, 1, body_bytes=1000)
    assert _query(broker).code == ResponseCode.QUERY_NOT_FOUND


def test_a_new_group_decides_itself_where_the_first_message_is_deleted(
    state: BrokerState, broker: Asker, clock: FakeClock
) -> None:
    _fill(state, clock, 3, body_bytes=2000)
    state.store.flush()
    state.store.log.segments.discard([state.store.log.take_first_segment()])
    state.store.queues.raise_min(state.store.log.log_start)
    assert _query(broker).code == ResponseCode.QUERY_NOT_FOUND


# Commits


def test_a_commit_for_an_unknown_group_or_topic_is_refused(state: BrokerState, broker: Asker) -> None:
    assert _commit(broker, 1, group="Other").code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    assert _commit(broker, 1, topic="Other").code == ResponseCode.TOPIC_NOT_EXIST
    assert not state.offsets.is_dirty


def test_a_commit_that_can_not_be_is_refused(state: BrokerState, broker: Asker) -> None:
    assert _commit(broker, -1).code == ResponseCode.INVALID_PARAMETER
    assert _commit(broker, 1, queue_id=-1).code == ResponseCode.INVALID_PARAMETER
    assert _commit(broker, 1, queue_id=1 << 16).code == ResponseCode.INVALID_PARAMETER
    assert not state.offsets.is_dirty


def test_a_commit_in_a_queue_that_was_taken_away_is_kept(broker: Asker) -> None:
    assert _commit(broker, 9, queue_id=100).code == ResponseCode.SUCCESS
    assert _query(broker, 100).ext == {"offset": "9"}


def test_all_offsets_are_told_with_their_version(state: BrokerState, broker: Asker) -> None:
    for number in range(200):
        state.offsets.commit(f"G{number}", "T", number, number)
    _commit(broker, 5)
    answer = broker.ask(RequestCode.GET_ALL_CONSUMER_OFFSET)
    assert answer.code == ResponseCode.SUCCESS
    assert b'"dataVersion"' in bytes(answer.body)
    assert decode_java_json(answer.body, ConsumerOffsetTable) == state.offsets.table()


def test_a_broker_without_offsets_answers_an_empty_table(broker: Asker) -> None:
    answer = broker.ask(RequestCode.GET_ALL_CONSUMER_OFFSET)
    assert answer.code == ResponseCode.SUCCESS
    assert decode_java_json(answer.body, ConsumerOffsetTable).offset_table == {}


# Queues


def test_a_queues_bounds_are_told(state: BrokerState, broker: Asker, clock: FakeClock) -> None:
    _fill(state, clock, 3)
    assert _about_queue(broker, RequestCode.GET_MIN_OFFSET) == {"offset": "0"}
    assert _about_queue(broker, RequestCode.GET_MAX_OFFSET) == {"offset": "3"}
    assert _about_queue(broker, RequestCode.GET_MAX_OFFSET, committed="false") == {"offset": "3"}


def test_an_unknown_queue_is_empty(broker: Asker) -> None:
    assert _about_queue(broker, RequestCode.GET_MIN_OFFSET, "Other") == {"offset": "0"}
    assert _about_queue(broker, RequestCode.GET_MAX_OFFSET, "Other") == {"offset": "0"}
    assert _about_queue(broker, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, "Other", timestamp="5") == {
        "offset": "0"
    }
    assert _about_queue(broker, RequestCode.GET_EARLIEST_MSG_STORETIME, "Other") == {"timestamp": "-1"}


def test_the_time_of_the_first_message_is_told(state: BrokerState, broker: Asker, clock: FakeClock) -> None:
    _fill(state, clock, 3)
    assert _about_queue(broker, RequestCode.GET_EARLIEST_MSG_STORETIME) == {"timestamp": str(START_MS)}


@pytest.mark.parametrize(
    ("boundary", "offsets"),
    [
        (None, {-1: 0, 100: 1, 101: 2, 900: 3}),
        ("LOWER", {-1: 0, 100: 1, 101: 2, 900: 3}),
        ("SIDEWAYS", {101: 2, 900: 3}),
        ("UPPER", {-1: 0, 100: 1, 101: 1, 900: 2}),
        ("upper", {101: 1}),
    ],
)
def test_a_time_is_found_by_its_boundary(
    state: BrokerState, clock: FakeClock, boundary: str | None, offsets: dict[int, int]
) -> None:
    """The times count from the first of three messages on."""
    _fill(state, clock, 3)
    broker = Asker(routes(state))
    more = {"boundaryType": boundary} if boundary else {}
    for time_ms, offset in offsets.items():
        asked = {"timestamp": str(START_MS + time_ms)} | more
        assert _about_queue(broker, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, **asked) == {
            "offset": str(offset)
        }


def test_the_offsets_of_transactions_are_not_for_clients_to_move(state: BrokerState, broker: Asker) -> None:
    header = UpdateConsumerOffsetRequest(
        consumer_group=TRANSACTION_GROUP, topic=HALF_TOPIC, queue_id=0, consumer_offset=QueueOffset(1000)
    )
    assert broker.ask(RequestCode.UPDATE_CONSUMER_OFFSET, header).code == ResponseCode.NO_PERMISSION
    assert state.offsets.find(TRANSACTION_GROUP, HALF_TOPIC, 0) is None


def test_a_slave_does_not_say_that_a_group_or_topic_has_no_offset_that_it_has_not_heard_of(
    tmp_path: Path,
) -> None:
    slave = msgspec.structs.replace(SETTINGS, broker_role=BrokerRole.SLAVE, broker_id=1)
    master, state = open_state(tmp_path / "master"), open_state(tmp_path / "slave", slave)
    with master.store, state.store:
        for one in (master, state):
            one.topics.put(TopicConfig(topic_name=TOPIC))
        group = master.groups.ensure("G")
        assert group is not None
        state.groups.put(group)
        broker = Asker(routes(state))
        # Told that there is none, a consumer begins where its program wants, and may pass over messages.
        assert _query(broker).code == ResponseCode.QUERY_NOT_FOUND
        assert _query(broker, group="New").code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
        assert _query(broker, topic="New").code == ResponseCode.TOPIC_NOT_EXIST
        assert _query(Asker(routes(master)), group="New").code == ResponseCode.QUERY_NOT_FOUND
