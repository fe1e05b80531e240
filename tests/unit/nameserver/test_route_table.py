"""The route table: who is known, until when, and what is told about it."""

import msgspec
import pytest

from tanist.model.data_version import DataVersion
from tanist.model.route import ClusterInfo, QueueData
from tanist.model.topics import TopicConfig
from tanist.nameserver.replica_group import CloseConnection, NotifyMinBrokerId
from tanist.nameserver.route_table import DEFAULT_LEASE_S, RouteTable, TopicRoute
from tanist.protocol.bodies.registration import RegisterBrokerBody
from tanist.protocol.bodies.sync import TopicConfigTable
from tanist.protocol.headers.nameserver import (
    BrokerIdentityRequest,
    RegisterBrokerRequest,
    RegisterBrokerResponse,
)

MASTER = RegisterBrokerRequest(
    broker_name="a",
    broker_addr="10.0.0.1:10911",
    cluster_name="c",
    ha_server_addr="10.0.0.1:10912",
    broker_id=0,
)
SLAVE = RegisterBrokerRequest(
    broker_name="a",
    broker_addr="10.0.0.2:10911",
    cluster_name="c",
    ha_server_addr="10.0.0.2:10912",
    broker_id=1,
)
V1 = DataVersion(counter=1, timestamp_ms=100)
V2 = DataVersion(counter=2, timestamp_ms=200)
NOW_S = 50.0


def body(*topics: str, version: DataVersion = V1, perm: int = 6) -> RegisterBrokerBody:
    configs = {
        topic: TopicConfig(topic_name=topic, read_queue_count=4, write_queue_count=4, perm=perm)
        for topic in topics
    }
    return RegisterBrokerBody(topic_configs=TopicConfigTable(data_version=version, topics=configs))


def acting(header: RegisterBrokerRequest) -> RegisterBrokerRequest:
    return msgspec.structs.replace(header, enable_acting_master=True)


def identity(header: RegisterBrokerRequest) -> BrokerIdentityRequest:
    return BrokerIdentityRequest(
        broker_name=header.broker_name,
        broker_addr=header.broker_addr,
        cluster_name=header.cluster_name,
        broker_id=header.broker_id,
    )


@pytest.fixture
def table() -> RouteTable:
    return RouteTable()


def enter(
    table: RouteTable, header: RegisterBrokerRequest, content: RegisterBrokerBody | None = None
) -> RegisterBrokerResponse:
    """Register over a connection that is named after the address, and expect nothing to be told."""
    content = content or body("T", "U")
    answer, actions = table.register(header, content, connection=header.broker_addr, now_s=NOW_S)
    assert actions == []
    return answer


def route_of(table: RouteTable, topic: str = "T") -> TopicRoute:
    found = table.route(topic)
    assert found is not None
    return found


def addresses(table: RouteTable, *, is_acting_master_shown: bool = False) -> dict[int, str]:
    found = table.route("T", is_acting_master_shown=is_acting_master_shown)
    assert found is not None
    return found.broker_datas[0].broker_addrs


def perms(table: RouteTable) -> list[int]:
    return [queues.perm for queues in route_of(table).queue_datas]


# Registering.


def test_a_registered_topic_has_a_route(table: RouteTable) -> None:
    enter(table, MASTER)

    found = route_of(table)

    assert found.queue_datas == [QueueData(broker_name="a", read_queue_count=4, write_queue_count=4, perm=6)]
    assert found.broker_datas[0].broker_addrs == {0: "10.0.0.1:10911"}
    assert (found.broker_datas[0].cluster, found.broker_datas[0].enable_acting_master) == ("c", False)
    assert table.route("Unknown") is None


def test_a_first_registration_may_carry_a_single_topic(table: RouteTable) -> None:
    enter(table, MASTER, body("T"))
    assert table.topics.names == {"T"}


