from datetime import UTC, datetime
from typing import Any

import pytest

from tanist.client.errors import InvalidArgument
from tanist.client.message import Message


def test_a_message_has_what_it_was_given() -> None:
    message = Message("T", b"x", tags="paid", keys=["o-17", "o-18"], properties={"a": "1"})
    assert (message.topic, message.body, message.tags) == ("T", b"x", "paid")
    assert list(message.keys) == ["o-17", "o-18"]
    assert message.properties == {"a": "1"}


@pytest.mark.parametrize(
    ("argument", "content", "more"),
    [
        ("topic", (7, b"x"), {}),
        ("topic", ("", b"x"), {}),
        ("topic", ("a b", b"x"), {}),
        ("topic", ("t" * 128, b"x"), {}),
        ("body", ("T", "text"), {}),
        ("body", ("T", b""), {}),
        ("tags", ("T", b"x"), {"tags": ""}),
        ("tags", ("T", b"x"), {"tags": 5}),
        ("tags", ("T", b"x"), {"tags": "a\x01b"}),
        ("keys", ("T", b"x"), {"keys": "o-17"}),
        ("keys", ("T", b"x"), {"keys": ["two words"]}),
        ("keys", ("T", b"x"), {"keys": [17]}),
        ("keys", ("T", b"x"), {"keys": 17}),
        ("keys", ("T", b"x"), {"keys": None}),
        ("keys", ("T", b"x"), {"keys": ""}),
        ("flag", ("T", b"x"), {"flag": "1"}),
        ("flag", ("T", b"x"), {"flag": 1.5}),
        ("flag", ("T", b"x"), {"flag": None}),
        ("flag", ("T", b"x"), {"flag": 1 << 31}),
        ("sharding_key", ("T", b"x"), {"sharding_key": " "}),
        ("properties", ("T", b"x"), {"properties": None}),
        ("properties", ("T", b"x"), {"properties": ["a"]}),
        ("properties['a']", ("T", b"x"), {"properties": {"a": ""}}),
        ("properties['a']", ("T", b"x"), {"properties": {"a": 1}}),
        ("properties['a\\x02']", ("T", b"x"), {"properties": {"a\x02": "1"}}),
        ("properties['UNIQ_KEY']", ("T", b"x"), {"properties": {"UNIQ_KEY": "1"}}),
        ("delay_level", ("T", b"x"), {"delay_level": 19}),
        ("delay_level", ("T", b"x"), {"delay_level": True}),
        ("delay_level", ("T", b"x"), {"delay_level": 1.5}),
        ("flag", ("T", b"x"), {"flag": False}),
        ("delay_s", ("T", b"x"), {"delay_s": -1}),
        ("delay_s", ("T", b"x"), {"delay_s": "1"}),
        ("delay_s", ("T", b"x"), {"delay_s": 1, "delay_level": 1}),
        ("deliver_at", ("T", b"x"), {"deliver_at": datetime(2026, 1, 1)}),  # noqa: DTZ001
        ("deliver_at", ("T", b"x"), {"deliver_at": 5}),
        ("deliver_at", ("T", b"x"), {"delay_s": 1.0, "deliver_at": datetime(2026, 1, 1, tzinfo=UTC)}),
    ],
)
def test_what_is_wrong_with_a_message_is_told_by_the_argument(
    argument: str, content: tuple[Any, Any], more: dict[str, Any]
) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        Message(*content, **more)
    assert refusal.value.argument == argument
    assert argument in str(refusal.value)


def test_an_error_shows_only_the_beginning_of_a_long_value() -> None:
    with pytest.raises(InvalidArgument) as refusal:
        Message("t" * 100_000, b"x")
    assert len(str(refusal.value)) < 1000
