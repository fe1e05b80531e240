"""An archive that is killed five times in a row is exact for readers that know nothing of us."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tanist.sync import Message, Producer
from tanist.testing import EmbeddedBroker

pytestmark = [pytest.mark.partner("arrow"), pytest.mark.takes(12)]

Place = tuple[str, int, int]


def places_by_duckdb(root: Path) -> list[Place]:
    files = f"{root}/data/**/*.parquet"
    if not list(root.glob("data/**/*.parquet")):
        return []
    found = f"read_parquet('{files}', hive_partitioning = true)"
    sql = f"SELECT topic, queueId, queueOffset FROM {found} ORDER BY ALL"
    return import_module("duckdb").sql(sql).fetchall()


def places_by_arrow(root: Path) -> list[Place]:
    dataset: Any = import_module("pyarrow.dataset").dataset(str(root / "data"), partitioning="hive")
    if not dataset.files:
        return []
    columns = dataset.to_table(["topic", "queueId", "queueOffset"]).to_pylist()
    return sorted((row["topic"], row["queueId"], row["queueOffset"]) for row in columns)


def run(namesrv: str, root: Path, rename: int) -> int:
    command = [sys.executable, "-m", "tests.support.archive_process", namesrv, str(root), str(rename)]
    return subprocess.run(command, timeout=120, check=False, cwd=Path(__file__).parents[2]).returncode


def test_five_kills_in_a_row_lose_and_repeat_nothing(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    sent: list[Place] = []
    with EmbeddedBroker(topics={"Orders": 2, "Orders%odd": 1}) as broker:
        with Producer(group="test", namesrv=broker.namesrv) as producer:
            for number in range(240):
                topic = "Orders" if number % 3 else "Orders%odd"
                placed = producer.send(Message(topic, f"message {number}".encode()))
                sent.append((topic, placed.queue.queue_id, placed.queue_offset))
        seen = 0
        # Before the record of a batch, before the first of its files, between them, and in later batches.
        for rename in (1, 2, 3, 6, 5):
            assert run(broker.namesrv, root, rename) == -9
            found = places_by_duckdb(root)
            assert len(found) == len(set(found))
            assert set(found) <= set(sent)
            assert len(found) >= seen
            assert found == places_by_arrow(root)
            seen = len(found)

        assert 0 < seen < len(sent)
        assert run(broker.namesrv, root, 0) == 0

    assert places_by_duckdb(root) == places_by_arrow(root) == sorted(sent)