def test_the_topics_that_follow_a_single_one_under_the_same_version_are_taken(table: RouteTable) -> None:
    enter(table, MASTER, body("T"))
    enter(table, MASTER, body("T", "U", "V"))
    assert table.topics.names == {"T", "U", "V"}


def test_a_slave_is_told_where_its_master_is(table: RouteTable) -> None:
    assert enter(table, SLAVE) == RegisterBrokerResponse()
    table.register(MASTER, body("T"), connection="m", now_s=NOW_S)

    answer = enter(table, SLAVE)

    assert answer == RegisterBrokerResponse(ha_server_addr="10.0.0.1:10912", master_addr="10.0.0.1:10911")
    assert enter(table, MASTER) == RegisterBrokerResponse()


def test_a_changed_topic_counts_only_under_a_new_version(table: RouteTable) -> None:
    enter(table, MASTER, body("T"))
    enter(table, MASTER, body("T", perm=4))
    assert perms(table) == [6]

    enter(table, MASTER, body("T", perm=4, version=V2))
    assert perms(table) == [4]


def test_a_version_of_another_epoch_is_another_version(table: RouteTable) -> None:
    enter(table, MASTER, body("T"))
    enter(table, MASTER, body("T", perm=4, version=msgspec.structs.replace(V1, state_version=7)))
    assert perms(table) == [4]


def test_topics_missing_from_a_later_registration_stay(table: RouteTable) -> None:
    enter(table, MASTER, body("T", "U"))
    enter(table, MASTER, body("U", version=V2))
    assert table.topics.names == {"T", "U"}


def test_topics_missing_from_a_complete_list_go(table: RouteTable) -> None:
    enter(table, MASTER, body("T", "U"))
    table.register(MASTER, body("U"), connection="m", now_s=NOW_S, is_topic_list_complete=True)
    assert table.topics.names == {"U"}


def test_a_slave_of_rocketmq_4_defines_no_topics(table: RouteTable) -> None:
    enter(table, SLAVE)
    assert table.topics.names == frozenset()


def test_the_smallest_slave_of_rocketmq_5_defines_topics_while_there_is_no_master(table: RouteTable) -> None:
    prime = msgspec.structs.replace(SLAVE, enable_acting_master=False)
    other = msgspec.structs.replace(prime, broker_id=2, broker_addr="10.0.0.3:10911")
    enter(table, prime, body("T"))
    enter(table, other, body("T", "FromOther"))

    assert table.topics.names == {"T"}
    assert perms(table) == [6]


def test_a_slave_that_becomes_master_leaves_its_old_id(table: RouteTable) -> None:
    enter(table, SLAVE)
    table.register(msgspec.structs.replace(SLAVE, broker_id=0), body("T"), connection="s", now_s=NOW_S)

    assert addresses(table) == {0: SLAVE.broker_addr}


def test_a_new_master_defines_topics_even_under_the_version_it_had_as_slave(table: RouteTable) -> None:
    enter(table, MASTER, body("T", perm=4))
    enter(table, SLAVE, body("T", perm=6))
    enter(table, msgspec.structs.replace(SLAVE, broker_id=0), body("T", perm=6))

    assert addresses(table) == {0: SLAVE.broker_addr}
    assert perms(table) == [6]


def test_an_id_with_another_address_is_taken_over(table: RouteTable) -> None:
    enter(table, MASTER)
    moved = msgspec.structs.replace(MASTER, broker_addr="10.0.0.9:10911")
    enter(table, moved)

    assert addresses(table) == {0: "10.0.0.9:10911"}
    table.on_connection_lost(MASTER.broker_addr)
    assert addresses(table) == {0: "10.0.0.9:10911"}


def test_an_older_epoch_does_not_take_an_id_over(table: RouteTable) -> None:
    enter(table, MASTER, body("T", version=DataVersion(state_version=5)))
    deposed = msgspec.structs.replace(MASTER, broker_addr="10.0.0.9:10911")

    answer = enter(table, deposed, body("T", version=DataVersion(state_version=4)))

    assert answer == RegisterBrokerResponse()
    assert addresses(table) == {0: MASTER.broker_addr}
    assert table.query_data_version("c", "10.0.0.9:10911", now_s=NOW_S) is None


