"""When a send is released, given up or refused: a master, the slaves that a test plays, and no I/O."""

import pytest

from tanist.ha.settings import HaSettings
from tanist.protocol.codes import ResponseCode
from tests.support.played_slaves import PlayedSlaves, make_replica

R = ResponseCode
NOT_AVAILABLE, TOO_LATE = R.SLAVE_NOT_AVAILABLE, R.FLUSH_SLAVE_TIMEOUT
TIMEOUT_S = 3.0


class _Master(PlayedSlaves):
    """Its sends have numbers; what became of them is kept in the order in which it was told."""

    def __init__(self, **settings: int) -> None:
        super().__init__(HaSettings(**settings))  # pyright: ignore[reportArgumentType]
        self.told: list[tuple[int, ResponseCode]] = []

    def send(self, number: int, *, end: int, now_s: float = 0) -> None:
        self.double_write.wait(end, now_s=now_s, done=lambda code: self.told.append((number, code)))


@pytest.mark.behaviour("S1-108", "S1-117", "S1-114")
def test_a_send_is_released_by_the_ack_that_reaches_its_end_and_by_none_before() -> None:
    master = _Master()
    slave = master.join(acked_to=100)
    master.send(1, end=200)
    master.ack(slave, 199)
    assert master.told == []
    master.ack(slave, 200)
    assert master.told == [(1, R.SUCCESS)]


@pytest.mark.behaviour("S1-120")
def test_one_ack_releases_all_that_it_reaches_in_order_and_each_once() -> None:
    master = _Master()
    slave = master.join()
    for number in range(1, 6):
        master.send(number, end=number * 100)
    master.ack(slave, 350)
    assert master.told == [(1, R.SUCCESS), (2, R.SUCCESS), (3, R.SUCCESS)]
    master.ack(slave, 350)
    master.ack(slave, 500)
    master.double_write.on_tick(TIMEOUT_S)
    assert [number for number, _ in master.told] == [1, 2, 3, 4, 5]
    assert len(master.double_write) == 0


@pytest.mark.behaviour("S1-109")
def test_without_a_slave_nobody_waits() -> None:
    master = _Master()
    master.send(1, end=100)
    assert master.told == [(1, NOT_AVAILABLE)]
    assert master.double_write.next_deadline_s is None


@pytest.mark.behaviour("S1-110")
def test_a_slave_that_is_too_far_behind_is_as_good_as_none() -> None:
    master = _Master(ha_slave_fallbehind_max=1000)
    slave = master.join(acked_to=500)
    master.send(1, end=1499)
    master.send(2, end=1500)
    assert master.told == [(2, NOT_AVAILABLE)]
    master.ack(slave, 501)
    master.send(3, end=1500)
    master.ack(slave, 1500)
    assert master.told[1:] == [(1, R.SUCCESS), (3, R.SUCCESS)]


def test_by_default_a_slave_may_be_256_mib_behind() -> None:
    master = _Master()
    master.join(acked_to=0)
    master.send(1, end=(256 << 20) - 1)
    master.send(2, end=256 << 20)
    assert master.told == [(2, NOT_AVAILABLE)]


def test_an_empty_slave_that_has_just_come_is_worth_waiting_for() -> None:
    master = _Master()
    slave = master.join(acked_to=0)
    master.send(1, end=10)
    master.ack(slave, 10)
    assert master.told == [(1, R.SUCCESS)]


@pytest.mark.behaviour("S1-112", "S1-113")
def test_a_send_is_given_up_when_its_time_is_over_and_not_before() -> None:
    master = _Master()
    master.join()
    master.send(1, end=100, now_s=10)
    assert master.double_write.next_deadline_s == 10 + TIMEOUT_S
    master.double_write.on_tick(10 + TIMEOUT_S - 0.001)
    assert master.told == []
    master.double_write.on_tick(10 + TIMEOUT_S)
    assert master.told == [(1, TOO_LATE)]
    assert master.double_write.next_deadline_s is None


