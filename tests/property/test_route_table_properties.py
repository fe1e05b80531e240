"""Whatever brokers do, in whatever order: the route table never contradicts itself."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tanist.model.data_version import DataVersion
from tanist.model.route import QueueData
from tanist.model.topics import TopicConfig
from tanist.nameserver.route_table import RouteTable
from tanist.protocol.bodies.registration import RegisterBrokerBody
from tanist.protocol.bodies.sync import TopicConfigTable
from tanist.protocol.headers.nameserver import BrokerIdentityRequest, RegisterBrokerRequest

NAMES = ("a", "b")
CLUSTERS = ("c", "d")
ADDRESSES = ("h:1", "h:2", "h:3")
TOPICS = ("T", "U")
CONNECTIONS = (1, 2)

places = st.fixed_dictionaries(
    {
        "broker_name": st.sampled_from(NAMES),
        "cluster_name": st.sampled_from(CLUSTERS),
        "broker_addr": st.sampled_from(ADDRESSES),
        "broker_id": st.integers(0, 2),
    }
)
registrations = st.tuples(
    st.just("register"),
    places,
    st.sampled_from([None, False, True]),
    st.sampled_from([None, 1_000]),
    st.integers(0, 2),
    st.sets(st.sampled_from(TOPICS)),
    st.sampled_from(CONNECTIONS),
    st.booleans(),
)
events = st.one_of(
    registrations,
    st.tuples(st.just("unregister"), places),
    st.tuples(st.just("lost"), st.sampled_from(CONNECTIONS)),
    st.tuples(st.just("tick"), st.floats(0, 200)),
    st.tuples(st.just("delete"), st.sampled_from(TOPICS), st.sampled_from([None, *CLUSTERS])),
    st.tuples(st.just("add topic"), st.sampled_from(TOPICS), st.sampled_from(NAMES)),
)


def happen(table: RouteTable, event: tuple[Any, ...], now_s: float) -> None:
    match event:
        case ("register", place, acting, lease_ms, epoch, topics, connection, is_complete):
            header = RegisterBrokerRequest(
                ha_server_addr="h:9", enable_acting_master=acting, heartbeat_timeout_ms=lease_ms, **place
            )
            configs = TopicConfigTable(
                data_version=DataVersion(state_version=epoch),
                topics={topic: TopicConfig(topic_name=topic) for topic in topics},
            )
            body = RegisterBrokerBody(topic_configs=configs)
            table.register(
                header, body, connection=connection, now_s=now_s, is_topic_list_complete=is_complete
            )
        case ("unregister", place):
            table.unregister(BrokerIdentityRequest(**place))
        case ("lost", connection):
            table.on_connection_lost(connection)
        case ("delete", topic, cluster):
            table.delete_topic(topic, cluster)
        case ("add topic", topic, name):
            queues = QueueData(broker_name=name, read_queue_count=1, write_queue_count=1, perm=6)
            table.register_topic(topic, [queues])
        case _:
            table.on_tick(now_s)


def check(table: RouteTable) -> None:
    placed = {replica.key: replica for group in table._groups.values() for replica in group.replicas.values()}
    assert placed == table._replicas
    for name, group in table._groups.items():
        assert group.replicas
        for broker_id, replica in group.replicas.items():
            assert (replica.broker_name, replica.broker_id) == (name, broker_id)
    for topic in TOPICS:
        found = table.route(topic, is_acting_master_shown=True)
        assert (found is not None) == (topic in table.topics.names)
        if found is not None:
            assert {queues.broker_name for queues in found.queue_datas} <= table._groups.keys()
            assert all(group.broker_addrs for group in found.broker_datas)


@given(st.lists(events, max_size=30))
def test_the_table_never_contradicts_itself(story: list[tuple[Any, ...]]) -> None:
    table, now_s = RouteTable(), 0.0
    for event in story:
        if event[0] == "tick":
            now_s += event[1]
        happen(table, event, now_s)
        check(table)
    for connection in CONNECTIONS:
        table.on_connection_lost(connection)
    assert (table._replicas, table._groups, table.topics.names) == ({}, {}, frozenset())