def test_a_slave_that_claims_the_id_of_a_later_master_is_dropped(table: RouteTable) -> None:
    enter(table, MASTER, body("T", version=DataVersion(state_version=5)))
    enter(table, SLAVE)
    enter(table, msgspec.structs.replace(SLAVE, broker_id=0))
    assert addresses(table) == {0: MASTER.broker_addr}


def test_a_master_that_becomes_a_slave_leaves_the_masters_id(table: RouteTable) -> None:
    enter(table, MASTER)
    enter(table, msgspec.structs.replace(MASTER, broker_id=1))
    assert addresses(table) == {1: MASTER.broker_addr}


def test_a_group_changes_its_master_and_the_deposed_one_comes_back_as_a_slave(table: RouteTable) -> None:
    reign, next_reign = DataVersion(state_version=5, counter=9), DataVersion(state_version=6, counter=2)
    risen = msgspec.structs.replace(SLAVE, broker_id=0)
    enter(table, MASTER, body("T", version=reign))
    enter(table, SLAVE, body("T", version=reign))

    enter(table, risen, body("T", version=next_reign))
    assert addresses(table) == {0: SLAVE.broker_addr}
    # It does not know yet that it is not master any more.
    enter(table, MASTER, body("T", version=reign))
    assert addresses(table) == {0: SLAVE.broker_addr}

    answer = enter(table, msgspec.structs.replace(MASTER, broker_id=1), body("T", version=next_reign))
    assert addresses(table) == {0: SLAVE.broker_addr, 1: MASTER.broker_addr}
    assert answer == RegisterBrokerResponse(
        master_addr=SLAVE.broker_addr, ha_server_addr=SLAVE.ha_server_addr
    )
    assert perms(table) == [6]


def test_the_later_reign_takes_the_masters_id_whoever_came_first(table: RouteTable) -> None:
    enter(table, MASTER, body("T", version=DataVersion(state_version=5, counter=9)))
    later = msgspec.structs.replace(MASTER, broker_addr="10.0.0.9:10911")
    enter(table, later, body("T", version=DataVersion(state_version=6)))

    assert addresses(table) == {0: "10.0.0.9:10911"}
    # The end of the deposed one changes nothing.
    assert table.on_connection_lost(MASTER.broker_addr) == []
    assert table.unregister(identity(MASTER)) == []
    assert addresses(table) == {0: "10.0.0.9:10911"}


def test_a_broker_that_comes_back_under_another_name_leaves_the_old_one(table: RouteTable) -> None:
    enter(table, MASTER)
    enter(table, msgspec.structs.replace(MASTER, broker_name="b"), body("T"))

    assert [group.broker_name for group in route_of(table).broker_datas] == ["b"]
    assert table.cluster_info().broker_addr_table.keys() == {"b"}


def test_two_clusters_may_use_the_same_address(table: RouteTable) -> None:
    enter(table, MASTER)
    enter(table, msgspec.structs.replace(MASTER, cluster_name="d", broker_name="b"))

    assert table.cluster_info().cluster_addr_table == {"c": {"a"}, "d": {"b"}}


def test_filter_servers_and_queue_mappings_are_passed_on(table: RouteTable) -> None:
    mapping = {"bname": "a", "currIdMap": {"0": 0}, "totalQueues": 4}
    content = RegisterBrokerBody(
        topic_configs=TopicConfigTable(topics={"T": TopicConfig(topic_name="T")}, mappings={"T": mapping}),
        filter_servers=["10.0.0.7:30000"],
    )
    enter(table, MASTER, content)

    found = route_of(table)
    assert found.filter_server_table == {MASTER.broker_addr: ["10.0.0.7:30000"]}
    assert found.topic_queue_mapping_by_broker == {"a": mapping}


