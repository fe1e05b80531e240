import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tanist.broker.handlers.messages import routes
from tanist.broker.late import LongAnswers
from tanist.broker.state import BrokerState
from tanist.model.offsets import LogOffset, QueueOffset
from tanist.model.subscription import subscribe
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.stats import ConsumeQueueView, QueueEntryView
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.frame import MAX_FRAME_BYTES
from tanist.protocol.headers.messages import (
    QueryConsumeQueueRequest,
    QueryMessageRequest,
    QueryMessageResponse,
    ViewMessageRequest,
)
from tanist.protocol.record import decode_record
from tanist.store import StoreSettings
from tests.support.broker_tables import SETTINGS, Asker, join, open_state
from tests.support.clocks import FakeClock, HastyClock
from tests.support.fake_connection import FakeConnection
from tests.support.messages import TOPIC, make_message, numbered, open_store

START_MS = 1_700_000_000_000
ASKED = QueryMessageRequest(
    topic=TOPIC, key="a", max_count=64, begin_timestamp_ms=0, end_timestamp_ms=(1 << 63) - 1
)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(now_ms=START_MS)


@pytest.fixture
def state(tmp_path: Path, clock: FakeClock) -> Iterator[BrokerState]:
    state = open_state(tmp_path, clock=clock)
    with state.store:
        yield state


@pytest.fixture
def broker(state: BrokerState) -> Asker:
    return Asker(routes(state))


def _put(state: BrokerState, *keys: str, body_bytes: int = 0, tag: str = "", unique_id: str = "") -> None:
    """One message for each, with these keys, in queue 0."""
    for number, key in enumerate(keys):
        message = make_message(number, keys=key, body_bytes=body_bytes, tag=tag, UNIQ_KEY=unique_id)
        state.store.append(message)
    state.store.dispatch()


def _query(broker: Asker, key: str, **changes: Any) -> Command:
    return broker.ask(RequestCode.QUERY_MESSAGE, msgspec.structs.replace(ASKED, key=key, **changes))


def _bodies(answer: Command) -> list[bytes]:
    assert answer.code == ResponseCode.SUCCESS
    view, position, found = memoryview(answer.body), 0, list[bytes]()
    while position < len(view):
        record = decode_record(view, position)
        found.append(bytes(record.body).rstrip(b"."))
        position += record.size_bytes
    return found


# By place


def test_a_message_is_found_by_its_place(state: BrokerState, broker: Asker) -> None:
    _put(state, "a", "b")
    _, second = state.store.records(TOPIC, 0, 0, 2)
    answer = broker.ask(RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequest(log_offset=second.log_offset))
    assert _bodies(answer) == numbered(1)


@pytest.mark.parametrize("log_offset", [-1, 1, 1 << 40])
def test_a_place_where_no_message_begins_is_refused(
    state: BrokerState, broker: Asker, log_offset: int
) -> None:
    _put(state, "a")
    header = ViewMessageRequest(log_offset=LogOffset(log_offset))
    answer = broker.ask(RequestCode.VIEW_MESSAGE_BY_ID, header)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert str(log_offset) in (answer.remark or "")


# By key


def test_messages_are_found_by_key_oldest_first(state: BrokerState, broker: Asker) -> None:
    _put(state, "a", "b", "a c")
    answer = _query(broker, "a")
    assert _bodies(answer) == numbered(0, 2)
    last = state.store.records(TOPIC, 0, 2, 1)[0]
    assert answer.header(QueryMessageResponse) == QueryMessageResponse(
        index_timestamp_ms=START_MS, index_log_offset=last.log_offset
    )


def test_the_newest_messages_are_taken_and_no_more_than_asked_for(state: BrokerState, broker: Asker) -> None:
    _put(state, *["a"] * 5)
    assert _bodies(_query(broker, "a", max_count=2)) == numbered(3, 4)
    assert _query(broker, "a", max_count=0).code == ResponseCode.QUERY_NOT_FOUND


def test_no_more_messages_are_found_than_the_settings_allow(state: BrokerState, broker: Asker) -> None:
    _put(state, *["a"] * 40)
    state.settings = msgspec.structs.replace(SETTINGS, max_msgs_num_batch=36, default_query_max_num=34)
    assert len(_bodies(_query(broker, "a", max_count=1000))) == 36
    assert len(_bodies(_query(broker, "a", max_count=1, is_unique_key=True))) == 34


def test_a_message_is_found_by_its_unique_id(state: BrokerState, broker: Asker) -> None:
    _put(state, "a", unique_id="C0A8")
    assert _bodies(_query(broker, "C0A8", max_count=1, is_unique_key=True)) == numbered(0)


def test_a_key_of_the_same_hash_is_not_the_key(state: BrokerState, broker: Asker) -> None:
    _put(state, "Aa")
    answer = _query(broker, "BB")
    assert answer.code == ResponseCode.QUERY_NOT_FOUND
    assert answer.header(QueryMessageResponse).index_timestamp_ms == START_MS


