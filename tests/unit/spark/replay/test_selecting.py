from datetime import UTC, datetime
from typing import Any

import pytest

from tanist.spark.errors import BadOption, SparkError
from tanist.spark.replay.selecting import PARTITIONS, Wanted, share_rate, want

START, END, NOW = (datetime(2026, 11, day, tzinfo=UTC) for day in (16, 17, 18))


def _want(**given: Any) -> Wanted:
    asked: dict[str, Any] = {
        "archive": "/a",
        "topic": "T",
        "start": START,
        "end": END,
        "to_topic": "U",
        "to_group": None,
        "replay_id": None,
        "now": NOW,
    }
    asked.update(given)
    return want(**asked)


def test_the_same_question_has_the_same_id() -> None:
    assert _want().replay_id == _want().replay_id
    assert (
        len({_want().replay_id, _want(to_topic="V").replay_id, _want(tags=frozenset({"a"})).replay_id}) == 3
    )
    assert _want(replay_id="mine").query == "replay-mine"


def test_a_group_gets_its_messages_through_its_retry_topic() -> None:
    assert _want(to_topic=None, to_group="billing").target == "%RETRY%billing"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"to_group": "g"}, "either to a topic or to a group"),
        ({"end": START}, "is empty"),
        ({"end": datetime(2026, 11, 19, tzinfo=UTC)}, "is not over"),
        ({"replay_id": "a/b"}, "letters, digits"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(SparkError, match=why):
        _want(**given)


def test_all_partitions_together_write_no_more_than_the_rate() -> None:
    assert share_rate(2000) * PARTITIONS == 2000
    assert share_rate(8) == 1
    with pytest.raises(BadOption, match="rate=7 is not allowed; use at least 8"):
        share_rate(7)
