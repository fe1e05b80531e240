"""Until when a master may acknowledge."""

import pytest

from tanist.controller.group_record import GroupRecord
from tanist.controller.leases import Leases, is_in_office
from tests.support.reigning import NAME, NOW_S, group, live


@pytest.fixture
def leases() -> Leases:
    return Leases()


@pytest.mark.behaviour("S2-53")
def test_the_heartbeat_of_the_elected_start_of_a_broker_renews_its_lease(leases: Leases) -> None:
    assert leases.renew(group(), live(1), now_s=NOW_S) == 4
    assert leases.end_s(group()) == NOW_S + 3


def test_nobody_else_has_a_lease(leases: Leases) -> None:
    assert leases.renew(group(), live(2), now_s=NOW_S) is None
    assert leases.renew(group(), live(1, session_id="another"), now_s=NOW_S) is None
    assert leases.renew(group(master=None), live(1), now_s=NOW_S) is None
    assert leases.renew(group(session=None), live(1, session_id=None), now_s=NOW_S) is None
    assert leases.end_s(group()) == 0


def test_nobody_has_a_longer_lease_than_the_next_leader_would_wait_for(leases: Leases) -> None:
    assert leases.renew(group(lease_ms=2_999), live(1), now_s=NOW_S) is None
    assert leases.renew(group(lease_ms=9_000), live(1), now_s=NOW_S) == 4
    assert leases.end_s(group()) == NOW_S + 3


def test_a_shorter_lease_does_not_end_the_longer_one_that_was_given(leases: Leases) -> None:
    assert leases.renew(group(), live(1), now_s=NOW_S) == 4
    short = live(1, heartbeat_timeout_ms=400)
    assert leases.renew(group(), short, now_s=NOW_S + 1) == 4
    assert leases.end_s(group()) == NOW_S + 3
    assert leases.renew(group(), short, now_s=NOW_S + 2.9) == 4
    assert leases.end_s(group()) == pytest.approx(NOW_S + 3.3)


def test_who_begins_to_lead_gives_every_master_a_whole_lease(leases: Leases) -> None:
    leases.begin([group(lease_ms=5_000)], now_s=NOW_S)
    assert leases.end_s(group()) == NOW_S + 5
    leases.begin([group(master=None)], now_s=NOW_S)
    assert leases.end_s(group()) == 0
    cleaned = GroupRecord(cluster="c", broker_name=NAME, epoch=4)
    leases.begin([cleaned], now_s=NOW_S)
    assert leases.end_s(cleaned) == NOW_S + 10


def test_the_lease_of_an_earlier_reign_keeps_nobody_waiting(leases: Leases) -> None:
    leases.renew(group(epoch=3), live(1), now_s=NOW_S)
    assert leases.end_s(group(epoch=4)) == 0


def test_the_lease_of_a_reign_that_ended_is_waited_for(leases: Leases) -> None:
    leases.renew(group(), live(1), now_s=NOW_S)
    assert leases.end_s(group(master=None)) == NOW_S + 3


def test_the_lease_of_who_is_known_to_be_gone_is_over(leases: Leases) -> None:
    leases.renew(group(), live(1), now_s=NOW_S)
    leases.void(NAME)
    leases.void(NAME)
    assert leases.end_s(group()) == 0


def test_a_lease_that_an_operator_ends_is_not_renewed_and_soon_over(leases: Leases) -> None:
    leases.renew(group(), live(1), now_s=NOW_S)
    leases.close(NAME)
    assert leases.renew(group(), live(1), now_s=NOW_S + 1) is None
    # The master has given it up after nine tenths of it.
    assert NOW_S + 2.7 < leases.end_s(group()) < NOW_S + 3
    leases.reopen(NAME)
    assert leases.renew(group(), live(1), now_s=NOW_S + 1) == 4
    assert leases.end_s(group()) == NOW_S + 4


def test_only_the_start_of_a_broker_that_was_elected_is_in_office() -> None:
    assert is_in_office(group(), {1: live(1)})
    assert is_in_office(group(session=None), {1: live(1, session_id=None)})
    assert not is_in_office(group(), {1: live(1, session_id="another")})
    assert not is_in_office(group(), {1: live(1, session_id=None)})
    assert not is_in_office(group(session=None), {1: live(1)})
    assert not is_in_office(group(), {2: live(2)})
    assert not is_in_office(group(master=None), {1: live(1)})
