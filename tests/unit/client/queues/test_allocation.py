import random
from collections.abc import Sequence

import pytest

from tanist.client.errors import InvalidArgument
from tanist.client.queues.allocation import (
    AllocationStrategy,
    Averagely,
    AveragelyByCircle,
    ByMachineRoom,
    ConsistentHash,
    MachineRoomNearby,
    Sticky,
    sort_client_ids,
    sort_queues,
)
from tanist.model.route import MessageQueue
from tests.support.allocating import ALL, nearby, owners, queues_of, shares

MEMBERS = ("one", "three", "two")


def ids(queues: Sequence[MessageQueue]) -> list[int]:
    return [queue.queue_id for queue in queues]


def names(queues: Sequence[MessageQueue]) -> list[tuple[str, int]]:
    return [(queue.broker_name, queue.queue_id) for queue in queues]


def every(strategy: AllocationStrategy) -> str:
    return strategy.name


def test_queues_sort_by_topic_then_broker_then_number() -> None:
    found = sort_queues(
        MessageQueue(topic=topic, broker_name=broker, queue_id=number)
        for number in (10, 9)
        for broker in ("b", "\uff5e", "\U0001f600")
        for topic in ("U", "T")
    )
    assert [(queue.topic, queue.broker_name, queue.queue_id) for queue in found] == [
        (topic, broker, number)
        for topic in ("T", "U")
        for broker in ("b", "\U0001f600", "\uff5e")
        for number in (9, 10)
    ]


def test_members_sort_as_java_sorts_strings() -> None:
    assert sort_client_ids(["\uff5e", "10.0.0.9@1", "\U0001f600", "10.0.0.10@1"]) == [
        *("10.0.0.10@1", "10.0.0.9@1", "\U0001f600", "\uff5e")
    ]


def test_averagely_gives_neighbours_and_the_first_members_one_more() -> None:
    found = shares(Averagely(), queues_of(8), MEMBERS)
    assert {member: ids(share) for member, share in found.items()} == {
        "one": [0, 1, 2],
        "three": [3, 4, 5],
        "two": [6, 7],
    }


def test_by_circle_deals_the_queues_out() -> None:
    found = shares(AveragelyByCircle(), queues_of(8), MEMBERS)
    assert {member: ids(share) for member, share in found.items()} == {
        "one": [0, 3, 6],
        "three": [1, 4, 7],
        "two": [2, 5],
    }


def test_members_without_a_queue_take_none() -> None:
    for strategy in (Averagely(), AveragelyByCircle(), Sticky()):
        sizes = [len(share) for share in shares(strategy, queues_of(2), ("a", "b", "c", "d")).values()]
        assert sorted(sizes) == [0, 0, 1, 1]


@pytest.mark.parametrize("strategy", ALL, ids=every)
def test_who_is_no_member_takes_nothing(strategy: AllocationStrategy) -> None:
    queues = queues_of(8, brokers=("east@a",))
    assert strategy.allocate("G", "stranger", queues, MEMBERS) == []
    assert strategy.allocate("G", "one", queues, ()) == []


@pytest.mark.parametrize("strategy", ALL, ids=every)
def test_nobody_takes_any_of_no_queues(strategy: AllocationStrategy) -> None:
    assert strategy.allocate("G", "one", [], MEMBERS) == []


