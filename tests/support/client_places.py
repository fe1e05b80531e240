"""Brokers of both kinds for tests of the Python clients: Tanist's, and one of Apache RocketMQ."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import partners
from tests.support.rocketmq.cluster import RocketMQ
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess

KINDS = ["tanist", "rocketmq"]


@dataclass(frozen=True)
class Place:
    """One broker with its name server."""

    namesrv: str
    address: str
    broker_name: str


@contextmanager
def broker_of(kind: str, directory: Path, **settings: Any) -> Generator[Place]:
    """Run a broker of this kind. ``settings`` have the same names in both."""
    if kind == "tanist":
        with (
            NameServerProcess(directory / "ns") as names,
            BrokerProcess(directory / "broker", names.address, **settings) as broker,
        ):
            yield Place(names.address, broker.address, broker.name)
        assert "Traceback" not in broker.process.output()
        return
    try:
        cluster = RocketMQ(directory)
    except partners.PartnerMissing as lack:
        partners.do_without(lack)
    with cluster:
        started = cluster.start_broker(properties=settings)
        yield Place(cluster.name_server, started.address, started.name)
