"""Which messages a subscription lets through."""

from pathlib import Path

import pytest

from tanist.broker.message_filter import MessageFilter, PropertyFilter, TagFilter, filter_of
from tanist.errors import ResponseError
from tanist.model.subscription import SQL92, SubscriptionData, subscribe
from tanist.protocol.codes import ResponseCode
from tanist.protocol.queue_entry import QueueEntry
from tanist.protocol.tags import tags_code
from tests.support.messages import TOPIC, make_message, open_store


def no_log(_log_offset: int, _size_bytes: int) -> memoryview:
    raise AssertionError("tags are told by the queue alone")


def made(subscription: SubscriptionData) -> MessageFilter:
    made = filter_of(subscription, no_log, is_sql_enabled=True)
    assert made is not None
    return made


def entry(code: int) -> QueueEntry:
    return QueueEntry(log_offset=0, size_bytes=100, tags_code=code)


def sql(expression: str, *, kind: str = SQL92) -> SubscriptionData:
    return SubscriptionData(topic=TOPIC, expression=expression, expression_type=kind)


@pytest.mark.parametrize("expression", [None, "", "*"])
def test_a_subscription_to_everything_needs_no_filter(expression: str | None) -> None:
    assert filter_of(subscribe("T", expression, sub_version=1), no_log, is_sql_enabled=True) is None


def test_a_subscription_by_tags_takes_their_codes_and_no_others() -> None:
    is_wanted = made(subscribe("T", "TagA || TagB", sub_version=1))
    tags = ("TagA", "TagB", "TagC", None)
    assert [is_wanted(entry(tags_code(tag))) for tag in tags] == [True, True, False, False]


def test_a_code_below_zero_is_found_as_the_consume_queue_keeps_it() -> None:
    assert tags_code("zzzzzzzzzz") == -1580979136
    assert made(subscribe("T", "zzzzzzzzzz", sub_version=1))(entry(-1580979136))


def test_the_codes_of_the_client_count_and_not_its_expression() -> None:
    is_wanted = made(SubscriptionData(topic="T", expression="TagA", tag_codes=frozenset({7})))
    assert is_wanted(entry(7))
    assert not is_wanted(entry(tags_code("TagA")))


@pytest.mark.parametrize("kind", [None, "", "TAG"])
def test_a_subscription_without_a_type_is_by_tags(kind: str | None) -> None:
    subscription = SubscriptionData(
        topic="T", expression="A", tag_codes=frozenset({65}), expression_type=kind
    )
    is_wanted = made(subscription)
    assert isinstance(is_wanted, TagFilter)
    assert is_wanted(entry(65))


@pytest.mark.parametrize(
    "subscription",
    [
        sql("a > 1", kind="SQL99"),
        sql("a > 1", kind="sql92"),
        SubscriptionData(topic="T", expression="some.Filter", is_class_filter=True),
    ],
)
def test_other_filters_are_refused_instead_of_matching_nothing(subscription: SubscriptionData) -> None:
    with pytest.raises(ResponseError) as refused:
        made(subscription)
    assert refused.value.code == ResponseCode.SYSTEM_ERROR


def test_a_subscription_by_sql_takes_messages_by_their_properties(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for number in range(6):
        # Long topics and addresses of another kind move the properties about.
        topic = TOPIC if number % 2 else "T" * 200
        store.append(make_message(number, topic=topic, tag="A", body_bytes=number * 50, size=str(number)))
    store.append(make_message(6, topic=TOPIC))
    store.dispatch()
    is_wanted = filter_of(sql("size BETWEEN 2 AND 4 AND TAGS = 'A'"), store.log.read, is_sql_enabled=True)
    assert isinstance(is_wanted, PropertyFilter)
    wanted: list[bytes] = []
    for topic in (TOPIC, "T" * 200):
        queue = store.queues.find(topic, 0)
        assert queue is not None
        wanted += [
            bytes(record.body).rstrip(b".")
            for record, found in zip(
                store.records(topic, 0, 0, queue.max_offset), queue.entries(0, queue.max_offset), strict=True
            )
            if is_wanted(found)
        ]
    assert sorted(wanted) == [b"message 2 ", b"message 3 ", b"message 4 "]


@pytest.mark.parametrize("expression", ["", "a >", "a = 1 b", "(" * 10_000, "a = 1 OR " * 100_000])
def test_an_expression_that_can_not_be_read_is_refused_with_the_reason(expression: str) -> None:
    with pytest.raises(ResponseError) as refused:
        made(sql(expression))
    assert refused.value.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED
    assert "expected" in refused.value.remark
    assert len(refused.value.remark) < 300


def test_sql_can_be_switched_off() -> None:
    with pytest.raises(ResponseError) as refused:
        filter_of(sql("a > 1"), no_log, is_sql_enabled=False)
    assert refused.value.code == ResponseCode.SYSTEM_ERROR
    assert "enablePropertyFilter" in refused.value.remark
