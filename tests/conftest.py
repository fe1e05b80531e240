"""What every test may use: the partner marker and the partners as fixtures."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import partners
from tests.support.rocketmq import RocketMQ
from tests.support.zookeeper import Ensemble

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["tests.support.behaviours", "tests.support.order"]


def pytest_xdist_auto_num_workers() -> int:
    """Three a core: tests with partners wait for them more than they work."""
    return 3 * (os.cpu_count() or 1)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Look for a test's partners before its fixtures start anything."""
    for marker in item.iter_markers("partner"):
        partners.require(*marker.args)


@pytest.fixture(autouse=True)
def _heard_clients() -> Iterator[None]:
    """Commands that break clusters silence clients for the rest of their process, which here goes on."""
    clients = logging.getLogger("tanist.client")
    level = clients.level
    yield
    clients.setLevel(level)


@pytest.fixture
def rocketmq(tmp_path: Path) -> Iterator[RocketMQ]:
    """Apache RocketMQ for one test: its name server runs, brokers are the test's to start."""
    try:
        rocketmq = RocketMQ(tmp_path / "rocketmq")
    except partners.PartnerMissing as lack:
        partners.do_without(lack)
    with rocketmq:
        yield rocketmq


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    """One server of Apache ZooKeeper, for all tests of a worker."""
    try:
        ensemble = Ensemble(tmp_path_factory.mktemp("zookeeper"), size=1)
    except partners.PartnerMissing as lack:
        partners.do_without(lack)
    with ensemble:
        yield ensemble


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator["SparkSession"]:
    """A real Spark in this process, with two cores."""
    from tanist.spark.session import spark_session  # noqa: PLC0415 - it may not be installed.
    from tests.support.spark_stream import SETTINGS  # noqa: PLC0415

    monkeypatch.chdir(tmp_path)
    spark = spark_session("local[2]", settings=SETTINGS)
    yield spark
    spark.stop()
