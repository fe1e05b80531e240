"""A cluster as a console sees it, made up: a master and its slave, with a topic and a group."""

from typing import Any

from msgspec.structs import replace

from tanist.console.watching.snapshot import BrokerLook, BrokerTables, Place, Snapshot
from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.integers import LogOffset64
from tanist.model.offsets import LogOffset, QueueOffset
from tanist.model.route import MessageQueue
from tanist.model.topics import TopicConfig
from tanist.protocol.bodies.replication import (
    ControlledView,
    EpochCache,
    EpochView,
    HAClientView,
    HAConnectionView,
    HARefusedView,
    HARuntimeInfo,
)
from tanist.protocol.bodies.slave_consume import SlaveConsumeLedger
from tanist.protocol.bodies.stats import BrokerConsumeStats, ConsumeStats, QueueConsumeStats
from tanist.protocol.java_json import ObjectKeyed
from tests.support.slave_consume_views import (
    GROUP,
    MASTER,
    SLAVE,
    following_slave,
    reading_slave,
    serving_master,
    switch_entry,
)

NOW_MS = 1_700_000_100_000
CLUSTER, TOPIC, CONSUMERS = "pairs", "OrderTopic", "billing"
LOG_END: LogOffset64 = LogOffset(5_000)
_RUNTIME = {
    "putTps": "12.5 3.0 1.0",
    "getTransferredTps": "7.0 3.0 1.0",
    "commitLogMaxOffset": "5000",
    "commitLogDiskRatio": "0.25",
    "bootTimestamp": "1699999000000",
    "brokerVersionDesc": "V5_3_3",
}


def consume_stats(*, behind: int = 10, consumed_ms: int = NOW_MS - 1_000) -> BrokerConsumeStats:
    """One group that has consumed up to 90 of one queue."""
    queue = MessageQueue(topic=TOPIC, broker_name=GROUP, queue_id=0)
    stats = QueueConsumeStats(
        broker_offset=QueueOffset(90 + behind), consumer_offset=QueueOffset(90), last_timestamp_ms=consumed_ms
    )
    table = ConsumeStats(offset_table=ObjectKeyed({queue: stats}), consume_tps=7.0)
    return BrokerConsumeStats(broker_addr=MASTER, consume_stats_list=[{CONSUMERS: [table]}])


def tables(**other: Any) -> BrokerTables:
    """The tables of the broker that has them; ``other`` is what differs, and so in the next."""
    known = BrokerTables(
        config={"brokerName": GROUP, "listenPort": "10911", "fileReservedTime": "12", "theirs": "1"},
        topics={
            TOPIC: TopicConfig(topic_name=TOPIC, read_queue_count=4, write_queue_count=4),
            "%RETRY%billing": TopicConfig(topic_name="%RETRY%billing", read_queue_count=1),
            "TBW102": TopicConfig(topic_name="TBW102"),
            GROUP: TopicConfig(topic_name=GROUP),
        },
        groups={CONSUMERS: SubscriptionGroupConfig(group_name=CONSUMERS)},
        consume=consume_stats(),
    )
    return replace(known, **other)


def master(**other: Any) -> BrokerLook:
    """A master whose slave is in step."""
    slave = HAConnectionView(
        addr="10.0.0.2:40112",
        acked_to=LogOffset(4_990),
        lag_bytes=10,
        is_in_sync=True,
        broker_id=1,
        lag_ms=3,
        counts=True,
    )
    known = BrokerLook(
        place=Place(address=MASTER, name=GROUP, broker_id=0, cluster=CLUSTER),
        runtime=_RUNTIME,
        ha=HARuntimeInfo(
            is_master=True,
            log_end=LOG_END,
            slaves=[slave],
            broker_name=GROUP,
            broker_id=0,
            role="SYNC_MASTER",
        ),
        slave_consume=serving_master(),
        tables=tables(),
    )
    return replace(known, **other)


def slave(**other: Any) -> BrokerLook:
    """A slave that follows."""
    known = BrokerLook(
        place=Place(address=SLAVE, name=GROUP, broker_id=1, cluster=CLUSTER),
        runtime=_RUNTIME,
        ha=HARuntimeInfo(
            is_master=False,
            broker_name=GROUP,
            broker_id=1,
            role="SLAVE",
            client=HAClientView(
                master_addr="10.0.0.1:10912", log_end=LogOffset(4_990), state="following", lag_bytes=10
            ),
        ),
        slave_consume=following_slave(),
        tables=BrokerTables(),
    )
    return replace(known, **other)


def snapshot(*brokers: BrokerLook, **other: Any) -> Snapshot:
    """A look that found these, or the pair when all is well."""
    known = Snapshot(taken_ms=NOW_MS, name_server="10.0.0.9:9876", brokers=brokers or (master(), slave()))
    return replace(known, **other)


def dead_master() -> Snapshot:
    """The master is gone, and the slave is read."""
    gone = master(failure="cannot connect: refused", runtime={})
    reading = slave(
        place=Place(address=SLAVE, name=GROUP, broker_id=0, cluster=CLUSTER),
        slave_consume=reading_slave(),
        tables=tables(ledger=SlaveConsumeLedger(entries=[switch_entry()])),
    )
    return snapshot(gone, reading)


def controlled(**other: Any) -> Snapshot:
    """After a switch by a controller: what was the slave reigns, and who was master is back and follows.

    ``other`` is what differs in what the master says of its reign.
    """
    reign = ControlledView(
        state="reigning",
        role="MASTER",
        replica_id=2,
        epoch=7,
        confirmed_to=LogOffset(4_960),
        sync_state_set=[2],
        lease_ms=2_400,
        reasons=["replica 1 is not in step"],
    )
    epochs = EpochCache(
        cluster_name=CLUSTER,
        broker_name=GROUP,
        broker_id=2,
        log_end=LOG_END,
        epochs=[
            EpochView(epoch=6, start=LogOffset(0), end=LogOffset(3_000)),
            EpochView(epoch=7, start=LogOffset(3_000)),
        ],
    )
    first, second = master(slave_consume=None), slave(slave_consume=None)
    assert first.ha is not None
    assert second.ha is not None
    follower = HAConnectionView(
        addr="10.0.0.1:40112",
        acked_to=LogOffset(4_960),
        lag_bytes=40,
        is_in_sync=False,
        broker_id=1,
        lag_ms=6_000,
        counts=False,
    )
    reigning = replace(
        first,
        place=replace(second.place, broker_id=0),
        ha=replace(
            first.ha,
            slaves=[follower],
            controlled=replace(reign, **other),
            refused=[
                HARefusedView(addr="10.6.6.6:1234", reason="it proved nothing", received="00ff", at_ms=NOW_MS)
            ],
            refused_counts={"proof": 3},
        ),
        tables=tables(epochs=epochs),
    )
    following = replace(
        second,
        place=replace(first.place, broker_id=1),
        ha=replace(
            second.ha,
            client=replace(second.ha.client, master_addr="10.0.0.2:10912"),
            controlled=replace(
                reign, state="following", role="SLAVE", replica_id=1, lease_ms=None, reasons=[]
            ),
        ),
    )
    return snapshot(following, reigning)
