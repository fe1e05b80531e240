"""The names of all metrics: RocketMQ 5's where it has one, as its brokers really export them, else ours.

RocketMQ's page leaves the units out that its exporter adds: it says ``rocketmq_consumer_lag_latency``, and
its brokers export ``rocketmq_consumer_lag_latency_milliseconds``. The names are those on the wire.
"""

from dataclasses import dataclass
from enum import Enum

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

_SLAVE_LABELS = ("slave_id", "slave_address")
_GROUP_TOPIC = ("consumer_group", "topic")
_LAG_LABELS = (*_GROUP_TOPIC, "is_retry", "is_system")


class Process(Enum):
    """Who exports a metric. Its labels say whose figure it is, and are on every sample."""

    BROKER = "broker"
    NAME_SERVER = "nameserver"
    CONTROLLER = "controller"
    CONSOLE = "console"

    @property
    def labels(self) -> tuple[str, ...]:
        """The first three as in RocketMQ; and which replica of the group a broker is."""
        if self is Process.BROKER:
            return ("cluster", "node_type", "node_id", "broker_id")
        return ("node_type", "node_id")


@dataclass(frozen=True, slots=True)
class MetricName:
    """One metric: what it is called, what it says, and by which labels beside those of its process."""

    name: str
    meaning: str
    labels: tuple[str, ...] = ()
    is_counter: bool = False
    process: Process | None = Process.BROKER
    """None if all export it."""

    @property
    def exported_name(self) -> str:
        """What a query has to say: a counter ends in ``_total``."""
        return f"{self.name.removesuffix('_total')}_total" if self.is_counter else self.name

    def family(self, process: Process) -> CounterMetricFamily | GaugeMetricFamily:
        """An empty one, for samples of this process."""
        assert self.process in (None, process)
        labels = (*process.labels, *self.labels)
        if self.is_counter:
            return CounterMetricFamily(self.name, self.meaning, labels=labels)
        return GaugeMetricFamily(self.name, self.meaning, labels=labels)


# RocketMQ's