# Going.


def test_who_unregisters_is_gone_with_its_topics(table: RouteTable) -> None:
    enter(table, MASTER)
    assert table.unregister(identity(MASTER)) == []
    assert table.route("T") is None
    assert table.cluster_info() == ClusterInfo()
    assert table.topics.names == frozenset()


def test_unregistering_what_is_not_known_changes_nothing(table: RouteTable) -> None:
    enter(table, MASTER)
    assert table.unregister(identity(SLAVE)) == []
    assert table.unregister(msgspec.structs.replace(identity(MASTER), broker_name="b")) == []
    assert addresses(table) == {0: MASTER.broker_addr}


def test_a_topic_stays_with_the_brokers_that_are_left(table: RouteTable) -> None:
    other = msgspec.structs.replace(MASTER, broker_name="b", broker_addr="10.0.0.3:10911")
    enter(table, MASTER)
    enter(table, other)

    table.unregister(identity(MASTER))

    assert [queues.broker_name for queues in route_of(table).queue_datas] == ["b"]


def test_a_lost_connection_removes_the_broker_at_once(table: RouteTable) -> None:
    enter(table, MASTER)
    enter(table, SLAVE)

    assert table.on_connection_lost(MASTER.broker_addr) == []

    assert addresses(table) == {1: SLAVE.broker_addr}
    assert perms(table) == [6]


def test_a_lost_connection_removes_all_brokers_that_shared_it(table: RouteTable) -> None:
    other = msgspec.structs.replace(MASTER, broker_name="b", broker_addr="10.0.0.1:20911")
    for header in (MASTER, other):
        table.register(header, body("T"), connection="shared", now_s=NOW_S)

    table.on_connection_lost("shared")

    assert table.cluster_info() == ClusterInfo()


def test_the_end_of_a_connection_that_was_replaced_is_no_news(table: RouteTable) -> None:
    table.register(MASTER, body("T"), connection="old", now_s=NOW_S)
    table.register(MASTER, body("T"), connection="new", now_s=NOW_S)

    assert table.on_connection_lost("old") == []
    assert addresses(table) == {0: MASTER.broker_addr}


def test_a_lease_ends_two_minutes_after_the_last_sign_of_life(table: RouteTable) -> None:
    enter(table, MASTER)
    assert table.on_tick(NOW_S + DEFAULT_LEASE_S) == []

    assert table.on_tick(NOW_S + DEFAULT_LEASE_S + 0.001) == [CloseConnection(MASTER.broker_addr)]

    assert table.route("T") is None


def test_a_broker_chooses_its_lease(table: RouteTable) -> None:
    enter(table, msgspec.structs.replace(MASTER, heartbeat_timeout_ms=10_000))
    assert table.on_tick(NOW_S + 10) == []
    assert table.on_tick(NOW_S + 10.001) != []


def test_heartbeats_and_questions_for_the_version_renew_a_lease(table: RouteTable) -> None:
    enter(table, MASTER)
    table.heartbeat("c", MASTER.broker_addr, now_s=NOW_S + 100)
    assert table.on_tick(NOW_S + 200) == []
    assert table.query_data_version("c", MASTER.broker_addr, now_s=NOW_S + 200) == V1
    assert table.on_tick(NOW_S + 300) == []
    assert table.on_tick(NOW_S + 321) != []


def test_a_heartbeat_does_not_make_an_unknown_broker_known(table: RouteTable) -> None:
    table.heartbeat("c", MASTER.broker_addr, now_s=NOW_S)
    assert table.query_data_version("c", MASTER.broker_addr, now_s=NOW_S) is None
    assert table.cluster_info() == ClusterInfo()


# Acting masters and the news of the smallest id.


def test_a_group_without_master_shows_its_slaves_as_they_are(table: RouteTable) -> None:
    enter(table, MASTER)
    enter(table, SLAVE)
    table.unregister(identity(MASTER))

    assert addresses(table, is_acting_master_shown=True) == {1: SLAVE.broker_addr}
    assert perms(table) == [6]


