"""What a consumer subscribes to, and where it begins."""

from datetime import UTC, datetime

import pytest

from tanist.client import InvalidArgument, Sql, Start
from tanist.client.consuming.subscriptions import check_start, consume_from_where, make_subscriptions
from tanist.model.groups import ConsumeFromWhere
from tanist.model.subscription import SQL92


def subscriptions(topics: object, **options: object) -> dict[str, object]:
    given: dict[str, object] = {"group": "G", "is_broadcasting": False, "sub_version": 7, **options}
    made = make_subscriptions(topics, **given)  # pyright: ignore[reportArgumentType]
    return dict(made)


def test_tags_and_sql_become_what_brokers_read() -> None:
    made = make_subscriptions(
        {"T": "a || b", "U": Sql("x > 3"), "V": "*"}, group="G", is_broadcasting=False, sub_version=7
    )
    assert made["T"].tags == {"a", "b"}
    assert (made["U"].expression, made["U"].expression_type) == ("x > 3", SQL92)
    assert made["V"].expression == "*"
    assert {each.sub_version for each in made.values()} == {7}


def test_the_retry_topic_of_the_group_is_read_too_unless_it_is_broadcasting() -> None:
    assert set(subscriptions({"T": "*"})) == {"T", "%RETRY%G"}
    assert set(subscriptions({"T": "*"}, is_broadcasting=True)) == {"T"}


@pytest.mark.parametrize(
    ("topics", "argument"),
    [
        ({}, "topics"),
        ("T", "topics"),
        (["T"], "topics"),
        (None, "topics"),
        ({"not a topic": "*"}, "topics"),
        ({7: "*"}, "topics"),
        ({"T": ""}, "topics['T']"),
        ({"T": " || "}, "topics['T']"),
        ({"T": None}, "topics['T']"),
        ({"T": 5}, "topics['T']"),
        ({"%RETRY%G": "*"}, "topics['%RETRY%G']"),
    ],
)
def test_what_can_not_be_subscribed_to_is_named(topics: object, argument: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        subscriptions(topics)
    assert refused.value.argument == argument


@pytest.mark.parametrize("expression", ["", "  ", None, 3])
def test_sql_wants_a_condition(expression: str) -> None:
    with pytest.raises(InvalidArgument, match="expression="):
        Sql(expression)


def test_a_start_is_a_place_or_a_time_with_a_zone() -> None:
    now = datetime.now(UTC)
    assert check_start(now) is now
    assert consume_from_where(now) is ConsumeFromWhere.TIMESTAMP
    assert consume_from_where(check_start(Start.FIRST)) is ConsumeFromWhere.FIRST_OFFSET
    assert consume_from_where(check_start(Start.LAST)) is ConsumeFromWhere.LAST_OFFSET
    for wrong in ("LAST", 0, None, datetime.now()):  # noqa: DTZ005
        with pytest.raises(InvalidArgument, match="start="):
            check_start(wrong)
