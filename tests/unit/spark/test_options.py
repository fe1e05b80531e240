"""Options: known ones only, whatever their case, and each checked."""

import pytest

from tanist.spark.commitlog.options import FAILFAST, read_options
from tanist.spark.errors import BadOption, UnknownName


def test_options_are_known_whatever_their_case() -> None:
    found = read_options({"path": "/s", "SUBSCRIBE": "A, B", "includeproperties": "True", "mode": "failfast"})

    assert (found.subscribe, found.include_properties, found.mode) == (("A", "B"), True, FAILFAST)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "option path=None is not allowed; use the folder"),
        ({"path": "/s", "minPartitions": "0"}, "use a whole number of 1 or more"),
        ({"path": "/s", "minPartitions": "many"}, "use a whole number of 1 or more"),
        ({"path": "/s", "includeProperties": "yes"}, "use true or false"),
        ({"path": "/s", "subscribe": "A,,B"}, "use names separated by commas"),
        ({"path": "/s", "mode": "DROPMALFORMED"}, "use PERMISSIVE or FAILFAST"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_with_what_does(given: dict[str, str], said: str) -> None:
    with pytest.raises(BadOption, match=said):
        read_options(given)


def test_an_unknown_option_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UnknownName, match="no option subscrib; did you mean subscribe"):
        read_options({"path": "/s", "subscrib": "A"})
