"""The names of all metrics, RocketMQ 5's where it has one, and the way in which they are gathered.

Nothing is counted for them: figures that are there anyway are looked up when somebody asks.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

NODE_LABELS = ("cluster", "node_type", "node_id", "broker_id")
"""Whose figure it is: the first three as in RocketMQ, and which replica of the group."""
_SLAVE_LABELS = ("slave_id", "slave_address")


@dataclass(frozen=True, slots=True)
class MetricName:
    """One metric: what it is called, what it says, and by which labels beside those of the node."""

    name: str
    meaning: str
    labels: tuple[str, ...] = ()
    is_counter: bool = False

    def family(self) -> CounterMetricFamily | GaugeMetricFamily:
        """An empty one, for samples."""
        labels = (*NODE_LABELS, *self.labels)
        if self.is_counter:
            return CounterMetricFamily(self.name, self.meaning, labels=labels)
        return GaugeMetricFamily(self.name, self.meaning, labels=labels)


HA_SLAVES = MetricName("tanist_ha_slaves", "Slaves that are connected to this master.")
HA_IN_SYNC_SLAVES = MetricName("tanist_ha_in_sync_slaves", "Those of them that are not too far behind.")
HA_SLAVE_LAG_BYTES = MetricName(
    "tanist_ha_slave_lag_bytes", "What a slave has not acked of its master's log.", _SLAVE_LABELS
)
HA_SLAVE_LAG_MS = MetricName(
    "tanist_ha_slave_lag_milliseconds",
    "How old the oldest byte is that a slave has not acked.",
    _SLAVE_LABELS,
)
HA_SLAVE_ACKED = MetricName(
    "tanist_ha_slave_acked_offset", "Up to where a slave holds the log.", _SLAVE_LABELS
)
HA_SLAVE_RATE = MetricName(
    "tanist_ha_slave_bytes_per_second", "What was sent to a slave in the last second.", _SLAVE_LABELS
)
HA_SLAVE_SENT = MetricName(
    "tanist_ha_slave_sent_bytes", "All that was sent to a slave on its connection.", _SLAVE_LABELS, True
)
HA_REFUSED = MetricName(
    "tanist_ha_refused_peers", "Peers that were turned away from the port for slaves.", ("kind",), True
)
HA_FOLLOWING = MetricName("tanist_ha_following", "1 while this slave gets its master's log.")
HA_FOLLOWER_REFUSED = MetricName("tanist_ha_follower_refused", "1 while the master does not take this slave.")
HA_FOLLOWER_LAG_BYTES = MetricName(
    "tanist_ha_follower_lag_bytes", "What this slave lacks of the log that its master told of."
)
HA_FOLLOWER_RATE = MetricName(
    "tanist_ha_follower_bytes_per_second", "What came from the master in the last second."
)
SLAVE_CONSUME_PERMISSION = MetricName(
    "tanist_slave_consume_permission",
    "What this broker may do now: 4 be read, 2 be written, 6 both, 0 neither.",
)
SLAVE_CONSUME_TERM = MetricName(
    "tanist_slave_consume_term", "How many times slaves of the group have been read in their master's place."
)
SLAVE_CONSUME_ACTIVE = MetricName(
    "tanist_slave_consume_active", "1 while a slave of the group is read in its master's place."
)
SLAVE_CONSUME_GIVEN_UP = MetricName(
    "tanist_slave_consume_given_up", "1 while this master serves nobody until it is restored."
)

OFFSET_CORRECTIONS = MetricName(
    "tanist_offset_corrections", "Pulls for what their queue does not have.", is_counter=True
)
OFFSET_CORRECTION_LOOPS = MetricName(
    "tanist_offset_correction_loops",
    "Queues in which a consumer is corrected over and over and consumes nothing.",
    ("consumer_group", "topic"),
)


class OnDemand(Collector):
    """Looks figures up when they are asked for. Register it where metrics are served from."""

    def __init__(self, look: Callable[[], Iterable[Metric]]) -> None:
        self._look = look

    def collect(self) -> Iterable[Metric]:
        return self._look()
