import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tanist.broker.handlers import consumption
from tanist.broker.handlers.consumption import routes
from tanist.broker.late import LongAnswers
from tanist.broker.state import BrokerState
from tanist.model.groups import TRANSACTION_GROUP
from tanist.model.integers import INT64_MAX
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.model.subscription import subscribe
from tanist.model.topics import HALF_TOPIC, TopicConfig
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.stats import (
    BrokerConsumeStats,
    ConsumeStats,
    ConsumeTimeSpans,
    CorrectionOffsets,
    QueueConsumeStats,
    QueueTimeSpan,
)
from tanist.protocol.bodies.tables import GroupList, GroupSubscription, TopicList
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.common import GroupRequest, TopicGroupRequest, TopicRequest
from tanist.protocol.headers.groups import (
    BrokerConsumeStatsRequest,
    GetConsumeStatsRequest,
    QuerySubscriptionRequest,
)
from tanist.protocol.headers.offsets import CloneGroupOffsetRequest, QueryCorrectionOffsetRequest
from tests.support.broker_tables import Asker, join, open_state
from tests.support.clocks import FakeClock, HastyClock
from tests.support.fake_connection import FakeConnection
from tests.support.messages import TOPIC, make_message

START_MS = 1_700_000_000_000
OTHER = "Other"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(now_ms=START_MS)


@pytest.fixture
def state(tmp_path: Path, clock: FakeClock) -> Iterator[BrokerState]:
    """Two topics of two queues; five messages a second apart in queue 0 of the first one."""
    state = open_state(tmp_path, clock=clock)
    for topic in (TOPIC, OTHER):
        state.topics.put(TopicConfig(topic_name=topic, read_queue_count=2, write_queue_count=2))
    for group in ("G", "H"):
        state.groups.ensure(group)
    for number in range(5):
        state.store.append(make_message(number))
        clock.advance_ms(1000)
    state.store.dispatch()
    with state.store:
        yield state


@pytest.fixture
def broker(state: BrokerState) -> Asker:
    return Asker(routes(state))


def _queue(queue_id: int, topic: str = TOPIC) -> MessageQueue:
    return MessageQueue(topic=topic, broker_name="broker-a", queue_id=queue_id)


def _stats(broker: Asker, group: str = "G", **more: str) -> ConsumeStats:
    answer = broker.ask(RequestCode.GET_CONSUME_STATS, GetConsumeStatsRequest(consumer_group=group, **more))
    assert answer.code == ResponseCode.SUCCESS
    return decode_java_json(answer.body, ConsumeStats)


def _topics(stats: ConsumeStats) -> set[str]:
    return {queue.topic for queue in stats.offset_table}


# How far a group is


def test_a_group_is_told_queue_by_queue(state: BrokerState, broker: Asker) -> None:
    state.offsets.commit("G", TOPIC, 0, 2)
    state.pull_progress.note("G", TOPIC, 0, 4)
    nowhere = QueueConsumeStats(
        broker_offset=QueueOffset(0), consumer_offset=QueueOffset(0), pull_offset=QueueOffset(0)
    )
    assert _stats(broker).offset_table == {
        _queue(0): QueueConsumeStats(
            broker_offset=QueueOffset(5),
            consumer_offset=QueueOffset(2),
            pull_offset=QueueOffset(4),
            last_timestamp_ms=START_MS + 1000,
        ),
        _queue(1): nowhere,
    }


def test_what_was_committed_counts_as_pulled(state: BrokerState, broker: Asker) -> None:
    state.offsets.commit("G", TOPIC, 0, 3)
    state.pull_progress.note("G", TOPIC, 0, 1)
    assert _stats(broker).offset_table[_queue(0)].pull_offset == 3


def test_the_rate_is_that_of_all_topics_together(state: BrokerState, broker: Asker, clock: FakeClock) -> None:
    for topic, count in ((TOPIC, 20), (OTHER, 5)):
        state.offsets.commit("G", topic, 0, 1)
        state.counters.on_pulled(topic, "G", count=count, size_bytes=count, is_system=False)
    clock.advance_ms(10_000)
    state.counters.on_tick(clock.now_ms(), local_day=1)
    assert _stats(broker).consume_tps == 2.5


