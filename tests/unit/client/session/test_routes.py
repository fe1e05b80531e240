from collections.abc import Iterable, Mapping

from tanist.client.session.routes import RouteTable, TopicRoute
from tanist.model.route import BrokerData, MessageQueue, QueueData, TopicRouteData


def route_of(
    replicas: Mapping[str, Mapping[int, str]],
    *,
    perm: int = 6,
    read_count: int = 2,
    write_count: int = 2,
    order: str | None = None,
) -> TopicRouteData:
    return TopicRouteData(
        queue_datas=[
            QueueData(broker_name=name, read_queue_count=read_count, write_queue_count=write_count, perm=perm)
            for name in replicas
        ],
        broker_datas=[
            BrokerData(cluster="C", broker_name=name, broker_addrs=dict(addresses))
            for name, addresses in replicas.items()
        ],
        order_topic_conf=order,
    )


def places(queues: Iterable[MessageQueue]) -> list[tuple[str, int]]:
    return [(queue.broker_name, queue.queue_id) for queue in queues]


def test_messages_go_to_the_write_queues_of_brokers_with_a_master() -> None:
    route = TopicRoute("T", route_of({"b": {0: "b:1"}, "a": {1: "a:2"}}, write_count=3))
    assert places(route.publish_queues) == [("b", 0), ("b", 1), ("b", 2)]


def test_messages_are_read_from_all_replica_groups_in_the_order_that_clients_sort_in() -> None:
    route = TopicRoute("T", route_of({"b": {0: "b:1"}, "a": {1: "a:2"}}, read_count=2))
    assert places(route.subscribe_queues) == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]


def test_a_topic_without_a_permission_offers_no_queue_for_it() -> None:
    assert TopicRoute("T", route_of({"a": {0: "a:1"}}, perm=4)).publish_queues == ()
    assert TopicRoute("T", route_of({"a": {0: "a:1"}}, perm=2)).subscribe_queues == ()


def test_an_ordered_topic_keeps_its_queues_while_a_broker_is_away() -> None:
    route = TopicRoute("T", route_of({"a": {0: "a:1"}}, order="a:1;b:2;;c:x"))
    assert places(route.publish_queues) == [("a", 0), ("b", 0), ("b", 1)]


def test_a_route_counts_as_changed_only_if_it_is_another() -> None:
    table = RouteTable()
    assert table.put("T", route_of({"a": {0: "a:1"}}))
    assert not table.put("T", route_of({"a": {0: "a:1"}}))
    assert table.put("T", route_of({"a": {0: "a:2"}}))
    assert table.master_of("a") == "a:2"


def test_the_newest_route_says_where_a_broker_is() -> None:
    table = RouteTable()
    table.put("T", route_of({"a": {0: "a:1"}}))
    table.put("U", route_of({"a": {0: "a:9"}}))
    assert table.master_of("a") == "a:9"
    table.put("T", route_of({"a": {0: "a:1", 1: "a:2"}}))
    assert table.replicas["a"] == {0: "a:1", 1: "a:2"}


def test_a_broker_that_no_route_names_is_forgotten() -> None:
    table = RouteTable()
    table.put("T", route_of({"a": {0: "a:1"}, "b": {0: "b:1"}}))
    table.put("T", route_of({"b": {0: "b:1"}}))
    assert table.master_of("a") is None
    assert table.addresses(only_masters=False) == ["b:1"]


def test_without_a_master_the_replica_with_the_least_id_is_asked() -> None:
    table = RouteTable()
    table.put("T", route_of({"a": {2: "a:3", 1: "a:2"}}))
    assert table.master_of("a") is None
    assert table.some_replica_of("a") == "a:2"
    assert table.some_replica_of("b") is None


def test_only_consumers_are_interested_in_slaves() -> None:
    table = RouteTable()
    table.put("T", route_of({"a": {0: "a:1", 1: "a:2"}}))
    assert table.addresses(only_masters=True) == ["a:1"]
    assert table.addresses(only_masters=False) == ["a:1", "a:2"]


def test_brokers_that_lack_only_a_master_are_told_from_those_that_take_no_messages() -> None:
    replicas = {"a": {1: "a:2"}, "b": {0: "b:1"}, "c": {}}
    assert TopicRoute("T", route_of(replicas)).masterless == {"a"}
    assert TopicRoute("T", route_of(replicas, perm=4)).masterless == frozenset()


def test_what_a_replica_says_of_its_master_counts_until_the_next_route() -> None:
    table = RouteTable()
    table.put("T", route_of({"a": {0: "a:1", 1: "a:2", 2: "a:3"}}))
    table.believe("a", "a:2")
    assert table.replicas == {"a": {0: "a:2", 2: "a:3"}}
    assert not table.put("T", route_of({"a": {0: "a:1", 1: "a:2", 2: "a:3"}}))
    assert table.replicas == {"a": {0: "a:1", 1: "a:2", 2: "a:3"}}


def test_a_topic_of_a_broker_is_found_to_ask_about_it_by() -> None:
    table = RouteTable()
    table.put("T", route_of({"a": {0: "a:1"}}))
    table.put("U", route_of({"b": {0: "b:1"}}))
    assert (table.topic_of("b"), table.topic_of("c")) == ("U", None)


def test_a_reader_has_the_masters_place_until_the_route_says_something_else() -> None:
    table = RouteTable()
    both = route_of({"a": {0: "m:1", 1: "s:1"}})
    table.put("T", both)
    assert table.believe_reader("a", "s:1", term=1)
    assert table.replicas["a"] == {0: "s:1"}
    # The same route, and those of other topics, know nothing new.
    table.put("T", both)
    table.put("U", both)
    assert table.master_of("a") == "s:1"
    table.put("T", route_of({"a": {1: "s:1"}}))
    assert table.replicas["a"] == {1: "s:1"}


def test_the_master_has_its_place_again_when_it_is_read_again() -> None:
    table = RouteTable()
    table.put("T", route_of({"a": {0: "m:1", 1: "s:1"}}))
    table.believe_reader("a", "s:1", term=1)
    assert table.believe_reader("a", "m:1", term=1)
    assert table.replicas["a"] == {0: "m:1", 1: "s:1"}


def test_an_older_word_on_who_is_read_does_not_override_a_newer_one() -> None:
    table = RouteTable()
    table.put("T", route_of({"a": {0: "m:1", 1: "s:1"}}))
    assert table.believe_reader("a", "s:1", term=2)
    assert not table.believe_reader("a", "m:1", term=1)
    assert table.master_of("a") == "s:1"
    # What a broker says of itself counts, also after terms are counted anew.
    assert table.believe_reader("a", "m:1", term=0, is_sure=True)
    assert table.master_of("a") == "m:1"
    assert table.believe_reader("a", "s:1", term=1)


def test_addresses_are_remembered_that_a_route_names_no_more() -> None:
    table = RouteTable()
    table.put("T", route_of({"a": {0: "m:1", 1: "s:1"}}))
    table.put("T", route_of({"a": {1: "s:1"}}))
    assert table.addresses_of("a") == ["s:1", "m:1"]
    for number in range(20):
        table.put("T", route_of({"a": {0: f"m:{number}", 1: "s:1"}}))
    assert table.addresses_of("a")[:2] == ["m:19", "s:1"]
    assert len(table.addresses_of("a")) == 8
    assert table.addresses_of("b") == []
