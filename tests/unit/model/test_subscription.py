"""Subscriptions and tag expressions."""

import pytest

from tanist.model.subscription import SubscriptionData, split_tags, subscribe


@pytest.mark.parametrize("expression", [None, "", "*"])
def test_nothing_and_a_star_subscribe_to_every_message(expression: str | None) -> None:
    assert subscribe("T", expression, sub_version=5) == SubscriptionData(
        topic="T",
        expression="*",
        tags=frozenset(),
        tag_codes=frozenset(),
        sub_version=5,
        expression_type="TAG",
    )


def test_tags_are_split_trimmed_and_hashed() -> None:
    subscription = subscribe("T", "TagA || TagB|| || TagA", sub_version=1)
    assert subscription.expression == "TagA || TagB|| || TagA"
    assert subscription.tags == {"TagA", "TagB"}
    assert subscription.tag_codes == {2598919, 2598920}


def test_a_single_pipe_belongs_to_the_tag() -> None:
    assert split_tags("A|B") == {"A|B"}


@pytest.mark.parametrize("expression", ["||", " || ", " "])
def test_an_expression_without_a_tag_is_refused(expression: str) -> None:
    with pytest.raises(ValueError, match="names no tag"):
        subscribe("T", expression, sub_version=1)
