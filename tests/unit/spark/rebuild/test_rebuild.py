"""Indexes that are built again from the log are those that dispatch built, byte for byte."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tanist.errors import StoreLocked
from tanist.model.topics import SCHEDULE_TOPIC
from tanist.spark.errors import SparkError
from tanist.spark.rebuild.job import rebuild
from tanist.spark.running import in_turn
from tanist.store import StoreSettings
from tests.support.messages import TOPIC, make_message, open_store

SETTINGS = StoreSettings(
    mapped_file_size_commit_log=16 << 10,
    mapped_file_size_consume_queue=20 * 20,
    max_hash_slot_num=50,
    max_index_num=40,
)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Three topics over several files of the log, of each queue and of the index; keys, tags, delays."""
    root = tmp_path / "store"
    with open_store(root, SETTINGS) as opened:
        for number in range(150):
            topic = (TOPIC, "TopicB", SCHEDULE_TOPIC)[number % 3]
            keys = " ".join(f"k{number}-{one}" for one in range(number % 5))
            opened.append(
                make_message(
                    number, topic=topic, queue_id=number % 2, body_bytes=300, keys=keys, tag="t", DELAY="3"
                )
            )
        opened.flush()
        opened.dispatch()
    return root


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def index_of(root: Path) -> list[bytes]:
    """What is in the index files, in order; their names tell only when they were begun."""
    return [content for _, content in sorted(files_of(root / "index").items())]


@pytest.mark.parametrize("shares", [1, 3])
def test_what_is_built_is_what_dispatch_built(store: Path, tmp_path: Path, shares: int) -> None:
    report = rebuild(str(store), str(tmp_path / "built"), settings=SETTINGS, shares=shares)

    built = files_of(tmp_path / "built" / "consumequeue")
    assert built == files_of(store / "consumequeue")
    assert len(built) > 6
    assert index_of(tmp_path / "built") == index_of(store)
    assert (report.record_count, report.queue_count, report.problems) == (150, 6, [])
    assert report.index_files > 3


@pytest.mark.parametrize("counts", [0, 1])
def test_a_task_that_is_done_twice_changes_nothing(store: Path, tmp_path: Path, counts: int) -> None:
    """It was done again, or it went on after it was given up: what counts is the second, or the first."""

    def twice(work: Callable[[Any], Any], parts: Sequence[Any], **_size: Any) -> list[Any]:
        return [[work(part), work(part)][counts] for part in parts]

    report = rebuild(str(store), str(tmp_path / "built"), settings=SETTINGS, shares=3, run=twice)

    assert files_of(tmp_path / "built" / "consumequeue") == files_of(store / "consumequeue")
    assert index_of(tmp_path / "built") == index_of(store)
    assert report.queue_count == 6


@pytest.mark.parametrize("kind", ["entries", "keys"])
def test_what_a_task_wrote_and_is_not_there_is_noticed(store: Path, tmp_path: Path, kind: str) -> None:
    def losing(work: Callable[[Any], Any], parts: Sequence[Any], **_size: Any) -> list[Any]:
        found = in_turn(work, parts)
        for path in (tmp_path / "built" / "staging").glob(f"*.{kind}"):
            path.write_bytes(b"")
        return found

    with pytest.raises(SparkError, match=rf"a task wrote \d+ bytes to .*\.{kind}, and it has 0; all workers"):
        rebuild(str(store), str(tmp_path / "built"), settings=SETTINGS, run=losing)


def test_a_store_gets_its_indexes_back_and_keeps_the_old_ones_beside_them(store: Path) -> None:
    wanted, index = files_of(store / "consumequeue"), index_of(store)
    broken = next(path for path in (store / "consumequeue").rglob("*") if path.is_file())
    broken.write_bytes(bytes(len(broken.read_bytes())))
    shutil.rmtree(store / "index")

    rebuild(str(store), settings=SETTINGS)

    assert files_of(store / "consumequeue") == wanted
    assert index_of(store) == index
    assert files_of(store / "consumequeue.before-rebuild") != wanted
    assert not (store / "rebuilt").exists()
    with open_store(store, SETTINGS) as opened:
        assert [key for key in opened.index.find(TOPIC, "k3-0", 0, 1 << 62) if key is not None]


def test_a_message_with_more_keys_than_a_file_has_room_for_is_found_by_the_first(tmp_path: Path) -> None:
    with open_store(tmp_path / "store", SETTINGS) as opened:
        for number, count in enumerate((3, 60, 38, 2)):
            keys = " ".join(f"k{number}-{one}" for one in range(count))
            opened.append(make_message(number, keys=keys))
        opened.dispatch()

    rebuild(str(tmp_path / "store"), str(tmp_path / "built"), settings=SETTINGS)

    assert index_of(tmp_path / "built") == index_of(tmp_path / "store")


def test_a_store_that_is_written_to_is_refused_and_so_is_a_folder_that_is_there(store: Path) -> None:
    with open_store(store, SETTINGS), pytest.raises(StoreLocked, match="stop the broker that uses"):
        rebuild(str(store), settings=SETTINGS)
    with pytest.raises(SparkError, match="is there already; name a folder that is not"):
        rebuild(str(store), str(store), settings=SETTINGS)
    with pytest.raises(SparkError, match="there is no such folder"):
        rebuild(str(store / "none"))