def test_an_acting_master_is_shown_as_master_and_takes_no_writes(table: RouteTable) -> None:
    enter(table, acting(MASTER))
    enter(table, acting(SLAVE))
    enter(table, acting(msgspec.structs.replace(SLAVE, broker_id=2, broker_addr="10.0.0.3:10911")))
    table.unregister(identity(MASTER))

    assert addresses(table, is_acting_master_shown=True) == {0: SLAVE.broker_addr, 2: "10.0.0.3:10911"}
    assert addresses(table) == {1: SLAVE.broker_addr, 2: "10.0.0.3:10911"}
    assert perms(table) == [4]


def test_the_master_that_comes_back_takes_writes_again(table: RouteTable) -> None:
    enter(table, acting(MASTER))
    enter(table, acting(SLAVE))
    table.unregister(identity(MASTER))
    table.register(acting(MASTER), body("T"), connection="m", now_s=NOW_S)

    assert addresses(table, is_acting_master_shown=True) == {0: MASTER.broker_addr, 1: SLAVE.broker_addr}
    assert perms(table) == [6]


def test_brokers_see_their_own_group_as_it_is(table: RouteTable) -> None:
    topic = "rmq_sys_SYNC_BROKER_MEMBER_a"
    enter(table, acting(SLAVE), body(topic))

    found = table.route(topic, is_acting_master_shown=True)

    assert found is not None
    assert found.broker_datas[0].broker_addrs == {1: SLAVE.broker_addr}


def test_those_who_are_left_are_told_who_has_the_smallest_id_now(table: RouteTable) -> None:
    third = acting(msgspec.structs.replace(SLAVE, broker_id=2, broker_addr="10.0.0.3:10911"))
    for header in (acting(MASTER), acting(SLAVE), third):
        enter(table, header)

    news = NotifyMinBrokerId(
        addresses=(SLAVE.broker_addr, third.broker_addr),
        broker_name="a",
        min_broker_id=1,
        min_broker_address=SLAVE.broker_addr,
        offline_address=MASTER.broker_addr,
    )
    assert table.on_connection_lost(MASTER.broker_addr) == [news]
    assert table.unregister(identity(third)) == []


def test_groups_that_want_no_acting_master_are_told_nothing_when_their_master_goes(table: RouteTable) -> None:
    enter(table, MASTER)
    enter(table, SLAVE)
    assert table.on_connection_lost(MASTER.broker_addr) == []


def test_an_expired_master_is_news_and_its_connection_is_closed(table: RouteTable) -> None:
    enter(table, acting(msgspec.structs.replace(MASTER, heartbeat_timeout_ms=1_000)))
    enter(table, acting(SLAVE))

    news, closing = table.on_tick(NOW_S + 2)

    assert isinstance(news, NotifyMinBrokerId)
    assert (news.addresses, news.offline_address) == ((SLAVE.broker_addr,), MASTER.broker_addr)
    assert closing == CloseConnection(MASTER.broker_addr)


def test_the_others_are_told_of_a_newcomer_with_a_smaller_id(table: RouteTable) -> None:
    enter(table, acting(SLAVE))

    _, actions = table.register(acting(MASTER), body("T"), connection="m", now_s=NOW_S)

    assert actions == [
        NotifyMinBrokerId(
            addresses=(SLAVE.broker_addr,),
            broker_name="a",
            min_broker_id=0,
            min_broker_address=MASTER.broker_addr,
            ha_address=MASTER.ha_server_addr,
        )
    ]


def test_a_slave_that_becomes_master_alone_is_told_so_itself(table: RouteTable) -> None:
    enter(table, acting(SLAVE))
    promoted = acting(msgspec.structs.replace(SLAVE, broker_id=0))

    _, [news] = table.register(promoted, body("T"), connection="s", now_s=NOW_S)

    assert isinstance(news, NotifyMinBrokerId)
    assert (news.addresses, news.min_broker_id) == ((SLAVE.broker_addr,), 0)


