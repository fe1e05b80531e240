from importlib import import_module
from pathlib import Path

import pytest

from tanist.spark.archive.catalogue import make_entries, merged_runs, read_catalogue
from tanist.spark.archive.records import Run
from tanist.spark.errors import SparkError
from tests.support.archives import archive_store, files_in
from tests.support.messages import TOPIC
from tests.support.spark_stores import fill_store


def run(first: int, end: int, *, queue_id: int = 0, at_ms: int = 0) -> Run:
    return Run(
        broker="a",
        queue_id=queue_id,
        first=first,
        end=end,
        bytes=10 * (end - first),
        first_stored_ms=at_ms,
        last_stored_ms=at_ms + 5,
    )


def test_a_gap_is_what_is_missing_between_the_ranges() -> None:
    (entry,) = make_entries([("t", run(10, 20)), ("t", run(0, 5)), ("t", run(20, 25))])

    assert (entry.ranges, entry.gaps) == ([(0, 5), (10, 25)], [(5, 10)])
    assert (entry.rows, entry.repeated, entry.bytes) == (20, 0, 200)


def test_what_is_there_twice_is_counted() -> None:
    (entry,) = make_entries([("t", run(0, 10)), ("t", run(8, 12))])

    assert (entry.ranges, entry.gaps, entry.repeated) == ([(0, 12)], [], 2)


def test_queues_and_topics_are_told_apart_and_times_are_the_first_and_the_last() -> None:
    entries = make_entries(
        [
            ("t", run(0, 1, at_ms=1000)),
            ("t", run(1, 2, at_ms=500)),
            ("t", run(0, 1, queue_id=1)),
            ("s", run(0, 1)),
        ]
    )

    assert [(entry.topic, entry.queue_id) for entry in entries] == [("s", 0), ("t", 0), ("t", 1)]
    assert entries[1].first_stored == "1970-01-01T00:00:00.500+00:00"
    assert entries[1].last_stored == "1970-01-01T00:00:01.005+00:00"


def test_runs_that_follow_each_other_become_one() -> None:
    assert merged_runs([run(5, 9), run(0, 5), run(9, 10, queue_id=1)]) == [
        Run(broker="a", queue_id=0, first=0, end=9, bytes=90, first_stored_ms=0, last_stored_ms=5),
        run(9, 10, queue_id=1),
    ]


def test_a_catalogue_is_made_from_what_the_files_say(tmp_path: Path) -> None:
    fill_store(tmp_path / "store")
    archive_store(tmp_path / "a", tmp_path / "store", broker="broker-a", batch_bytes=1)

    found = read_catalogue(tmp_path / "a")

    assert [
        (queue.topic, queue.broker, queue.queue_id, queue.ranges, queue.gaps) for queue in found.queues
    ] == [
        (TOPIC, "broker-a", 0, [(0, 20)], []),
        (TOPIC, "broker-a", 1, [(0, 20)], []),
        ("TopicB", "broker-a", 0, [(0, 10)], []),
        ("TopicB", "broker-a", 1, [(0, 10)], []),
    ]
    assert (found.rows, found.files) == (60, len(files_in(tmp_path / "a")))
    assert read_catalogue(tmp_path / "a", topics=["TopicB"]).rows == 20


def test_a_file_that_is_not_of_an_archive_is_named(tmp_path: Path) -> None:
    fill_store(tmp_path / "store", 3)
    archive_store(tmp_path / "a", tmp_path / "store")
    foreign = tmp_path / "a" / "data" / "topic=x" / "date=2026-11-18" / "x.parquet"
    foreign.parent.mkdir(parents=True)
    import_module("pyarrow.parquet").write_table(import_module("pyarrow").table({"a": [1]}), foreign)

    with pytest.raises(SparkError, match=r"x.parquet was not written by an archive"):
        read_catalogue(tmp_path / "a")
