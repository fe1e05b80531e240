"""What the console itself tells Prometheus: how fresh its look at the cluster is, and who answered. Pure."""

from collections.abc import Iterator

from prometheus_client import Metric

from tanist.console.watching.snapshot import Snapshot
from tanist.metrics import Sampler, names
from tanist.metrics.names import Process


def console_metrics(address: str, snapshot: Snapshot | None, *, now_ms: int) -> Iterator[Metric]:
    """Nothing of the cluster before the first look."""
    sampler = Sampler(Process.CONSOLE, address)
    if snapshot is not None:
        yield sampler.one(names.CONSOLE_LOOK_AGE, max(0, now_ms - snapshot.taken_ms) / 1000)
        yield sampler.one(names.CONSOLE_NAMESERVER_UP, int(snapshot.failure is None))
        yield sampler.one(names.CONSOLE_BROKERS, len(snapshot.brokers))
        yield sampler.one(names.CONSOLE_BROKERS_UP, sum(look.is_up for look in snapshot.brokers))
        yield sampler.one(names.CONSOLE_CALLS, snapshot.call_count)
    yield from sampler.end()
