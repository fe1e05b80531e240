"""Which tags codes a subscription lets through."""

import pytest

from tanist.broker.tag_filter import TagFilter
from tanist.errors import ResponseError
from tanist.model.subscription import SQL92, SubscriptionData, subscribe
from tanist.protocol.codes import ResponseCode
from tanist.protocol.tags import tags_code


@pytest.mark.parametrize("expression", [None, "", "*"])
def test_a_subscription_to_everything_takes_any_code(expression: str | None) -> None:
    is_wanted = TagFilter(subscribe("T", expression, sub_version=1))
    assert all(map(is_wanted, (0, tags_code("TagA"), -1)))


def test_a_subscription_by_tags_takes_their_codes_and_no_others() -> None:
    is_wanted = TagFilter(subscribe("T", "TagA || TagB", sub_version=1))
    assert [is_wanted(tags_code(tag)) for tag in ("TagA", "TagB", "TagC", None)] == [True, True, False, False]


def test_a_code_below_zero_is_found_as_the_consume_queue_keeps_it() -> None:
    assert tags_code("zzzzzzzzzz") == -1580979136
    assert TagFilter(subscribe("T", "zzzzzzzzzz", sub_version=1))(-1580979136)


def test_the_codes_of_the_client_count_and_not_its_expression() -> None:
    is_wanted = TagFilter(SubscriptionData(topic="T", expression="TagA", tag_codes=frozenset({7})))
    assert is_wanted(7)
    assert not is_wanted(tags_code("TagA"))


@pytest.mark.parametrize("kind", [None, "", "TAG"])
def test_a_subscription_without_a_type_is_by_tags(kind: str | None) -> None:
    subscription = SubscriptionData(
        topic="T", expression="A", tag_codes=frozenset({65}), expression_type=kind
    )
    assert TagFilter(subscription)(65)


@pytest.mark.parametrize(
    "subscription",
    [
        SubscriptionData(topic="T", expression="a > 1", expression_type=SQL92),
        SubscriptionData(topic="T", expression="some.Filter", is_class_filter=True),
    ],
)
def test_other_filters_are_refused_instead_of_matching_nothing(subscription: SubscriptionData) -> None:
    with pytest.raises(ResponseError) as refused:
        TagFilter(subscription)
    assert refused.value.code == ResponseCode.SYSTEM_ERROR