@pytest.mark.parametrize("changes", [{"topic": "Other"}, {"end_timestamp_ms": START_MS - 1}])
def test_other_topics_and_times_are_not_meant(
    state: BrokerState, broker: Asker, changes: dict[str, object]
) -> None:
    _put(state, "a")
    assert _query(broker, "a", **changes).code == ResponseCode.QUERY_NOT_FOUND


def test_a_store_without_keys_answers_that_there_is_nothing(broker: Asker) -> None:
    answer = _query(broker, "a")
    assert answer.code == ResponseCode.QUERY_NOT_FOUND
    assert answer.ext == {"indexLastUpdateTimestamp": "0", "indexLastUpdatePhyoffset": "0"}


def test_an_answer_never_outgrows_a_frame(state: BrokerState, tmp_path: Path) -> None:
    state.store.close()
    settings = StoreSettings(mapped_file_size_commit_log=64 << 20, max_hash_slot_num=16, max_index_num=64)
    state.store = open_store(tmp_path / "large", settings)
    _put(state, *["a"] * 6, body_bytes=3 << 20)
    with state.store:
        answer = _query(Asker(routes(state)), "a")
    assert _bodies(answer) == numbered(1, 2, 3, 4, 5)
    assert len(answer.body) < MAX_FRAME_BYTES


def test_a_long_search_lets_others_pass_and_leaves_out_what_is_deleted_meanwhile(
    state: BrokerState,
) -> None:
    _put(state, *["a"] * 60, body_bytes=300)
    state.store.flush()
    places = [record.log_offset for record in state.store.records(TOPIC, 0, 0, 60)]

    async def scenario() -> None:
        state.long_answers = LongAnswers(HastyClock())
        connection = FakeConnection()
        request = Command.request(RequestCode.QUERY_MESSAGE, ASKED)
        assert routes(state)[RequestCode.QUERY_MESSAGE](request, connection) is None
        # The first turn has looked at the newest 32, and now only the last ones of them are left.
        for _ in range(len(state.store.log.segments) - 1):
            state.store.log.take_first_segment().close()
        kept = [number for number, place in enumerate(places) if place >= state.store.log.log_start]
        for _ in range(9):
            await asyncio.sleep(0)
        (answer,) = connection.sent
        assert 0 < len(kept) < 32
        assert _bodies(answer) == numbered(*kept)

    asyncio.run(scenario())


# Entries of a queue


def _entries(broker: Asker, queue_offset: int, count: int, *, group: str | None = None) -> ConsumeQueueView:
    header = QueryConsumeQueueRequest(
        topic=TOPIC, queue_offset=QueueOffset(queue_offset), count=count, consumer_group=group
    )
    answer = broker.ask(RequestCode.QUERY_CONSUME_QUEUE, header)
    assert answer.code == ResponseCode.SUCCESS
    return decode_java_json(answer.body, ConsumeQueueView)


def test_the_entries_of_a_queue_are_told_as_they_are(state: BrokerState, broker: Asker) -> None:
    _put(state, "a", "b", "c", tag="A")
    _, second, third = state.store.records(TOPIC, 0, 0, 3)
    view = _entries(broker, 1, 10)
    assert (view.min_offset, view.max_offset) == (0, 3)
    assert view.entries == [
        QueueEntryView(log_offset=record.log_offset, size_bytes=record.size_bytes, tags_code=ord("A"))
        for record in (second, third)
    ]
    assert (view.subscription_data, view.filter_data) == (None, None)
    assert len(_entries(broker, 0, 2).entries) == 2


@pytest.mark.parametrize(("queue_offset", "count"), [(3, 10), (-1, 10), (1 << 40, 10), (0, 0), (0, -5)])
def test_where_a_queue_has_no_entries_only_its_bounds_are_told(
    state: BrokerState, broker: Asker, queue_offset: int, count: int
) -> None:
    _put(state, "a", "b", "c")
    view = _entries(broker, queue_offset, count)
    assert (view.entries, view.max_offset) == ([], 3)


def test_a_thousand_entries_are_told_at_once_and_no_more(state: BrokerState, broker: Asker) -> None:
    _put(state, *["a"] * 1_010)
    assert len(_entries(broker, 0, 1 << 30).entries) == 1_000


def test_entries_are_told_with_what_a_group_wants(state: BrokerState, broker: Asker) -> None:
    _put(state, "a")
    wanted = subscribe(TOPIC, "A", sub_version=1)
    join(state, "G", wanted)
    online, offline = (_entries(broker, 0, 1, group=group) for group in ("G", "H"))
    assert (online.subscription_data, online.filter_data) == (wanted, "null")
    assert (offline.subscription_data, offline.filter_data) == (None, f"H@{TOPIC} is not online!")


def test_a_queue_without_messages_is_refused(broker: Asker) -> None:
    header = QueryConsumeQueueRequest(topic="Other", queue_id=3, count=1)
    assert broker.ask(RequestCode.QUERY_CONSUME_QUEUE, header).code == ResponseCode.SYSTEM_ERROR