def test_how_far_a_group_has_pulled_is_forgotten_with_it(state: BrokerState) -> None:
    state.pull_progress.note("gone", TOPIC, 0, 1)
    state.pull_progress.note("G", TOPIC, 0, 1)
    consumption.on_tick(state)
    assert [state.pull_progress.find(group, TOPIC, 0) for group in ("gone", "G")] == [None, 1]


def test_a_group_offline_is_told_in_all_topics_with_offsets(state: BrokerState, broker: Asker) -> None:
    state.offsets.commit("G", TOPIC, 0, 1)
    state.offsets.commit("G", OTHER, 0, 1)
    state.offsets.commit("G", "Deleted", 0, 1)
    state.offsets.commit("H", OTHER, 0, 1)
    assert _topics(_stats(broker)) == {TOPIC, OTHER}
    assert _topics(_stats(broker, topic=OTHER)) == {OTHER}
    assert _topics(_stats(broker, "nobody")) == set()


def test_a_group_online_is_told_in_topics_that_it_still_wants(state: BrokerState, broker: Asker) -> None:
    state.offsets.commit("G", TOPIC, 0, 1)
    state.offsets.commit("G", OTHER, 0, 1)
    join(state, "G", subscribe(TOPIC, "*", sub_version=1))
    assert _topics(_stats(broker)) == {TOPIC}
    assert _topics(_stats(broker, topic=OTHER)) == set()
    # Who names several topics has looked at the subscription himself.
    assert _topics(_stats(broker, topic_list=f"{OTHER};nowhere;")) == {OTHER}


def test_a_topic_of_many_queues_is_told_turn_by_turn(state: BrokerState) -> None:
    state.topics.put(TopicConfig(topic_name="Wide", read_queue_count=3_000, write_queue_count=3_000))
    state.offsets.commit("G", "Wide", 2_999, 7)

    async def scenario() -> None:
        state.long_answers = LongAnswers(HastyClock())
        connection = FakeConnection()
        request = Command.request(RequestCode.GET_CONSUME_STATS, GetConsumeStatsRequest(consumer_group="G"))
        assert routes(state)[RequestCode.GET_CONSUME_STATS](request, connection) is None
        for _ in range(300):
            await asyncio.sleep(0)
            assert connection.sent == []
        for _ in range(100):
            await asyncio.sleep(0)
        (answer,) = connection.sent
        table = decode_java_json(answer.body, ConsumeStats).offset_table
        assert len(table) == 3_000
        assert table[_queue(2_999, "Wide")].consumer_offset == 7

    asyncio.run(scenario())


def test_an_answer_that_would_outgrow_a_frame_is_refused(state: BrokerState, broker: Asker) -> None:
    for number in range(3):
        state.topics.put(
            TopicConfig(topic_name=f"Wide{number}", read_queue_count=65_536, write_queue_count=65_536)
        )
        state.offsets.commit("G", f"Wide{number}", 0, 1)
    answer = broker.ask(RequestCode.GET_CONSUME_STATS, GetConsumeStatsRequest(consumer_group="G"))
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "fewer topics" in (answer.remark or "")


# How far all groups are


def _broker_stats(broker: Asker, *, is_ordered: bool = False) -> BrokerConsumeStats:
    header = BrokerConsumeStatsRequest(is_ordered=is_ordered)
    answer = broker.ask(RequestCode.GET_BROKER_CONSUME_STATS, header)
    assert answer.code == ResponseCode.SUCCESS
    return decode_java_json(answer.body, BrokerConsumeStats)


def test_all_groups_are_told_topic_by_topic_with_their_sums(state: BrokerState, broker: Asker) -> None:
    state.offsets.commit("G", TOPIC, 0, 1)
    state.offsets.commit("G", OTHER, 0, 0)
    state.offsets.commit("H", TOPIC, 0, 3)
    state.pull_progress.note("G", TOPIC, 0, 3)
    found = _broker_stats(broker)
    assert found.broker_addr == "127.0.0.1:10911"
    assert (found.total_diff, found.total_inflight_diff) == (4 + 2, 2)
    by_group: dict[str, list[ConsumeStats]] = {}
    for item in found.consume_stats_list:
        by_group |= item
    assert {group for group, stats in by_group.items() if stats} == {"G", "H"}
    assert "TOOLS_CONSUMER" in by_group
    assert [_topics(stats) for stats in by_group["G"]] == [{OTHER}, {TOPIC}]
    assert by_group["H"][0].offset_table[_queue(0)].consumer_offset == 3


