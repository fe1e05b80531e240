from bench.slave_reads import NEVER, Delivery, Moments, Outage, Seen, judge

_S = 1_000_000_000
_MOMENTS = Moments(killed_ns=10 * _S, restarted_ns=20 * _S)


def _read(*deliveries: tuple[float, int]) -> Seen:
    """Judge deliveries of one queue, each a second and an offset; up to offset 2 all was acknowledged."""
    taken = [Delivery(int(at_s * _S), 0, offset) for at_s, offset in deliveries]
    stored = {(0, offset) for offset in range(6)}
    return judge(set(), taken, _MOMENTS, stored=stored, committed={0: 2}, held_most=1)


def test_the_outage_is_the_longest_gap_after_the_kill() -> None:
    seen = _read((1, 0), (9, 1), (10.5, 2), (14, 3), (15, 4), (16, 5))
    assert seen.outage == Outage(gap_s=3.5, back_s=4.0)


def test_the_outage_of_a_hand_back_begins_with_the_start_of_the_master() -> None:
    assert _read((9, 0), (12, 1), (23, 2), (24, 3)).hand_back_s == 3.0


def test_a_consumer_that_reads_only_what_it_held_has_not_gone_on() -> None:
    assert _read((9, 0), (9, 1), (11, 2), (21, 3)).outage == NEVER


def test_what_is_stored_and_never_delivered_is_lost() -> None:
    assert _read((9, 0), (9, 1), (11, 2), (21, 5)).lost == 2


def test_a_message_that_comes_twice_counts_where_it_came_again() -> None:
    seen = _read((9, 0), (9, 1), (11, 1), (12, 0), (21, 2), (22, 2))
    assert (seen.duplicates_at_switch, seen.duplicates_at_hand_back) == (2, 1)


def test_what_was_delivered_and_not_acknowledged_at_the_kill_is_counted_once() -> None:
    assert _read((7, 0), (8, 2), (9, 3), (9, 3), (11, 4)).unacknowledged == 2


def test_a_consumer_that_ends_after_the_kill_can_not_acknowledge_what_it_got_until_then() -> None:
    taken = [Delivery(at_s * _S, 0, at_s) for at_s in (9, 11, 12, 13)]
    seen = judge(set(), taken, _MOMENTS, stored=(), committed={0: 0}, held_most=0, ended_ns=int(12.5 * _S))
    assert seen.unacknowledged == 3


def test_messages_of_former_rounds_that_come_again_are_duplicates() -> None:
    known = {(0, 0)}
    seen = judge(
        known,
        [Delivery(11 * _S, 0, 0), Delivery(12 * _S, 0, 1)],
        _MOMENTS,
        stored=[(0, 1)],
        committed={0: 0},
        held_most=0,
    )
    assert seen.duplicates_at_switch == 1
    assert known == {(0, 0), (0, 1)}
