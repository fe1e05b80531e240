"""An archive as a Delta table, in a real Spark with Delta's own jars."""

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from tanist.cli.main import tanist
from tanist.sync import Message, Producer
from tanist.testing import EmbeddedBroker
from tests.support import partners
from tests.support.spark_job_checks import kept

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tanist.spark.archive.folder import Append, ArchiveFolder

pytestmark = [pytest.mark.partner("spark", "maven"), pytest.mark.timeout(600), pytest.mark.takes(25)]

Place = tuple[str, int, int]

TOPICS = ("Orders", "%odd")
BATCH_MESSAGES = 30


class Killed(Exception):
    """What ends a writer wherever it is raised: what it has done stays as it is."""


@pytest.fixture
def jars() -> str:
    from tests.support.delta import install  # noqa: PLC0415

    try:
        return install()
    except partners.PartnerMissing as lack:
        partners.do_without(lack)


@pytest.fixture
def session(jars: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator["SparkSession"]:
    from tanist.spark.archive.delta import SPARKS, delta_settings  # noqa: PLC0415 - it may not be installed.
    from tanist.spark.session import spark_session  # noqa: PLC0415
    from tests.support.spark_stream import SETTINGS  # noqa: PLC0415

    if not version("pyspark").startswith(SPARKS):
        pytest.skip(f"Delta is there for Spark {', '.join(SPARKS)}, and this is {version('pyspark')}")
    monkeypatch.chdir(tmp_path)
    leave_java()
    spark = spark_session("local[2]", settings=delta_settings({**SETTINGS, "spark.jars": jars}))
    yield spark
    spark.stop()
    leave_java()


def leave_java() -> None:
    """End the Java that all sessions of a process share: it is told of jars only as it starts."""
    from pyspark import SparkContext  # noqa: PLC0415 - it may not be installed.

    gateway: Any = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
        SparkContext._gateway = SparkContext._jvm = None


def opened(root: Path) -> "AbstractContextManager[ArchiveFolder]":
    from tanist.spark.archive.folder import new_about, open_for_writing  # noqa: PLC0415
    from tanist.spark.archive.records import CLUSTER, DELTA  # noqa: PLC0415

    return open_for_writing(root, new_about(CLUSTER, table_format=DELTA, clusters=["DefaultCluster"]))


def archive_all(root: Path, namesrv: str, *appends: "Append") -> int:
    """Archive what there is, with the last of these ways to append; how many messages that were."""
    from tanist.spark.archive.from_cluster import ClusterSource  # noqa: PLC0415
    from tanist.spark.archive.job import archive  # noqa: PLC0415

    source = ClusterSource(namesrv=namesrv, topics=TOPICS, batch_messages=BATCH_MESSAGES, until_now=True)
    with opened(root) as folder:
        for append in appends:
            folder.append_with(append)
        # Files are written here and not in Spark's workers, which have nothing to do with Delta.
        return archive(folder, source).rows


def test_a_delta_table_has_every_message_once_whenever_its_writer_was_killed(
    session: "SparkSession", tmp_path: Path
) -> None:
    from tanist.spark.archive.delta import appended_by  # noqa: PLC0415 - it may not be installed.
    from tanist.spark.archive.frames import read_archive  # noqa: PLC0415

    root, sent = tmp_path / "archive", list[Place]()

    def found() -> list[Place]:
        rows = read_archive(session, root).select("topic", "queueId", "queueOffset").collect()
        return sorted((row["topic"], row["queueId"], row["queueOffset"]) for row in rows)

    with EmbeddedBroker(topics=dict.fromkeys(TOPICS, 2)) as broker:
        with Producer(group="test", namesrv=broker.namesrv) as producer:
            for number in range(3 * BATCH_MESSAGES):
                topic = TOPICS[number % 3 == 0]
                placed = producer.send(Message(topic, f"message {number}".encode()))
                sent.append((topic, placed.queue.queue_id, placed.queue_offset))
        with opened(root), kept(session):
            # Who made it may have ended before there was a table.
            assert told("list", str(root))["rows"] == told("compact", str(root))["filesAfter"] == 0
            assert found() == []
            append = appended_by(session, root)

        def append_and_die(number: int, files: Mapping[Path, str]) -> None:
            append(number, files)
            if number == 1:
                raise Killed

        def die(_number: int, _files: Mapping[Path, str]) -> None:
            raise Killed

        with pytest.raises(Killed):
            archive_all(root, broker.namesrv, append_and_die)
        # Delta has two batches. The second is not yet followed up: whoever comes next gives it once more.
        with pytest.raises(Killed):
            archive_all(root, broker.namesrv, append, die)
        # Delta does not have the third, which counts.
        seen = found()
        assert len(seen) == len(set(seen)) == 2 * BATCH_MESSAGES
        assert archive_all(root, broker.namesrv, append) == 0

    with kept(session):
        listed, compacted = told("list", str(root)), told("compact", str(root))
        again = told("list", str(root))
    assert {(one["topic"], one["queueId"]): one["ranges"] for one in listed["queues"]} == {
        (topic, queue): [[0, sum(place[:2] == (topic, queue) for place in sent)]]
        for topic in TOPICS
        for queue in (0, 1)
    }
    assert compacted["filesBefore"] == listed["files"] > compacted["filesAfter"] == again["files"]
    assert [queue["rows"] for queue in again["queues"]] == [queue["rows"] for queue in listed["queues"]]
    assert found() == sorted(sent)


def told(*words: str) -> Any:
    given = ("--conf", "spark.jars=given-to-the-session", "--json")
    result = CliRunner().invoke(tanist, ["spark", "archive", *words, *given])
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout)