def test_only_ordered_topics_are_told_to_who_asks_for_those(state: BrokerState, broker: Asker) -> None:
    state.topics.put(TopicConfig(topic_name=OTHER, read_queue_count=1, write_queue_count=1, is_ordered=True))
    state.offsets.commit("G", TOPIC, 0, 1)
    state.offsets.commit("G", OTHER, 0, 0)
    told = [
        stats for item in _broker_stats(broker, is_ordered=True).consume_stats_list for stats in item.values()
    ]
    assert [_topics(stats) for of_group in told for stats in of_group] == [{OTHER}]


# Times


def test_time_spans_say_how_long_the_next_message_waits(state: BrokerState, broker: Asker) -> None:
    state.offsets.commit("G", TOPIC, 0, 2)
    answer = broker.ask(RequestCode.QUERY_CONSUME_TIME_SPAN, TopicGroupRequest(topic=TOPIC, group="G"))
    assert decode_java_json(answer.body, ConsumeTimeSpans).spans == [
        QueueTimeSpan(
            queue=_queue(0),
            min_timestamp_ms=START_MS,
            max_timestamp_ms=START_MS + 4000,
            consume_timestamp_ms=START_MS + 1000,
            delay_ms=3000,
        ),
        QueueTimeSpan(queue=_queue(1), min_timestamp_ms=-1, max_timestamp_ms=-1, consume_timestamp_ms=-1),
    ]


def test_a_group_that_has_not_begun_stands_at_the_first_message(broker: Asker) -> None:
    answer = broker.ask(RequestCode.QUERY_CONSUME_TIME_SPAN, TopicGroupRequest(topic=TOPIC, group="H"))
    first, _ = decode_java_json(answer.body, ConsumeTimeSpans).spans
    assert (first.consume_timestamp_ms, first.delay_ms) == (START_MS, 5000)


def test_there_are_no_time_spans_of_an_unknown_topic(broker: Asker) -> None:
    header = TopicGroupRequest(topic="nowhere", group="G")
    assert broker.ask(RequestCode.QUERY_CONSUME_TIME_SPAN, header).code == ResponseCode.TOPIC_NOT_EXIST


# Who consumes what


def test_groups_of_a_topic_are_those_with_offsets_and_those_online(state: BrokerState, broker: Asker) -> None:
    state.offsets.commit("G", TOPIC, 0, 1)
    state.offsets.commit("H", OTHER, 0, 1)
    join(state, "new", subscribe(TOPIC, "*", sub_version=1))
    answer = broker.ask(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, TopicRequest(topic=TOPIC))
    assert decode_java_json(answer.body, GroupList).groups == {"G", "new"}


def test_topics_of_a_group_are_those_with_offsets(state: BrokerState, broker: Asker) -> None:
    state.offsets.commit("G", TOPIC, 0, 1)
    state.offsets.commit("G", OTHER, 0, 1)
    answer = broker.ask(RequestCode.QUERY_TOPICS_BY_CONSUMER, GroupRequest(group="G"))
    assert decode_java_json(answer.body, TopicList) == TopicList(
        topics=frozenset({TOPIC, OTHER}), broker_addr="127.0.0.1:10911"
    )


def test_a_subscription_is_told_while_the_group_is_online(state: BrokerState, broker: Asker) -> None:
    wanted = subscribe(TOPIC, "A || B", sub_version=1)
    join(state, "G", wanted)

    def told(**header: Any) -> GroupSubscription:
        request = QuerySubscriptionRequest(**header)
        answer = broker.ask(RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER, request)
        return decode_java_json(answer.body, GroupSubscription)

    assert told(group="G", topic=TOPIC) == GroupSubscription(group="G", topic=TOPIC, subscription_data=wanted)
    assert told(group="H", topic=TOPIC) == GroupSubscription(group="H", topic=TOPIC)
    assert told(group="G") == GroupSubscription(group="G")