@pytest.mark.behaviour("S1-118")
def test_acks_that_do_not_reach_a_send_cost_it_none_of_its_time() -> None:
    master = _Master()
    slave = master.join()
    # One large message, which the slave gets in many pieces, and acks each of them.
    master.send(1, end=1 << 20, now_s=0)
    for piece in range(1, 32):
        master.ack(slave, piece * (32 << 10))
        master.double_write.on_tick(piece * 0.09)
    assert master.told == []
    master.ack(slave, 1 << 20)
    assert master.told == [(1, R.SUCCESS)]


@pytest.mark.behaviour("S1-118")
def test_a_slow_send_does_not_make_those_behind_it_late() -> None:
    master = _Master()
    slave = master.join()
    master.send(1, end=100, now_s=0)
    master.send(2, end=200, now_s=2.9)
    master.double_write.on_tick(3.0)
    assert master.told == [(1, TOO_LATE)]
    assert master.double_write.next_deadline_s == 2.9 + TIMEOUT_S
    master.ack(slave, 200)
    assert master.told[1:] == [(2, R.SUCCESS)]


@pytest.mark.behaviour("S1-115")
def test_to_begin_to_wait_touches_none_of_those_who_wait() -> None:
    master = _Master()
    slave = master.join()
    for number in range(10_000):
        master.send(number, end=number + 1)
    assert len(master.double_write) == 10_000
    assert master.told == []
    master.ack(slave, 10_000)
    assert [number for number, _ in master.told] == list(range(10_000))


@pytest.mark.behaviour("S1-116")
def test_what_is_acked_before_somebody_waits_for_it_is_released_at_once() -> None:
    master = _Master()
    master.join(acked_to=300)
    master.send(1, end=300)
    assert master.told == [(1, R.SUCCESS)]


def test_who_comes_late_is_released_with_those_who_wait_already() -> None:
    master = _Master()
    slave = master.join()
    master.send(1, end=200)
    master.send(2, end=100)
    master.ack(slave, 150)
    assert master.told == []
    master.ack(slave, 200)
    assert master.told == [(1, R.SUCCESS), (2, R.SUCCESS)]


@pytest.mark.behaviour("S1-122")
def test_of_several_slaves_the_fastest_is_enough() -> None:
    master = _Master()
    slow, quick = master.join(1), master.join(2)
    master.send(1, end=100)
    master.ack(quick, 100)
    assert master.told == [(1, R.SUCCESS)]
    assert slow.acked_to == 0


def test_with_more_replicas_asked_for_so_many_slaves_must_hold_a_message() -> None:
    master = _Master(in_sync_replicas=3)
    first = master.join(1)
    master.send(1, end=100)
    assert master.told == [(1, NOT_AVAILABLE)]
    second, third = master.join(2), master.join(3)
    master.send(2, end=200)
    master.ack(third, 200)
    assert len(master.told) == 1
    master.ack(first, 199)
    assert len(master.told) == 1
    master.ack(second, 200)
    assert master.told[1:] == [(2, R.SUCCESS)]


def test_with_one_replica_asked_for_the_master_is_enough() -> None:
    master = _Master(in_sync_replicas=1)
    master.send(1, end=100)
    assert master.told == [(1, R.SUCCESS)]


@pytest.mark.behaviour("S5-11")
def test_a_replica_counts_once_however_often_it_connects() -> None:
    master = _Master(in_sync_replicas=3)
    master.join(1, acked_to=0)
    master.join(2, acked_to=0)
    master.send(1, end=100)
    again = make_replica(1, acked_to=0, peer="10.0.0.9:1")
    before = master.table.join(again)
    assert before is not None
    master.ack(again, 100)
    # The older connection of the same replica is not believed any more.
    master.ack(before, 100)
    assert master.told == []


@pytest.mark.behaviour("S5-11")
def test_who_does_not_count_releases_nobody() -> None:
    master = _Master()
    stranger = master.join(7, counts=False)
    master.send(1, end=100)
    assert master.told == [(1, NOT_AVAILABLE)]
    real = master.join(1)
    master.send(2, end=200)
    master.ack(stranger, 1 << 62)
    assert len(master.told) == 1
    master.ack(real, 200)
    assert master.told[1:] == [(2, R.SUCCESS)]


@pytest.mark.behaviour("S5-11")
def test_what_a_lost_slave_once_said_is_not_believed_later() -> None:
    master = _Master()
    lost = master.join(1)
    master.ack(lost, 1000)
    master.leave(lost)
    master.send(1, end=900)
    assert master.told == [(1, NOT_AVAILABLE)]
    master.join(2, acked_to=100)
    master.send(2, end=900)
    assert len(master.told) == 1