# Questions, and operators' changes.


def test_cluster_info_lists_every_group(table: RouteTable) -> None:
    enter(table, MASTER)
    enter(table, SLAVE)
    enter(
        table,
        msgspec.structs.replace(MASTER, broker_name="b", broker_addr="10.0.0.3:10911", cluster_name="d"),
    )

    found = table.cluster_info()

    assert found.cluster_addr_table == {"c": {"a"}, "d": {"b"}}
    assert found.broker_addr_table["a"].broker_addrs == {0: MASTER.broker_addr, 1: SLAVE.broker_addr}


def test_a_member_group_lists_live_replicas_and_is_empty_if_unknown(table: RouteTable) -> None:
    enter(table, MASTER)
    assert table.member_group("c", "a").broker_addrs == {0: MASTER.broker_addr}
    assert table.member_group("c", "b").broker_addrs == {}


def test_topics_are_listed_by_cluster(table: RouteTable) -> None:
    enter(table, MASTER, body("T", "U"))
    enter(
        table,
        msgspec.structs.replace(MASTER, broker_name="b", broker_addr="10.0.0.3:10911", cluster_name="d"),
        body("U", "V"),
    )
    assert table.topics_of_cluster("c") == {"T", "U"}
    assert table.topics_of_cluster("d") == {"U", "V"}
    assert table.topics_of_cluster("e") == frozenset()


def test_system_topics_are_the_names_of_clusters_and_brokers(table: RouteTable) -> None:
    assert table.system_topics().broker_addr is None
    enter(table, SLAVE)
    enter(table, msgspec.structs.replace(MASTER, broker_name="b"))

    found = table.system_topics()

    assert found.topics == {"c", "a", "b"}
    assert found.broker_addr == SLAVE.broker_addr


def test_a_deleted_topic_is_gone_until_its_broker_registers_again(table: RouteTable) -> None:
    enter(table, MASTER, body("T", "U"))
    table.delete_topic("T")
    assert table.route("T") is None

    enter(table, MASTER, body("T", "U"))
    assert table.route("T") is not None


def test_a_topic_can_be_deleted_in_one_cluster_only(table: RouteTable) -> None:
    other = msgspec.structs.replace(MASTER, broker_name="b", broker_addr="10.0.0.3:10911", cluster_name="d")
    enter(table, MASTER)
    enter(table, other)
    table.delete_topic("T", "c")
    table.delete_topic("T", "no-such-cluster")

    assert [queues.broker_name for queues in route_of(table).queue_datas] == ["b"]


def test_queues_of_a_topic_can_be_registered_for_known_brokers_only(table: RouteTable) -> None:
    enter(table, MASTER, body("T"))
    queues = QueueData(broker_name="a", read_queue_count=1, write_queue_count=1, perm=6)
    table.register_topic("New", [queues])
    table.register_topic("Refused", [queues, msgspec.structs.replace(queues, broker_name="b")])

    assert route_of(table, "New").queue_datas == [queues]
    assert table.route("Refused") is None
    assert table.route("New") is not None


def test_wiped_write_permission_survives_the_next_registration_but_not_a_new_version(
    table: RouteTable,
) -> None:
    enter(table, MASTER, body("T", "U", perm=7))
    assert table.topics.wipe_write("a") == 2
    enter(table, MASTER, body("T", "U", perm=7))
    assert perms(table) == [5]

    enter(table, MASTER, body("T", "U", perm=7, version=V2))
    assert perms(table) == [7]


def test_added_write_permission_is_read_and_write_and_nothing_else(table: RouteTable) -> None:
    enter(table, MASTER, body("T", perm=13))
    assert table.topics.add_write("a") == 1
    assert perms(table) == [6]
    assert table.topics.add_write("b") == 0
