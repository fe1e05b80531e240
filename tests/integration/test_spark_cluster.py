"""Jobs on a real cluster, a standalone master and two workers that have no Tanist but what they are given.

That is what ``spark-submit --py-files`` ships, or what a command of ``tanist spark`` ships itself.
"""

import json
import shutil
from pathlib import Path

import pytest

from tanist.sync import Message, Producer
from tests.support.attacked import wait_until
from tests.support.requests import TOPIC
from tests.support.tanist_group import GroupProcess

pytestmark = [pytest.mark.partner("spark"), pytest.mark.timeout(600), pytest.mark.takes(40)]

COUNT = 40
JOB = Path(__file__).parents[1] / "support" / "spark_cluster_job.py"


def test_archive_audit_and_a_read_with_a_failover_run_on_workers_that_have_only_what_was_shipped(
    tmp_path: Path,
) -> None:
    from tests.support.archives import rows_in  # noqa: PLC0415 - they need what may not be installed.
    from tests.support.spark_cluster import SparkCluster  # noqa: PLC0415
    from tests.support.spark_stores import fill_store  # noqa: PLC0415

    fill_store(tmp_path / "store")
    shutil.copytree(tmp_path / "store", tmp_path / "copy")
    with GroupProcess(tmp_path / "group") as group, SparkCluster(tmp_path) as cluster:
        with Producer(group="test", namesrv=group.names.address) as producer:
            for number in range(COUNT):
                producer.send(Message(TOPIC, b"%d " % number + b"x" * (256 << 10)))
        driver = cluster.submit(JOB, str(tmp_path), group.names.address, TOPIC)
        wait_until(lambda: (tmp_path / "begun").exists() or driver.poll() is not None, timeout_s=300)
        group.master().kill()
        (tmp_path / "killed").touch()
        assert driver.wait(timeout=300) == 0, cluster.said()[-5000:]
        archived = cluster.command(
            *("archive", "-n", group.names.address, "--topics", TOPIC),
            *("--to", str(tmp_path / "archive"), "--once", "--json"),
        )

    rows = rows_in(tmp_path / "archive")
    assert json.loads(archived)["rows"] == len(rows) == COUNT
    # Written by the first master, whoever told it.
    assert {row["epoch"] for row in rows} == {1}
    found = json.loads((tmp_path / "result.json").read_text())
    assert found["isEqual"]
    assert all("tanist.zip" in path for path in found["imported"])
    by_queue: dict[int, list[int]] = {}
    for queue_id, offset in found["rows"]:
        by_queue.setdefault(queue_id, []).append(offset)
    assert all(offsets == list(range(len(offsets))) for offsets in by_queue.values())
    assert len(found["rows"]) == COUNT
