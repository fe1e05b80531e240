"""What several tests beside real processes start."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator["SparkSession"]:
    from tanist.spark.session import spark_session  # noqa: PLC0415 - it may not be installed.
    from tests.support.spark_stream import SETTINGS  # noqa: PLC0415

    monkeypatch.chdir(tmp_path)
    spark = spark_session("local[2]", settings=SETTINGS)
    yield spark
    spark.stop()
