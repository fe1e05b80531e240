"""The figures of replication as metrics. What is not known has no sample. Pure."""

from collections.abc import Iterator

from prometheus_client import Metric

from tanist.ha.follower import FollowerState
from tanist.metrics import Sampler, names
from tanist.protocol.bodies.replication import ControlledView, HARuntimeInfo


def ha_metrics(sampler: Sampler, status: HARuntimeInfo) -> Iterator[Metric]:
    """All metrics of a master, or all of a slave."""
    yield sampler.one(names.IS_MASTER, int(status.is_master))
    yield from _of_master(sampler, status) if status.is_master else _of_slave(sampler, status)
    if status.controlled is not None:
        yield from _controlled(sampler, status.controlled, status)


def _of_master(sampler: Sampler, status: HARuntimeInfo) -> Iterator[Metric]:
    yield sampler.one(names.HA_SLAVES, len(status.slaves))
    yield sampler.one(names.HA_IN_SYNC_SLAVES, status.in_sync_slave_count)
    for name, figures in (
        (names.HA_SLAVE_LAG_BYTES, [slave.lag_bytes for slave in status.slaves]),
        (names.HA_SLAVE_LAG_MS, [slave.lag_ms for slave in status.slaves]),
        (names.HA_SLAVE_ACKED, [slave.acked_to for slave in status.slaves]),
        (names.HA_SLAVE_RATE, [slave.bytes_per_second for slave in status.slaves]),
        (names.HA_SLAVE_SENT, [slave.sent_bytes for slave in status.slaves]),
    ):
        labels = [
            ("" if slave.broker_id is None else str(slave.broker_id), slave.addr) for slave in status.slaves
        ]
        known = zip(labels, figures, strict=True)
        yield sampler.many(name, {slave: figure for slave, figure in known if figure is not None})
    yield sampler.many(names.HA_REFUSED, {(kind,): count for kind, count in status.refused_counts.items()})


def _of_slave(sampler: Sampler, status: HARuntimeInfo) -> Iterator[Metric]:
    client = status.client
    yield sampler.one(names.HA_FOLLOWING, int(client.state == FollowerState.TRANSFER.value))
    yield sampler.one(names.HA_FOLLOWER_REFUSED, int(client.is_refused is True))
    yield sampler.one(names.HA_FOLLOWER_LAG_BYTES, client.lag_bytes)
    yield sampler.one(names.HA_FOLLOWER_RATE, client.bytes_per_second)


def _controlled(sampler: Sampler, view: ControlledView, status: HARuntimeInfo) -> Iterator[Metric]:
    yield sampler.one(names.EPOCH, view.epoch)
    yield sampler.one(names.CONTROLLED_REASONS, len(view.reasons))
    if status.is_master:
        yield sampler.one(names.SYNC_STATE_SET_SIZE, len(view.sync_state_set))
        yield sampler.one(names.CONFIRM_BEHIND, max(0, status.log_end - view.confirmed_to))
        yield sampler.one(names.LEASE, view.lease_ms)
