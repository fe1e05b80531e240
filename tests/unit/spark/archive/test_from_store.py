import hashlib
import shutil
from pathlib import Path

import pytest

from tanist.spark.archive.folder import new_about, open_for_writing
from tanist.spark.archive.from_store import StoreSource
from tanist.spark.archive.job import archive
from tanist.spark.archive.records import STORE
from tanist.spark.errors import SparkError
from tests.support.archives import archive_store, files_in, places_in, rows_in
from tests.support.messages import TOPIC, make_message, open_store
from tests.support.spark_stores import fill_store


def test_every_message_of_a_store_is_archived_once(tmp_path: Path) -> None:
    fill_store(tmp_path / "store")

    report = archive_store(tmp_path / "a", tmp_path / "store", broker="broker-a")

    rows = rows_in(tmp_path / "a")
    assert report.rows == len(rows) == 60
    assert sorted({(row["topic"], row["date"]) for row in rows}) == [
        (TOPIC, "2023-11-14"),
        ("TopicB", "2023-11-14"),
    ]
    assert {row["brokerName"] for row in rows} == {"broker-a"}
    assert all(row["hash"] == hashlib.sha256(row["body"]).digest() for row in rows)
    assert dict(rows[0]["properties"])["UNIQ_KEY"] == rows[0]["msgId"]


def test_it_goes_on_where_it_was_and_many_batches_hold_what_one_does(tmp_path: Path) -> None:
    fill_store(tmp_path / "store", 40)
    archive_store(tmp_path / "a", tmp_path / "store")
    with open_store(tmp_path / "store") as store:
        for number in range(40, 60):
            store.append(make_message(number, queue_id=number % 2))
        store.flush()
        store.dispatch()

    report = archive_store(tmp_path / "a", tmp_path / "store")

    assert report.rows == 20
    assert archive_store(tmp_path / "a", tmp_path / "store").batches == 0
    archive_store(tmp_path / "b", tmp_path / "store", batch_bytes=1)
    assert places_in(tmp_path / "a") == places_in(tmp_path / "b")
    assert len(set(places_in(tmp_path / "a"))) == 60


def test_only_the_topics_that_are_named_are_taken_and_they_stay_the_same(tmp_path: Path) -> None:
    fill_store(tmp_path / "store")

    assert archive_store(tmp_path / "a", tmp_path / "store", topics=["TopicB"]).rows == 20
    assert {row["topic"] for row in rows_in(tmp_path / "a")} == {"TopicB"}
    with pytest.raises(SparkError, match="has topics TopicB, and all is asked for"):
        archive_store(tmp_path / "a", tmp_path / "store")
    with pytest.raises(SparkError, match=r"there is no topic TopicC in .*; there is TopicA, TopicB"):
        archive_store(tmp_path / "b", tmp_path / "store", topics=["TopicC"])


def test_another_store_is_not_taken_for_the_same(tmp_path: Path) -> None:
    fill_store(tmp_path / "store")
    fill_store(tmp_path / "longer", 80, body_bytes=90)
    fill_store(tmp_path / "shorter", 10)
    archive_store(tmp_path / "a", tmp_path / "store")

    with pytest.raises(SparkError, match="is not the one that was archived as broker"):
        archive_store(tmp_path / "a", tmp_path / "longer")
    with pytest.raises(SparkError, match="it is another, or was cut; name its broker"):
        archive_store(tmp_path / "a", tmp_path / "shorter")
    assert archive_store(tmp_path / "a", tmp_path / "longer", broker="broker-b").rows == 80


def test_a_log_that_is_cut_and_grows_otherwise_is_noticed_while_the_archive_runs(tmp_path: Path) -> None:
    """A slave does that which follows another master."""
    fill_store(tmp_path / "store")
    fill_store(tmp_path / "other", 80, body_bytes=90)

    def cut(_is_idle: bool) -> bool:
        shutil.rmtree(tmp_path / "store")
        (tmp_path / "other").rename(tmp_path / "store")
        return True

    with (
        open_for_writing(tmp_path / "a", new_about(STORE)) as folder,
        pytest.raises(SparkError, match="is not the one that was archived as broker"),
    ):
        archive(folder, StoreSource(str(tmp_path / "store")), pause=cut)
    assert len(rows_in(tmp_path / "a")) == 60


def test_what_is_broken_is_told_and_not_archived(tmp_path: Path) -> None:
    fill_store(tmp_path / "store")
    log = tmp_path / "store" / "commitlog" / ("0" * 20)
    data = bytearray(log.read_bytes())
    data[95] ^= 1
    log.write_bytes(data)

    report = archive_store(tmp_path / "a", tmp_path / "store")

    assert [(place.log_offset, place.reason) for place in report.broken] == [
        (0, "the body does not match its checksum")
    ]
    assert report.rows == 59


def test_files_are_called_the_same_whenever_the_same_is_archived(tmp_path: Path) -> None:
    fill_store(tmp_path / "store")
    archive_store(tmp_path / "a", tmp_path / "store")
    archive_store(tmp_path / "b", tmp_path / "store")

    assert files_in(tmp_path / "a") == files_in(tmp_path / "b")
