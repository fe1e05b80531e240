"""Where topics live: queues, brokers and their addresses."""

import msgspec

from tanist.model.integers import Int32, Int64
from tanist.model.topics import READ, WRITE

MASTER_ID = 0
"""The broker id under which a master is known to clients."""


class MessageQueue(msgspec.Struct, frozen=True, kw_only=True, order=True, rename="camel"):
    """One queue. All three fields make its identity, and sort it as every client sorts."""

    topic: str
    broker_name: str
    queue_id: Int32


class QueueData(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What one broker offers of a topic."""

    broker_name: str
    read_queue_count: Int32 = msgspec.field(name="readQueueNums")
    write_queue_count: Int32 = msgspec.field(name="writeQueueNums")
    perm: Int32
    topic_sys_flag: Int32 = 0

    @property
    def is_readable(self) -> bool:
        return bool(self.perm & READ)

    @property
    def is_writable(self) -> bool:
        return bool(self.perm & WRITE)


class BrokerMemberGroup(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The replicas of one broker name that are alive: broker id to ``ip:port``."""

    cluster: str
    broker_name: str
    broker_addrs: dict[Int64, str] = {}


class BrokerData(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One replica group as clients see it. ``broker_addrs`` maps broker id to ``ip:port``."""

    cluster: str
    broker_name: str
    broker_addrs: dict[Int64, str]
    enable_acting_master: bool | None = None
    zone_name: str | None = None

    @property
    def master_addr(self) -> str | None:
        """The master's address, or None while there is no master."""
        return self.broker_addrs.get(MASTER_ID)


class TopicRouteData(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Everything a client needs to reach a topic.

    ``order_topic_conf`` reads ``broker:queues;broker:queues``.
    """

    queue_datas: list[QueueData] = []
    broker_datas: list[BrokerData] = []
    filter_server_table: dict[str, list[str]] = {}
    order_topic_conf: str | None = None


class ClusterInfo(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Every broker the name server knows, by name and by cluster."""

    broker_addr_table: dict[str, BrokerData] = {}
    cluster_addr_table: dict[str, frozenset[str]] = {}
