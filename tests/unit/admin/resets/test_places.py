from collections.abc import Sequence

import pytest

from tanist.admin.resets.places import places_of
from tanist.model.route import BrokerData, QueueData, TopicRouteData


def route(**addresses: dict[int, str]) -> TopicRouteData:
    return TopicRouteData(
        queue_datas=[
            QueueData(broker_name=name, read_queue_count=2, write_queue_count=4, perm=6) for name in addresses
        ],
        broker_datas=[
            BrokerData(cluster="C", broker_name=name, broker_addrs=found) for name, found in addresses.items()
        ],
    )


@pytest.mark.behaviour("S4-3")
def test_every_broker_is_addressed_at_its_master_or_at_any_slave() -> None:
    chosen_from: list[Sequence[str]] = []

    def last(addresses: Sequence[str]) -> str:
        chosen_from.append(addresses)
        return addresses[-1]

    found = places_of("T", route(b={1: "b1:1", 2: "b2:1"}, a={0: "a0:1", 1: "a1:1"}), last)
    assert [(place.broker_name, place.address) for place in found.brokers] == [("a", "a0:1"), ("b", "b2:1")]
    assert chosen_from == [["b1:1", "b2:1"]]


def test_queues_that_are_not_read_are_none_of_a_groups() -> None:
    found = places_of("T", route(a={0: "a0:1"}))
    assert [queue.queue_id for queue in found.queues_of("a")] == [0, 1]
    hidden = TopicRouteData(
        queue_datas=[QueueData(broker_name="a", read_queue_count=2, write_queue_count=2, perm=2)],
        broker_datas=[BrokerData(cluster="C", broker_name="a", broker_addrs={0: "a0:1"})],
    )
    assert places_of("T", hidden).brokers == []
