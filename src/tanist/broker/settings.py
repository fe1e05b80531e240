"""The broker's settings, under RocketMQ's names."""

import os
import socket
from enum import Enum
from pathlib import Path

import msgspec

from tanist.broker.names import check_topic_name
from tanist.coord.open import SqlitePlace, parse_place
from tanist.errors import ConfigError, ResponseError
from tanist.model.host import FAST_PORT_DISTANCE, MAX_PORT, host_and_port, is_address, is_host_and_port
from tanist.model.integers import INT32_MAX, INT64_MAX
from tanist.model.route import MASTER_ID
from tanist.model.topics import READ, TRACE_TOPIC, WRITE, Permission
from tanist.store.settings import LONGEST_INTERVAL_MS

HA_PORT_DISTANCE = 1
"""Slaves connect to the port above, unless ``haListenPort`` names another."""

_REGISTER_MS_RANGE = (10_000, 60_000)
"""RocketMQ holds the period to this as well: a name server forgets a broker after 120 s."""
_LEAST = {
    "default_topic_queue_nums": 1,
    "short_polling_time_mills": 1,
    "register_name_server_period": 1,
    "flush_consumer_offset_interval": 1,
    "flush_delay_offset_interval": 1,
    "timer_max_delay_sec": 1,
    "timer_precision_ms": 1,
    "timer_flush_interval_ms": 1,
    "transaction_time_out": 1,
    "transaction_check_interval": 1,
    "transaction_check_max": 1,
    "transaction_op_msg_max_size": 1,
    "transaction_op_batch_interval": 1,
    "max_transfer_bytes_on_message_in_memory": 1,
    "max_transfer_count_on_message_in_memory": 1,
    "max_topic_count": 1,
    "max_subscription_group_count": 1,
    "max_msgs_num_batch": 1,
    "default_query_max_num": 1,
    "controller_heart_beat_timeout_mills": 100,
    "broker_heartbeat_interval": 10,
    "sync_broker_metadata_period": 1,
    "sync_controller_metadata_period": 1,
    "check_sync_state_set_period": 1,
    "coordinator_timeout_millis": 500,
    "slave_consume_checks": 2,
    "broker_stand_in_mills": 0,
}
"""The least value of each number that is a count, a size or a time; the most is Java's greatest int."""
_INTERVALS = frozenset(
    {"flush_consumer_offset_interval", "flush_delay_offset_interval", "timer_flush_interval_ms"}
)
"""Of these the most is less than of the others."""
_LEAST_WATCHDOG_MS = 500
"""The broker gives a sign ten times a second, and shares its machine with others."""
_PRECISIONS_MS = (100, 200, 500, 1_000)
_ALL_PERMISSIONS = int(Permission.READ | Permission.WRITE | Permission.INHERIT)


class BrokerRole(Enum):
    """What this process is in its replica group."""

    ASYNC_MASTER = "ASYNC_MASTER"
    SYNC_MASTER = "SYNC_MASTER"
    SLAVE = "SLAVE"


UPDATABLE_KEYS = frozenset(
    {
        # The broker's.
        "autoCreateSubscriptionGroup",
        "autoCreateTopicEnable",
        "brokerPermission",
        "defaultQueryMaxNum",
        "enablePropertyFilter",
        "flushConsumerOffsetInterval",
        "flushDelayOffsetInterval",
        "longPollingEnable",
        "maxMsgsNumBatch",
        "maxSubscriptionGroupCount",
        "maxTopicCount",
        "maxTransferBytesOnMessageInMemory",
        "maxTransferCountOnMessageInMemory",
        "registerNameServerPeriod",
        "shortPollingTimeMills",
        "slaveReadEnable",
        "storeReplyMessageEnable",
        "timerFlushIntervalMs",
        "useServerSideResetOffset",
        "validateSystemTopicWhenUpdateTopic",
        # The store's.
        "accessMessageInMemoryMaxRatio",
        "cleanFileForciblyEnable",
        "cleanResourceInterval",
        "deleteFileBatchMax",
        "deleteWhen",
        "diskMaxUsedSpaceRatio",
        "diskSpaceCleanForciblyRatio",
        "diskSpaceWarningLevelRatio",
        "fileReservedTime",
        "flushCommitLogLeastPages",
        "flushCommitLogThoroughInterval",
        "flushIntervalCommitLog",
        "flushIntervalConsumeQueue",
        "syncFlushTimeout",
    }
)
"""What may be changed over the wire: what takes effect at once, and names neither a path nor an address.
Whoever could choose those from afar could make the process write any file (CVE-2023-33246)."""


class BrokerSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One broker. A wrong value stops the start.

    The ports are open to this machine alone unless ``bindAddress`` says otherwise; RocketMQ opens
    them to everybody.
    """

    broker_cluster_name: str = "DefaultCluster"
    """The cluster that the broker belongs to."""
    broker_name: str = msgspec.field(default_factory=socket.gethostname)
    """The replica group: a master and its slaves have the same. By default the machine's name."""
    broker_id: int = MASTER_ID
    """0 for a master, another number for each slave of its group."""
    broker_role: BrokerRole = BrokerRole.ASYNC_MASTER
    """``ASYNC_MASTER`` answers when it has a message, ``SYNC_MASTER`` when slaves hold it too, ``SLAVE``
    follows."""
    namesrv_addr: str = ""
    """Name servers, separated by semicolons."""
    enable_controller_mode: bool = False
    """Whether a controller says who is master; ``brokerRole`` and ``brokerId`` then follow from that."""
    controller_addr: str = ""
    """Controllers, separated by semicolons."""
    controller_heart_beat_timeout_mills: int = 3_000
    """After so long without a heartbeat the controller takes this broker for gone; as master it has stopped
    to acknowledge by then. RocketMQ's default is 10 s."""
    broker_heartbeat_interval: int = 500
    """To the controllers. RocketMQ's default is 1 s."""
    sync_broker_metadata_period: int = 5_000
    """How often the controller is asked who is master, beside being told."""
    sync_controller_metadata_period: int = 10_000
    """How often it is asked which controller leads."""
    check_sync_state_set_period: int = 5_000
    """Under a controller: how often a master looks who is in step, beside being told."""
    broker_election_priority: int = INT32_MAX
    """Of replicas that are equally good the one with the lowest number becomes master."""
    broker_watchdog_mills: int = 1_000
    """In controller mode or with a coordinator, after so long without a turn of its event loop the broker is
    killed by its parent process, and replaced; 0 for never. A key of ours."""
    coordinator: str = ""
    """Where it is kept who of a group with fixed roles is read: ``tanist://host:port`` of a controller, or
    ``zk://host:port,host:port/path``; empty: the slave is not read when its master is gone. A key of ours, as
    are the next three."""
    coordinator_timeout_millis: int = 4_000
    """After so long without a sign of this broker the coordinator takes it for gone."""
    slave_consume_checks: int = 3
    """How many checks in a row, a second apart, must have found the master gone before a slave is read."""
    broker_stand_in_mills: int = 35_000
    """So long the parent process of a master that died leads its clients to the slave that is read; 0 for
    never. Clients of RocketMQ ask where to go every 30 s."""
    store_path_broker_identity: str = ""
    """The file with the id that the controller gave; by default ``brokerIdentity`` in the store."""
    bind_address: str = "127.0.0.1"
    """Where the ports are open; RocketMQ opens them at all addresses."""
    listen_port: int = 10911
    """With 0 the system chooses one, and there is no second port: the one below it may be anybody's."""
    broker_ip1: str = msgspec.field(name="brokerIP1", default="127.0.0.1")
    """The address that clients are told."""
    store_path_root_dir: str = msgspec.field(default_factory=lambda: str(Path.home() / "store"))
    """The folder of the log, its indexes and the tables."""
    store_path_commit_log: str = ""
    """Where the log is, for files that say so: always in ``commitlog`` of ``storePathRootDir``."""
    broker_permission: int = int(Permission.READ | Permission.WRITE)
    """A sum of 4 (read) and 2 (write): what may be done with all topics here."""
    auto_create_topic_enable: bool = True
    """Whether the first message makes a topic."""
    auto_create_subscription_group: bool = True
    """Whether the first heartbeat makes a consumer group."""
    default_topic_queue_nums: int = 8
    """How many queues such a topic has at most."""
    validate_system_topic_when_update_topic: bool = True
    """Whether operators are kept from changing ``TBW102``, after which new topics are made, and the other
    system topics that clients may send to."""
    enable_property_filter: bool = True
    """Whether consumers may filter by SQL. RocketMQ's default is false; here it costs nothing unless used."""
    trace_topic_enable: bool = False
    """Whether the topic of message traces is there from the start, with one queue."""
    msg_trace_topic_name: str = TRACE_TOPIC
    """The topic for traces of messages."""
    store_reply_message_enable: bool = True
    """Whether the replies of request and reply are kept as well as pushed to who asked."""
    long_polling_enable: bool = True
    """Whether a pull that finds nothing waits for a message."""
    short_polling_time_mills: int = 1_000
    """How long a pull waits at most if ``longPollingEnable`` is false."""
    register_name_server_period: int = 30_000
    """How often the broker registers, in milliseconds; 10 s to 60 s count."""
    flush_consumer_offset_interval: int = 5_000
    """How often offsets of groups are saved, in milliseconds."""
    flush_delay_offset_interval: int = 10_000
    """How often it is saved how far delivery of delayed messages is, in milliseconds."""
    timer_wheel_enable: bool = True
    """Whether messages with a time of their own are taken."""
    timer_max_delay_sec: int = 3 * 86_400
    """The longest delay of a message with a time, in seconds."""
    timer_precision_ms: int = 1_000
    """How exactly such a message is delivered: 100, 200, 500 or 1000 ms."""
    timer_flush_interval_ms: int = 1_000
    """How often the timer is saved."""
    reject_transaction_message: bool = False
    """Whether transactions are refused."""
    transaction_time_out: int = 6_000
    """How old a half is when its producer is first asked, unless the message says otherwise."""
    transaction_check_interval: int = 30_000
    """How often a producer is asked what became of a transaction, in milliseconds."""
    transaction_check_max: int = 15
    """After so many questions a transaction is given up."""
    transaction_op_msg_max_size: int = 4_096
    """The longest note of ended transactions, in bytes."""
    transaction_op_batch_interval: int = 3_000
    """How often such notes are written, in milliseconds."""
    max_transfer_bytes_on_message_in_memory: int = 256 << 10
    """The most bytes that one pull is answered with."""
    max_transfer_count_on_message_in_memory: int = 32
    """The most messages that one pull is answered with."""
    slave_read_enable: bool = False
    """Whether consumers that are far behind are led to a slave."""
    use_server_side_reset_offset: bool = False
    """Whether clients are told of a reset by the answers to their pulls, and nothing is sent to them.
    RocketMQ 5.2's default is true; here clients are told at once, and ours say what they did."""
    reset_needs_approval: bool = False
    """Whether an order to move offsets waits until somebody else approves it. A key of ours."""
    config_black_list: str = "configBlackList;brokerConfigPath"
    """Keys that nobody may change over the wire, separated by semicolons."""
    max_topic_count: int = 100_000
    """So many topics there may be."""
    max_subscription_group_count: int = 100_000
    """So many there may be, for each is kept in memory and in a file. Retry topics count too."""
    max_msgs_num_batch: int = 64
    """How many messages a query by key gets at most."""
    default_query_max_num: int = 32
    """How many a query by unique id gets."""
    acl_enable: bool = False
    """Whether clients have to sign, and may do only what rules allow."""
    acl_config_path: str = ""
    """The file or folder of the access rules, in place of those in ``rocketmqHome``. A key of ours."""
    rocketmq_home: str = msgspec.field(default_factory=lambda: os.environ.get("ROCKETMQ_HOME", ""))
    """Whose ``conf`` folder holds the access rules. Nothing else is looked for there."""

    def __post_init__(self) -> None:
        self._check_role()
        lowest, highest = 1 + FAST_PORT_DISTANCE, MAX_PORT - HA_PORT_DISTANCE
        if self.listen_port and not lowest <= self.listen_port <= highest:
            raise ConfigError(
                "listenPort", self.listen_port, f"{lowest} to {highest}, or 0 for one that the system chooses"
            )
        for name in ("broker_name", "broker_cluster_name", "store_path_root_dir"):
            if not getattr(self, name):
                raise ConfigError(_KEYS[name], "", "something that is not empty")
        self._check_log_folder()
        self._check_addresses()
        if not 0 <= self.broker_permission <= _ALL_PERMISSIONS:
            raise ConfigError(
                "brokerPermission", self.broker_permission, "a sum of 4 (read), 2 (write) and 1 (inherit)"
            )
        if self.broker_watchdog_mills and not _LEAST_WATCHDOG_MS <= self.broker_watchdog_mills <= INT32_MAX:
            allowed = f"{_LEAST_WATCHDOG_MS} to {INT32_MAX}, or 0 for no watchdog"
            raise ConfigError("brokerWatchdogMills", self.broker_watchdog_mills, allowed)
        self._check_coordinator()
        self._check_trace_topic()
        for name, least in _LEAST.items():
            most = LONGEST_INTERVAL_MS if name in _INTERVALS else INT32_MAX
            if not least <= (value := getattr(self, name)) <= most:
                raise ConfigError(_KEYS[name], value, f"{least} to {most}")

    def _check_log_folder(self) -> None:
        """A file that names another place would have its data elsewhere than it says."""
        log = Path(self.store_path_root_dir) / "commitlog"
        if self.store_path_commit_log and Path(self.store_path_commit_log).resolve() != log.resolve():
            remedy = f"{log}, which is where storePathRootDir has the log, or a link from there"
            raise ConfigError("storePathCommitLog", self.store_path_commit_log, remedy)

    def _check_role(self) -> None:
        """A group has one master, which routes and clients know by its id."""
        if self.enable_controller_mode:
            # Whatever the config says, the controller gives both.
            return
        if self.is_slave and not MASTER_ID < self.broker_id <= INT64_MAX:
            raise ConfigError(
                "brokerId",
                self.broker_id,
                f"{MASTER_ID + 1} or more with brokerRole=SLAVE, another for each slave of a group",
            )
        if not self.is_slave and self.broker_id != MASTER_ID:
            remedy = f"{MASTER_ID} with brokerRole={self.broker_role.value}; only slaves have others"
            raise ConfigError("brokerId", self.broker_id, remedy)

    def _check_addresses(self) -> None:
        for name in ("bind_address", "broker_ip1"):
            if not is_address(value := getattr(self, name)):
                raise ConfigError(_KEYS[name], value, "an IP address, not a name")
        for key, servers in (("namesrvAddr", self.name_servers), ("controllerAddr", self.controllers)):
            for server in servers:
                if not is_host_and_port(server):
                    raise ConfigError(key, server, "host:port, several separated by semicolons")
        if self.enable_controller_mode and not self.controllers:
            raise ConfigError("controllerAddr", "", "host:port of a controller: enableControllerMode is true")

    def _check_coordinator(self) -> None:
        if not self.coordinator:
            return
        if self.enable_controller_mode:
            allowed = "nothing: with enableControllerMode=true the controller says who is master"
            raise ConfigError("coordinator", self.coordinator, allowed)
        if isinstance(parse_place(self.coordinator), SqlitePlace):
            # A file of its own: each broker of the group would ask another registry.
            allowed = "tanist://host:port of a controller, or zk://host:port,host:port/path"
            raise ConfigError("coordinator", self.coordinator, allowed)

    def _check_trace_topic(self) -> None:
        try:
            check_topic_name(self.msg_trace_topic_name)
        except ResponseError as refusal:
            raise ConfigError(
                "msgTraceTopicName", self.msg_trace_topic_name, f"a topic's name: {refusal.remark}"
            ) from refusal

    @property
    def name_servers(self) -> tuple[str, ...]:
        return _parts(self.namesrv_addr)

    @property
    def controllers(self) -> tuple[str, ...]:
        return _parts(self.controller_addr)

    @property
    def address(self) -> str:
        """What clients are told to connect to."""
        return host_and_port(self.broker_ip1, self.listen_port)

    @property
    def is_slave(self) -> bool:
        return self.broker_role is BrokerRole.SLAVE

    @property
    def locked_keys(self) -> frozenset[str]:
        """What nobody may change over the wire, whatever else may be."""
        return frozenset(_parts(self.config_black_list))

    @property
    def register_period_s(self) -> float:
        """How often the broker registers, within what a name server needs."""
        shortest, longest = _REGISTER_MS_RANGE
        return min(max(self.register_name_server_period, shortest), longest) / 1000

    @property
    def precision_ms(self) -> int:
        """How long a slot of the timer is: the setting, rounded down to what RocketMQ has."""
        fitting = [step for step in _PRECISIONS_MS if step <= self.timer_precision_ms]
        return fitting[-1] if fitting else _PRECISIONS_MS[0]

    @property
    def is_readable(self) -> bool:
        return bool(self.broker_permission & READ)

    @property
    def is_writable(self) -> bool:
        return bool(self.broker_permission & WRITE)


def _parts(text: str) -> tuple[str, ...]:
    """What semicolons separate."""
    return tuple(part for each in text.split(";") if (part := each.strip()))


_KEYS = {field.name: field.encode_name for field in msgspec.structs.fields(BrokerSettings)}
