"""What filters that Spark hands down come to."""

from datetime import UTC, datetime

import pytest

from tanist.spark.wanted import Bounds, Wanted

pytest.importorskip("pyspark")

from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, In, LessThanOrEqual

from tanist.spark.filters import narrowed


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (EqualTo(("topic",), "A"), Wanted(topics=frozenset(["A"]))),
        (In(("queueId",), (1, 7)), Wanted(queue_ids=frozenset([1, 7]))),
        (In(("queueOffset",), (9, 2, 5)), Wanted(queue_offsets=Bounds(2, 9))),
        (GreaterThan(("queueOffset",), 3), Wanted(queue_offsets=Bounds(4, Bounds().most))),
        (
            LessThanOrEqual(("storeTimestamp",), datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
            Wanted(store_us=Bounds(Bounds().least, 1_000_000)),
        ),
        (EqualTo(("properties", "topic"), "A"), Wanted()),
        (EqualTo(("tags",), "A"), Wanted()),
    ],
)
def test_a_filter_narrows_what_is_wanted_or_changes_nothing(one: Filter, expected: Wanted) -> None:
    assert narrowed(Wanted(), [one]) == expected