MESSAGES_IN = MetricName(
    "rocketmq_messages_in_total", "Messages that a topic has got.", ("topic", "is_system"), is_counter=True
)
MESSAGES_OUT = MetricName(
    "rocketmq_messages_out_total",
    "Messages that a group was given of a topic.",
    (*_GROUP_TOPIC, "is_system"),
    is_counter=True,
)
THROUGHPUT_IN = MetricName(
    "rocketmq_throughput_in_total",
    "Bytes of the log that a topic has got.",
    ("topic", "is_system"),
    is_counter=True,
)
THROUGHPUT_OUT = MetricName(
    "rocketmq_throughput_out_total",
    "Bytes of the log that a group was given of a topic.",
    (*_GROUP_TOPIC, "is_system"),
    is_counter=True,
)
SENT_TO_DLQ = MetricName(
    "rocketmq_send_to_dlq_messages_total",
    "Messages that a group gave up, which went to its dead letters.",
    ("consumer_group", "is_system"),
    is_counter=True,
)
HALF_MESSAGES = MetricName(
    "rocketmq_half_messages", "Transactions that nobody has committed or rolled back; of all topics."
)
COMMIT_MESSAGES = MetricName(
    "rocketmq_commit_messages_total", "Transactions of a topic that were committed.", ("topic",), True
)
ROLLBACK_MESSAGES = MetricName(
    "rocketmq_rollback_messages_total", "Transactions of a topic that were rolled back.", ("topic",), True
)
PRODUCER_CONNECTIONS = MetricName(
    "rocketmq_producer_connections", "Producers that are connected.", ("language", "version")
)
CONSUMER_CONNECTIONS = MetricName(
    "rocketmq_consumer_connections",
    "Consumers of a group that are connected.",
    ("consumer_group", "language", "version", "consume_mode", "is_system"),
)
CONSUMER_LAG_MESSAGES = MetricName(
    "rocketmq_consumer_lag_messages", "Messages of a topic that a group has not acknowledged.", _LAG_LABELS
)
CONSUMER_LAG_LATENCY = MetricName(
    "rocketmq_consumer_lag_latency_milliseconds",
    "How old the oldest message is that a group has not acknowledged; of those furthest behind.",
    _LAG_LABELS,
)
CONSUMER_INFLIGHT = MetricName(
    "rocketmq_consumer_inflight_messages",
    "Messages that members of a group have fetched and not acknowledged.",
    _LAG_LABELS,
)
CONSUMER_READY = MetricName(
    "rocketmq_consumer_ready_messages", "Messages that nobody of a group has fetched.", _LAG_LABELS
)
TOPIC_NUMBER = MetricName("rocketmq_topic_number", "Topics, the broker's own included.")
CONSUMER_GROUP_NUMBER = MetricName("rocketmq_consumer_group_number", "Consumer groups that have settings.")
BROKER_PERMISSION = MetricName(
    "rocketmq_broker_permission", "The setting brokerPermission: a sum of 4 (read) and 2 (write)."
)
STORAGE_SIZE = MetricName(
    "rocketmq_storage_size_bytes", "The length of the log that is kept.", ("storage_type", "storage_medium")
)
FLUSH_BEHIND = MetricName(
    "rocketmq_storage_flush_behind_bytes",
    "What of the log is not on disk yet.",
    ("storage_type", "storage_medium"),
)
DISPATCH_BEHIND = MetricName(
    "rocketmq_storage_dispatch_behind_bytes",
    "What of the log is in no queue yet.",
    ("storage_type", "storage_medium"),
)
MESSAGE_RESERVE_TIME = MetricName(
    "rocketmq_storage_message_reserve_time_milliseconds",
    "How old the oldest message is that is kept.",
    ("storage_type", "storage_medium"),
)
TIMER_ENQUEUE_LAG = MetricName(
    "rocketmq_timer_enqueue_lag",
    "Messages with a time that the timer has still to take in.",
    ("storage_type", "storage_medium"),
)
TIMER_ENQUEUE = MetricName(
    "rocketmq_timer_enqueue_total", "Messages with a time that the timer has taken in.", ("topic",), True
)
TIMER_DEQUEUE = MetricName(
    "rocketmq_timer_dequeue_total",
    "Messages with a time that the timer has given to their topic, or taken in anew if it is far off.",
    ("topic",),
    True,
)
TIMING_MESSAGES = MetricName(
    "rocketmq_timing_messages", "Messages with a time that wait for it in the timer; of all topics."
)

# Ours

