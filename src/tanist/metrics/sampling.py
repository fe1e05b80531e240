"""Samples of figures, so many at most: what has labels of names that clients choose is bounded."""

from collections.abc import Callable, Iterable, Mapping
from heapq import nlargest

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.registry import Collector

from tanist import __version__
from tanist.metrics import names
from tanist.metrics.names import MetricName, Process

MAX_SERIES = 1000
"""Of one metric. The loop that serves clients makes them, so this bounds what a scrape costs those."""


class Sampler:
    """Makes the samples of one process for one scrape."""

    def __init__(self, process: Process, *node: str) -> None:
        """``node`` are the values of the labels that every sample of the process has, but for its type."""
        labels = iter(node)
        self._process = process
        self._node = tuple(
            process.value if label == "node_type" else next(labels) for label in process.labels
        )
        self._left_out: dict[tuple[str, ...], int] = {}

    def one(self, name: MetricName, figure: float | None, *labels: str) -> Metric:
        """One sample; none if the figure is not known."""
        family = name.family(self._process)
        if figure is not None:
            family.add_metric((*self._node, *labels), figure)
        return family

    def many(self, name: MetricName, figures: Mapping[tuple[str, ...], float]) -> Metric:
        """A sample for each value of the labels; the greatest if there are too many."""
        family = name.family(self._process)
        told: Iterable[tuple[tuple[str, ...], float]] = figures.items()
        if len(figures) > MAX_SERIES:
            self.leave_out(name, len(figures) - MAX_SERIES)
            told = nlargest(MAX_SERIES, told, key=lambda item: (item[1], item[0]))
        for labels, figure in told:
            family.add_metric((*self._node, *labels), figure)
        return family

    def leave_out(self, name: MetricName, count: int) -> None:
        """Note that so many series more are not told."""
        if count:
            self._left_out[name.exported_name,] = self._left_out.get((name.exported_name,), 0) + count

    def end(self) -> Iterable[Metric]:
        """What comes last: the version, and what was left out until now."""
        yield self.one(names.BUILD, 1, __version__)
        yield self.many(names.LEFT_OUT, self._left_out)


class OnDemand(Collector):
    """Looks figures up when they are asked for. Register it where metrics are served from."""

    def __init__(self, look: Callable[[], Iterable[Metric]]) -> None:
        self._look = look

    def collect(self) -> Iterable[Metric]:
        return self._look()


def together(*registries: CollectorRegistry) -> CollectorRegistry:
    """The metrics of several parts of one process, those of one name as one."""

    def look() -> Iterable[Metric]:
        families: dict[str, Metric] = {}
        for metric in (metric for registry in registries for metric in registry.collect()):
            if (known := families.setdefault(metric.name, metric)) is not metric:
                known.samples.extend(metric.samples)
        return families.values()

    whole = CollectorRegistry()
    whole.register(OnDemand(look))
    return whole
