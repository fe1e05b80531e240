from tanist.ha.replicas import MAX_REFUSALS, RefusedPeer, ReplicaTable
from tests.support.played_slaves import make_replica


def _table() -> ReplicaTable:
    return ReplicaTable(fallbehind_max_bytes=1000)


def test_a_replica_that_connects_anew_takes_the_place_of_itself() -> None:
    table = _table()
    before, after = make_replica(1, acked_to=500), make_replica(1, acked_to=100, peer="10.0.0.9:1")
    assert table.join(before) is None
    assert table.join(after) is before
    assert list(table) == [after]
    # What the older one said is forgotten, and its end takes nothing from the newer one.
    assert table.counted_acks() == [100]
    table.leave(before)
    assert list(table) == [after]
    table.leave(after)
    assert len(table) == 0


def test_a_slave_of_rocketmq_is_told_from_others_by_its_host() -> None:
    table = _table()
    for peer in ("10.0.0.7:1", "10.0.0.8:1", "[fd00::7]:1", "[fd00::8]:1"):
        assert table.join(make_replica(None, peer=peer)) is None
    for peer in ("10.0.0.7:2", "[fd00::7]:2"):
        assert table.join(make_replica(None, peer=peer)) is not None
    assert len(table) == 4


def test_a_host_is_not_taken_for_an_id() -> None:
    table = _table()
    table.join(make_replica(1))
    table.join(make_replica(None, peer="1:40112"))
    assert len(table) == 2


def test_without_a_slave_nothing_is_known_of_the_best_one() -> None:
    table = _table()
    assert table.best_acked() is None
    slave = make_replica(1, acked_to=0)
    table.join(slave)
    assert table.best_acked() == 0
    table.join(make_replica(2, acked_to=70, counts=False))
    assert table.best_acked() == 70
    assert table.counted_acks() == [0]


def test_a_lag_is_never_negative() -> None:
    slave = make_replica(1, acked_to=500)
    assert slave.lag_bytes(700) == 200
    assert slave.lag_bytes(400) == 0


def test_a_slave_is_worth_waiting_for_if_it_counts_and_is_not_too_far_behind() -> None:
    table = _table()
    table.join(make_replica(1, acked_to=1000))
    table.join(make_replica(2, acked_to=1001))
    table.join(make_replica(3, acked_to=2000, counts=False))
    assert table.usable_count(1999) == 2
    assert table.usable_count(2000) == 1
    assert table.usable_count(2001) == 0


def test_a_slave_holds_a_send_that_lies_between_where_it_began_and_what_it_acked() -> None:
    table = _table()
    whole, newer = make_replica(1, acked_to=500), make_replica(2, acked_to=900, held_from=400)
    table.join(whole)
    table.join(newer)
    assert table.latest_start == 400
    assert [table.holder_count(end) for end in (1, 400, 401, 500, 501, 900, 901)] == [1, 1, 2, 2, 1, 1, 0]
    table.leave(newer)
    assert table.latest_start == 0


def test_of_refused_peers_the_newest_are_kept_and_all_are_counted() -> None:
    table = _table()
    for number in range(MAX_REFUSALS + 10):
        table.refuse(RefusedPeer(f"10.0.0.7:{number}", "no hello", "39", number), kind="no hello")
    assert len(table.refused) == MAX_REFUSALS
    assert table.refused[-1].at_ms == MAX_REFUSALS + 9
    assert table.refused_counts == {"no hello": MAX_REFUSALS + 10}
