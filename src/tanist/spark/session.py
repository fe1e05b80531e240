"""A Spark session that fits the data sources: Java found, loopback only, times in UTC."""

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tanist.spark import register
from tanist.spark.errors import NotInstalled
from tanist.spark.java import find_java
from tanist.spark.shipping import shipped_package

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOPBACK = "127.0.0.1"

SETTINGS: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.ui.showConsoleProgress": "false",
}


def spark_session(
    master: str = "local[*]", *, app_name: str = "tanist", settings: Mapping[str, str] | None = None
) -> "SparkSession":
    """A session that knows the formats. ``settings`` are Spark's own and win over ours.

    Workers of a cluster are given this package, so that they need not have it, nor the same version of it.

    Raises NoJava or NotInstalled before anything is started.
    """
    check_installed()
    # The Python workers are other processes: they have to be of the Python that has this package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["JAVA_HOME"] = find_java().home
    chosen = dict(SETTINGS)
    if master.startswith("local"):
        # Spark would listen on the first address that is not loopback.
        os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
        chosen |= {"spark.driver.host": _LOOPBACK, "spark.driver.bindAddress": _LOOPBACK}
    from pyspark.sql import SparkSession  # noqa: PLC0415 - it may not be installed.

    builder = SparkSession.Builder().master(master).appName(app_name)
    for key, value in (chosen | dict(settings or {})).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    if not master.startswith("local"):
        # Before the formats are registered: they go to workers together with what they import.
        session.sparkContext.addPyFile(shipped_package())
    register(session)
    return session


def check_installed() -> None:
    """Raise NotInstalled if a package is missing without which nothing of this runs."""
    for package in ("pyspark", "pyarrow"):
        if find_spec(package) is None:
            raise NotInstalled(package)
