from datetime import UTC, timedelta, timezone
from pathlib import Path

import pytest

from tanist.admin.resets.refused import ResetRefused
from tanist.admin.resets.targets import (
    AtKey,
    AtMessage,
    AtOffset,
    AtOffsets,
    AtTime,
    Earliest,
    Latest,
    LeaveLag,
    LikeGroup,
    LikePlan,
    Target,
    read_target,
)

NOW_MS = 1_700_000_000_000


def read(*texts: str) -> Target:
    return read_target(texts, now_ms=NOW_MS, zone=UTC)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("earliest", Earliest()),
        ("latest", Latest()),
        ("now", Latest()),
        ("1600000000123", AtTime(1_600_000_000_123)),
        ("2023-11-14T22:13:19Z", AtTime(NOW_MS - 1000)),
        ("2023-11-14 22:13:19", AtTime(NOW_MS - 1000)),
        ("2023-11-14#22:13:19:500", AtTime(NOW_MS - 500)),
        ("-2h", AtTime(NOW_MS - 7_200_000)),
        ("-1d30m", AtTime(NOW_MS - 88_200_000)),
        ("-250ms", AtTime(NOW_MS - 250)),
        ("lag=100", LeaveLag(100)),
        ("offset=7", AtOffset(7)),
        ("broker-a:3=9", AtOffsets({("broker-a", 3): 9})),
        ("group=other", LikeGroup("other")),
        ("message=7F00", AtMessage("7F00")),
        ("key=o-17=x", AtKey("o-17=x")),
        ("plan=old.json", LikePlan(Path("old.json"))),
    ],
)
def test_each_way_to_say_where_is_understood(text: str, target: Target) -> None:
    assert read(text) == target


def test_a_time_without_a_zone_is_the_operators() -> None:
    zone = timezone(timedelta(hours=2))
    assert read_target(["2023-11-15T00:13:19"], now_ms=NOW_MS, zone=zone) == AtTime(NOW_MS - 1000)


def test_each_queue_may_have_an_offset_of_its_own() -> None:
    assert read("a:0=1", "b:0=2") == AtOffsets({("a", 0): 1, ("b", 0): 2})


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["2024-01-01T00:00Z"], "in the future; use a time that is over"),
        (["1700000000001"], "in the future"),
        (["offset=-1"], "offset -1 can not be"),
        (["a:0=-5"], "offset -5 can not be"),
        (["offset=9223372036854775808"], "can not be"),
        (["offset=x"], "can not be"),
        (["lag=-1"], "lag -1 can not be"),
        (["-5"], "is negative"),
        (["soon"], "is no target; use earliest"),
        (["2023-13-99"], "is no target"),
        (["earliest", "latest"], "give one target"),
        (["a:0=1", "latest"], "give one target"),
        (["a:0=1", "a:0=2"], "named twice"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_way_out(texts: list[str], words: str) -> None:
    with pytest.raises(ResetRefused, match=words):
        read(*texts)


@pytest.mark.parametrize("target", ["{}", "-{}h", "-{}", "a:{}=1", "a:0={}", "offset={}", "lag={}"])
def test_a_number_that_is_longer_than_any_is_refused_in_few_words(target: str) -> None:
    with pytest.raises(ResetRefused) as refused:
        read(target.format("9" * 5000))
    assert len(str(refused.value)) < 400
