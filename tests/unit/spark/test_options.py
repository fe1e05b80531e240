"""Options: known ones only, whatever their case, and each checked."""

import pytest

from tanist.spark.commitlog.options import FAILFAST, read_options
from tanist.spark.errors import BadOption, SparkError, UnknownName
from tanist.spark.wanted import Bounds, Wanted


def test_options_are_known_whatever_their_case() -> None:
    found = read_options({"path": "/s", "SUBSCRIBE": "A, B", "includeproperties": "True", "mode": "failfast"})

    assert (found.subscribe, found.include_properties, found.mode) == (("A", "B"), True, FAILFAST)


def test_ranges_are_what_is_wanted_and_their_ends_are_not_read() -> None:
    given = {
        "subscribe": "A",
        "queueIds": "1, 7",
        "startingQueueOffset": "2",
        "endingQueueOffset": "5",
        "startingLogOffset": "100",
        "endingTimestamp": "1000",
    }

    assert read_options({"path": "/s"} | given).wanted == Wanted(
        topics=frozenset(["A"]),
        queue_ids=frozenset([1, 7]),
        queue_offsets=Bounds(2, 4),
        log_offsets=Bounds(100, Bounds().most),
        store_ms=Bounds(Bounds().least, 999),
    )


def test_a_range_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(SparkError, match="startingTimestamp=2 is behind endingTimestamp=1: nothing lies"):
        read_options({"path": "/s", "startingTimestamp": "2", "endingTimestamp": "1"})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "option path=None is not allowed; use the folder"),
        ({"path": "/s", "minPartitions": "0"}, "use a whole number of 1 or more"),
        ({"path": "/s", "minPartitions": "many"}, "use a whole number of 1 or more"),
        ({"path": "/s", "includeProperties": "yes"}, "use true or false"),
        ({"path": "/s", "subscribe": "A,,B"}, "use names separated by commas"),
        ({"path": "/s", "queueIds": "1,b"}, "use numbers separated by commas"),
        ({"path": "/s", "startingLogOffset": "-1"}, "use a whole number of 0 or more"),
        ({"path": "/s", "mode": "DROPMALFORMED"}, "use PERMISSIVE or FAILFAST"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_with_what_does(given: dict[str, str], said: str) -> None:
    with pytest.raises(BadOption, match=said):
        read_options(given)


def test_an_unknown_option_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UnknownName, match="no option subscrib; did you mean subscribe"):
        read_options({"path": "/s", "subscrib": "A"})