BUILD = MetricName("tanist_build_info", "1, with the version of Tanist.", ("version",), process=None)
LEFT_OUT = MetricName(
    "tanist_metrics_left_out",
    "Series that are not told, because a metric has too many; those with the least values.",
    ("metric",),
    process=None,
)
UP_SINCE = MetricName("tanist_start_time_seconds", "Since when the broker serves, in seconds since 1970.")
LOG_END = MetricName("tanist_log_end_offset", "Where the log ends, in bytes.")
DAMAGED_PLACES = MetricName(
    "tanist_damaged_places", "Places of the log or of queues that are not as they were written; 20 at most."
)
SCRUBBED = MetricName(
    "tanist_scrubbed_bytes", "How much of the log was read again to find damage.", is_counter=True
)
DISK_USED = MetricName("tanist_disk_used_ratio", "How full the disk of the log is, from 0 to 1.")
SENDS_WAITING = MetricName("tanist_sends_waiting", "Sends that wait for the disk or for slaves.")
IS_MASTER = MetricName("tanist_is_master", "1 while this broker is a master.")
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
EPOCH = MetricName("tanist_ha_epoch", "Under a controller: the reign of the role that this broker has.")
SYNC_STATE_SET_SIZE = MetricName(
    "tanist_ha_sync_state_set_size", "Under a controller: replicas in step with this master, itself included."
)
CONFIRM_BEHIND = MetricName(
    "tanist_ha_confirm_behind_bytes", "Under a controller: what of the log not all replicas in step hold."
)
LEASE = MetricName(
    "tanist_ha_lease_milliseconds",
    "Under a controller: for how long this master may acknowledge alone; 0 if its lease is over.",
)
CONTROLLED_REASONS = MetricName(
    "tanist_ha_controlled_reasons", "Under a controller: how many things keep this broker from running well."
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
SLAVE_CONSUME_DELIVERED_TWICE = MetricName(
    "tanist_slave_consume_delivered_twice",
    "Messages that this broker has delivered to a group, and the one that was read before it too.",
    ("consumer_group",),
    is_counter=True,
)
SLAVE_CONSUME_EVENTS = MetricName(
    "tanist_slave_consume_events",
    "What this broker had a part in since its start, by the names of the ledger's entries.",
    ("event",),
    is_counter=True,
)

OFFSET_CORRECTIONS = MetricName(
    "tanist_offset_corrections", "Pulls for what their queue does not have.", is_counter=True
)
OFFSET_CORRECTION_LOOPS = MetricName(
    "tanist_offset_correction_loops",
    "Queues in which a consumer is corrected over and over and consumes nothing.",
    ("consumer_group", "topic"),
)
RESET_ORDERS = MetricName(
    "tanist_reset_orders", "Orders to move a group's offsets that this broker knows, by state.", ("state",)
)
RESET_RECEIPTS = MetricName(
    "tanist_reset_receipts", "Clients that were told of such orders, by what they have done.", ("state",)
)

NAMESERVER_BROKERS = MetricName(
    "tanist_nameserver_brokers", "Brokers that are registered.", process=Process.NAME_SERVER
)
NAMESERVER_GROUPS = MetricName(
    "tanist_nameserver_replica_groups", "Replica groups that are registered.", process=Process.NAME_SERVER
)
NAMESERVER_MASTERLESS = MetricName(
    "tanist_nameserver_replica_groups_without_master",
    "Those of them that have no master, and take no messages.",
    process=Process.NAME_SERVER,
)
NAMESERVER_TOPICS = MetricName(
    "tanist_nameserver_topics", "Topics that have a route.", process=Process.NAME_SERVER
)
NAMESERVER_CONNECTIONS = MetricName(
    "tanist_nameserver_connections", "Brokers and clients that are connected.", process=Process.NAME_SERVER
)

CONTROLLER_ROLE = MetricName("role", "3 while this controller leads, else 2.", process=Process.CONTROLLER)
CONTROLLER_ACTIVE = MetricName(
    "active_broker_num",
    "Replicas of a group that are alive.",
    ("cluster", "broker_set"),
    process=Process.CONTROLLER,
)
CONTROLLER_ELECTIONS = MetricName(
    "election_total",
    "Masters that this controller has elected since its start.",
    is_counter=True,
    process=Process.CONTROLLER,
)
CONTROLLER_GROUPS = MetricName(
    "tanist_controller_replica_groups",
    "Replica groups that the controller that leads knows.",
    process=Process.CONTROLLER,
)
CONTROLLER_MASTERLESS = MetricName(
    "tanist_controller_replica_groups_without_master",
    "Those of them that have no master.",
    process=Process.CONTROLLER,
)
CONTROLLER_EPOCH = MetricName(
    "tanist_controller_epoch",
    "The reign of a group's master: each election adds one.",
    ("broker_set",),
    process=Process.CONTROLLER,
)
CONTROLLER_CONNECTIONS = MetricName(
    "tanist_controller_connections",
    "Brokers and controllers that are connected.",
    process=Process.CONTROLLER,
)

WRITE_REPEATS = MetricName(
    "tanist_write_repeats",
    "Messages of writes that the log had already, and was sent again.",
    is_counter=True,
)
WRITE_MARKS = MetricName("tanist_write_marks", "Partitions of writes, by queue, that this broker knows of.")

CONSOLE_LOOK_AGE = MetricName(
    "tanist_console_look_age_seconds", "How old the last look at the cluster is.", process=Process.CONSOLE
)
CONSOLE_NAMESERVER_UP = MetricName(
    "tanist_console_nameserver_up", "1 if a name server answered the last look.", process=Process.CONSOLE
)
CONSOLE_BROKERS = MetricName(
    "tanist_console_brokers", "Brokers that the console knows.", process=Process.CONSOLE
)
CONSOLE_BROKERS_UP = MetricName(
    "tanist_console_brokers_up", "Those of them that answered the last look.", process=Process.CONSOLE
)
CONSOLE_CALLS = MetricName(
    "tanist_console_look_calls", "Questions that the last look asked of the cluster.", process=Process.CONSOLE
)

ALL = tuple(value for value in tuple(globals().values()) if isinstance(value, MetricName))
