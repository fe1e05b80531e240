"""The figures of writes that are made once, as metrics."""

from collections.abc import Iterator

from prometheus_client import Metric

from tanist.broker.state import BrokerState
from tanist.metrics import Sampler, names


def write_metrics(sampler: Sampler, state: BrokerState) -> Iterator[Metric]:
    """How much was refused as a repeat, and of how much the broker keeps track."""
    yield sampler.one(names.WRITE_REPEATS, state.writes.repeat_count)
    yield sampler.one(names.WRITE_MARKS, len(state.writes.marks))