def test_the_strategies_have_rocketmqs_names() -> None:
    assert [strategy.name for strategy in ALL] == [
        *("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "CONSISTENT_HASH", "STICKY"),
        *("MACHINE_ROOM_NEARBY-AVG", "MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE", "MACHINE_ROOM_NEARBY-STICKY"),
        "MACHINE_ROOM",
    ]


def test_a_consistent_hash_takes_nothing_from_members_that_stay() -> None:
    queues = queues_of(64)
    before = owners(ConsistentHash(), queues, MEMBERS)
    after = owners(ConsistentHash(), queues, (*MEMBERS, "four"))
    moved = {queue for queue in queues if before[queue] != after[queue]}
    assert moved
    assert {after[queue] for queue in moved} == {"four"}


@pytest.mark.parametrize("count", [0, -1])
def test_a_member_without_points_on_the_ring_is_refused(count: int) -> None:
    with pytest.raises(InvalidArgument, match=f"virtual_nodes={count} is not allowed"):
        ConsistentHash(virtual_nodes=count)


def test_only_queues_of_brokers_in_the_rooms_are_taken() -> None:
    brokers = ("east@a", "west@a", "east", "east@a@b", "east@b@")
    found = shares(ByMachineRoom({"east"}), queues_of(10, brokers=brokers), ("one", "two"))
    assert {member: names(share) for member, share in found.items()} == {
        "one": [("east@a", 0), ("east@a", 1)],
        "two": [("east@b@", 0), ("east@b@", 1)],
    }


def test_a_text_is_not_taken_for_a_collection_of_rooms() -> None:
    with pytest.raises(InvalidArgument, match=r"rooms='east' is not allowed: .*\['east'\]"):
        ByMachineRoom("east")


def test_by_machine_room_deals_the_rest_out_after_equal_shares() -> None:
    found = shares(ByMachineRoom({"east"}), queues_of(8, brokers=("east@a",)), MEMBERS)
    assert {member: ids(share) for member, share in found.items()} == {
        "one": [0, 1, 6],
        "three": [2, 3, 7],
        "two": [4, 5],
    }


def test_queues_stay_in_a_room_where_somebody_is() -> None:
    queues = queues_of(12, brokers=("east@a", "west@a", "north@a"))
    found = shares(nearby(Averagely()), queues, ("east@1", "east@2", "west@1"))
    assert {member: names(share) for member, share in found.items()} == {
        "east@1": [("east@a", 0), ("east@a", 1), ("north@a", 0), ("north@a", 1)],
        "east@2": [("east@a", 2), ("east@a", 3), ("north@a", 2)],
        "west@1": [("west@a", 0), ("west@a", 1), ("west@a", 2), ("west@a", 3), ("north@a", 3)],
    }


def test_an_unknown_room_is_an_error_that_names_the_function() -> None:
    queues = queues_of(1)
    with pytest.raises(InvalidArgument, match=r"room_of_queue='' .*broker-a"):
        MachineRoomNearby(Averagely(), lambda _: "", lambda _: "east").allocate("G", "one", queues, ["one"])
    with pytest.raises(InvalidArgument, match=r"room_of_client='' .*one"):
        MachineRoomNearby(Averagely(), lambda _: "east", lambda _: "").allocate("G", "one", queues, ["one"])


def moves_and_least(
    strategy: AllocationStrategy, queue_count: int, member_count: int, seed: int
) -> tuple[int, int]:
    """How many queues move when one of many members leaves, and how many have to."""
    rng = random.Random(seed)
    members = [
        f"10.0.{rng.randrange(256)}.{rng.randrange(256)}@{n}#{rng.random()}" for n in range(member_count)
    ]
    queues = queues_of(queue_count, brokers=("broker-a", "broker-b"))
    before = owners(strategy, queues, members)
    after = owners(strategy, queues, members[1:])
    moved = sum(before[queue] != after[queue] for queue in queues)
    return moved, sum(owner == members[0] for owner in before.values())


@pytest.mark.parametrize(("member_count", "ratio"), [(2, 1.0), (4, 1.3), (8, 1.7), (16, 2.8)])
def test_sticky_moves_little_more_than_it_has_to_when_a_member_leaves_or_joins(
    member_count: int, ratio: float
) -> None:
    """To join is to leave, seen from the other side: the same queues move."""
    found = [moves_and_least(Sticky(), 64, member_count, seed) for seed in range(20)]
    moved, least = (sum(column) for column in zip(*found, strict=True))
    assert least <= moved <= ratio * least
    by_average = sum(moves_and_least(Averagely(), 64, member_count, seed)[0] for seed in range(20))
    assert moved <= by_average
    if member_count >= 8:
        assert moved < 0.6 * by_average


def test_sticky_gives_other_groups_other_queues() -> None:
    queues = queues_of(64)
    assert shares(Sticky(), queues, MEMBERS, group="G") != shares(Sticky(), queues, MEMBERS, group="H")


def test_sticky_counts_a_member_once_that_a_broker_lists_twice() -> None:
    queues = queues_of(64)
    assert shares(Sticky(), queues, ("one", "one", "two")) == shares(Sticky(), queues, ("one", "two"))