# Offsets to copy and to go to


def _clone(broker: Asker, topic: str | None = None, *, to: str = "H", is_offline: bool | None = None) -> int:
    header = CloneGroupOffsetRequest(
        source_group="G", destination_group=to, topic=topic, is_offline=is_offline
    )
    return broker.ask(RequestCode.CLONE_GROUP_OFFSET, header).code


def test_offsets_are_cloned_in_one_topic_or_in_all(state: BrokerState, broker: Asker) -> None:
    state.offsets.commit("G", TOPIC, 0, 3)
    state.offsets.commit("G", OTHER, 1, 4)
    assert _clone(broker, TOPIC) == ResponseCode.SUCCESS
    assert (state.offsets.find("H", TOPIC, 0), state.offsets.find("H", OTHER, 1)) == (3, None)
    assert _clone(broker) == ResponseCode.SUCCESS
    assert state.offsets.find("H", OTHER, 1) == 4


def test_only_what_the_source_still_wants_is_cloned_unless_it_is_called_offline(
    state: BrokerState, broker: Asker
) -> None:
    state.offsets.commit("G", OTHER, 1, 4)
    join(state, "G", subscribe(TOPIC, "*", sub_version=1))
    assert _clone(broker, OTHER) == ResponseCode.SUCCESS
    assert state.offsets.find("H", OTHER, 1) is None
    assert _clone(broker, OTHER, is_offline=True) == ResponseCode.SUCCESS
    assert state.offsets.find("H", OTHER, 1) == 4


def test_offsets_are_not_cloned_to_where_nobody_is(state: BrokerState, broker: Asker) -> None:
    state.offsets.commit("G", "Deleted", 0, 3)
    assert _clone(broker, to="nobody") == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    assert _clone(broker, "Deleted") == ResponseCode.SUCCESS
    assert state.offsets.find("H", "Deleted", 0) is None


def test_offsets_are_not_cloned_to_the_group_of_transactions(state: BrokerState, broker: Asker) -> None:
    state.offsets.commit("G", HALF_TOPIC, 0, 1000)
    assert _clone(broker, HALF_TOPIC, to=TRANSACTION_GROUP, is_offline=True) == ResponseCode.NO_PERMISSION
    assert state.offsets.find(TRANSACTION_GROUP, HALF_TOPIC, 0) is None


def _corrections(broker: Asker, **more: str) -> dict[int, int]:
    header = QueryCorrectionOffsetRequest(topic=TOPIC, compare_group="G", **more)
    answer = broker.ask(RequestCode.QUERY_CORRECTION_OFFSET, header)
    return dict(decode_java_json(answer.body, CorrectionOffsets).correction_offsets)


def test_the_least_offset_of_all_groups_is_told(state: BrokerState, broker: Asker) -> None:
    state.offsets.commit("G", TOPIC, 0, 3)
    state.offsets.commit("G", TOPIC, 1, 1)
    state.offsets.commit("H", TOPIC, 0, 2)
    assert _corrections(broker) == {0: 2, 1: 1}


def test_a_group_that_is_behind_all_others_has_nothing_to_correct(state: BrokerState, broker: Asker) -> None:
    state.offsets.commit("G", TOPIC, 0, 1)
    state.offsets.commit("H", TOPIC, 0, 2)
    assert _corrections(broker, filter_groups="G,nobody") == {0: INT64_MAX}
    assert state.offsets.find("G", TOPIC, 0) == 1


def test_bodies_are_plain_json(state: BrokerState, broker: Asker) -> None:
    state.offsets.commit("G", TOPIC, 0, 1)
    answer = broker.ask(RequestCode.GET_CONSUME_STATS, GetConsumeStatsRequest(consumer_group="G"))
    table = json.loads(bytes(answer.body))["offsetTable"]
    assert sorted(json.loads(key)["queueId"] for key in table) == [0, 1]
