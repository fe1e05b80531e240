"""Archives for tests, read as those read them who know nothing of us."""

from importlib import import_module
from pathlib import Path
from typing import Any

from tanist.spark.archive.folder import new_about, open_for_writing
from tanist.spark.archive.from_store import StoreSource
from tanist.spark.archive.job import ArchiveReport, archive
from tanist.spark.archive.records import STORE
from tests.support.messages import make_message, open_store


def archive_store(root: Path, store: Path, **given: Any) -> ArchiveReport:
    """Archive what a store has, without Spark."""
    topics = given.get("topics")
    with open_for_writing(root, new_about(STORE, topics=topics)) as folder:
        return archive(folder, StoreSource(str(store), **given))


def archive_in_steps(folder: Path, *, steps: int = 4, broker: str = "broker-a") -> Path:
    """An archive of a store that grew by ten messages before each step, so that it has many small files."""
    for step in range(steps):
        with open_store(folder / "store") as store:
            for number in range(10 * step, 10 * step + 10):
                store.append(make_message(number, topic=f"Topic{number // 2 % 2}", queue_id=number % 2))
            store.flush()
            store.dispatch()
        archive_store(folder / "a", folder / "store", broker=broker)
    return folder / "a"


def rows_in(root: Path) -> list[dict[str, Any]]:
    """All rows that Arrow finds below a folder, by topic, queue and offset."""
    dataset = import_module("pyarrow.dataset").dataset(str(root / "data"), partitioning="hive")
    rows = dataset.to_table().to_pylist()
    return sorted(rows, key=lambda row: (row["topic"], row["queueId"], row["queueOffset"]))


def places_in(root: Path) -> list[tuple[str, int, int]]:
    """Topic, queue and offset of all rows: the same place twice is a message twice."""
    return [(row["topic"], row["queueId"], row["queueOffset"]) for row in rows_in(root)]


def files_in(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root / "data")) for path in root.glob("data/**/*.parquet"))