def test_a_slave_that_is_lost_and_comes_back_in_time_releases_who_waited_for_it() -> None:
    master = _Master()
    slave = master.join()
    master.send(1, end=100)
    master.leave(slave)
    assert master.told == []
    master.join(acked_to=100)
    assert master.told == [(1, R.SUCCESS)]


def test_a_slave_that_does_not_come_back_is_a_timeout() -> None:
    master = _Master()
    slave = master.join()
    master.send(1, end=100)
    master.leave(slave)
    master.double_write.on_tick(TIMEOUT_S)
    assert master.told == [(1, TOO_LATE)]


@pytest.mark.behaviour("S1-121")
def test_what_the_slaves_hold_begins_with_nothing_and_each_growth_is_acted_on_at_once() -> None:
    master = _Master()
    assert master.table.counted_acks() == []
    slave = master.join()
    assert master.table.counted_acks() == [0]
    for end in (10, 20, 30):
        master.send(end, end=end)
        master.ack(slave, end)
        assert master.table.counted_acks() == [end]
        assert master.told[-1] == (end, R.SUCCESS)


def test_with_too_few_in_step_nothing_may_be_written() -> None:
    master = _Master(in_sync_replicas=3, min_in_sync_replicas=2, ha_slave_fallbehind_max=1000)
    refusal = master.double_write.refusal(100)
    assert refusal is not None
    assert refusal.startswith("IN_SYNC_REPLICAS_NOT_ENOUGH: 1 of the 2 replicas")
    slave = master.join()
    assert master.double_write.refusal(999) is None
    assert master.double_write.refusal(1000) is not None
    master.leave(slave)
    assert master.double_write.refusal(100) is not None


def test_by_default_a_master_alone_takes_messages() -> None:
    assert _Master().double_write.refusal(1 << 40) is None


def test_a_master_that_stops_tells_all_who_wait() -> None:
    master = _Master()
    master.join()
    master.send(1, end=100)
    master.send(2, end=200)
    master.double_write.give_up()
    assert master.told == [(1, TOO_LATE), (2, TOO_LATE)]


def test_a_slave_that_began_behind_a_send_does_not_release_it_by_what_it_acks() -> None:
    master = _Master()
    slave = master.join(acked_to=100)
    master.send(1, end=200)
    master.send(2, end=1100)
    master.leave(slave)
    # It has the newest file only.
    newer = master.join(2, acked_to=1000, held_from=1000)
    master.ack(newer, 1100)
    assert master.told == []
    master.double_write.on_tick(TIMEOUT_S)
    assert master.told == [(1, TOO_LATE), (2, TOO_LATE)]


def test_what_waits_behind_a_send_that_no_slave_has_is_released_when_that_is_given_up() -> None:
    master = _Master()
    slave = master.join(acked_to=100)
    master.send(1, end=200)
    master.send(2, end=1100, now_s=1.0)
    master.leave(slave)
    newer = master.join(2, acked_to=1000, held_from=1000)
    master.ack(newer, 1100)
    master.double_write.on_tick(TIMEOUT_S)
    assert master.told == [(1, TOO_LATE), (2, R.SUCCESS)]


def test_a_slave_that_has_all_releases_sends_that_lie_before_where_another_began() -> None:
    master = _Master()
    slave = master.join(acked_to=100)
    master.send(1, end=200)
    master.join(2, acked_to=1000, held_from=1000)
    master.send(2, end=1100)
    master.ack(slave, 200)
    assert master.told == [(1, R.SUCCESS)]
    master.ack(slave, 1100)
    assert master.told == [(1, R.SUCCESS), (2, R.SUCCESS)]


def test_a_send_that_comes_late_is_not_confirmed_by_a_slave_that_began_behind_it() -> None:
    master = _Master()
    newer = master.join(2, acked_to=1000, held_from=1000)
    master.send(1, end=200)
    assert master.told == [(1, NOT_AVAILABLE)]
    master.send(2, end=1100)
    master.ack(newer, 1100)
    assert master.told[1:] == [(2, R.SUCCESS)]
