"""The figures of replication as metrics. What is not known has no sample. Pure."""

from collections.abc import Iterator

from prometheus_client import Metric

from tanist import metrics
from tanist.ha.follower import FollowerState
from tanist.metrics import MetricName
from tanist.protocol.bodies.replication import HARuntimeInfo


def ha_metrics(status: HARuntimeInfo, *, cluster: str) -> Iterator[Metric]:
    """All metrics of a master, or all of a slave."""
    node = (cluster, "broker", status.broker_name or "", str(status.broker_id))
    return _of_master(status, node) if status.is_master else _of_slave(status, node)


def _of_master(status: HARuntimeInfo, node: tuple[str, ...]) -> Iterator[Metric]:
    yield _one(metrics.HA_SLAVES, node, len(status.slaves))
    yield _one(metrics.HA_IN_SYNC_SLAVES, node, status.in_sync_slave_count)
    for name, figures in (
        (metrics.HA_SLAVE_LAG_BYTES, [slave.lag_bytes for slave in status.slaves]),
        (metrics.HA_SLAVE_LAG_MS, [slave.lag_ms for slave in status.slaves]),
        (metrics.HA_SLAVE_ACKED, [slave.acked_to for slave in status.slaves]),
        (metrics.HA_SLAVE_RATE, [slave.bytes_per_second for slave in status.slaves]),
        (metrics.HA_SLAVE_SENT, [slave.sent_bytes for slave in status.slaves]),
    ):
        family = name.family()
        for slave, figure in zip(status.slaves, figures, strict=True):
            if figure is not None:
                slave_id = "" if slave.broker_id is None else str(slave.broker_id)
                family.add_metric([*node, slave_id, slave.addr], figure)
        yield family
    refused = metrics.HA_REFUSED.family()
    for kind, count in status.refused_counts.items():
        refused.add_metric([*node, kind], count)
    yield refused


def _of_slave(status: HARuntimeInfo, node: tuple[str, ...]) -> Iterator[Metric]:
    client = status.client
    yield _one(metrics.HA_FOLLOWING, node, int(client.state == FollowerState.TRANSFER.value))
    yield _one(metrics.HA_FOLLOWER_REFUSED, node, int(client.is_refused is True))
    yield _one(metrics.HA_FOLLOWER_LAG_BYTES, node, client.lag_bytes)
    yield _one(metrics.HA_FOLLOWER_RATE, node, client.bytes_per_second)


def _one(name: MetricName, node: tuple[str, ...], figure: int | None) -> Metric:
    family = name.family()
    if figure is not None:
        family.add_metric(node, figure)
    return family
