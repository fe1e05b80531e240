"""Jobs in a real Spark, all in one session; beside test_spark.py, so that two workers share the time."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.partner("spark"), pytest.mark.timeout(600), pytest.mark.takes(60)]


def test_in_one_session(session: "SparkSession", tmp_path: Path, subtests: pytest.Subtests) -> None:
    from tests.support.spark_archive_checks import ARCHIVE_CHECKS  # noqa: PLC0415 - it may not be installed.
    from tests.support.spark_job_checks import JOB_CHECKS  # noqa: PLC0415
    from tests.support.spark_stores import fill_store  # noqa: PLC0415

    fill_store(tmp_path / "store")
    for check in (*ARCHIVE_CHECKS, *JOB_CHECKS):
        with subtests.test(check.__name__):
            check(session, tmp_path)
