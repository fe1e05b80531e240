"""How long a master may rely on its lease, and what it may acknowledge with and without one."""

import pytest

from tanist.ha.ack_right import AckRight
from tanist.ha.lease import Lease
from tanist.ha.sync_state import SyncState


class TestLease:
    @pytest.mark.behaviour("S2-53")
    def test_it_lasts_for_nine_tenths_of_the_timeout_from_when_the_heartbeat_was_sent(self) -> None:
        lease = Lease(3, now_s=0)
        assert not lease.is_held(0)
        lease.on_granted(3, sent_s=10, timeout_s=3)
        assert lease.is_held(12.69)
        assert not lease.is_held(12.71)

    def test_an_answer_that_was_overtaken_changes_nothing(self) -> None:
        lease = Lease(3, now_s=0)
        lease.on_granted(3, sent_s=10, timeout_s=3)
        lease.on_granted(3, sent_s=9, timeout_s=3)
        assert lease.granted_s == 10
        assert lease.is_held(12.69)

    def test_an_answer_for_another_epoch_grants_nothing(self) -> None:
        lease = Lease(3, now_s=0)
        lease.on_granted(2, sent_s=10, timeout_s=3)
        lease.on_granted(4, sent_s=10, timeout_s=3)
        assert not lease.is_held(10)

    def test_who_granted_it_may_take_it_back(self) -> None:
        lease = Lease(3, now_s=0)
        lease.on_granted(3, sent_s=10, timeout_s=3)
        lease.on_void(now_s=11)
        assert not lease.is_held(11)

    def test_a_heartbeat_from_before_the_epoch_grants_nothing(self) -> None:
        lease = Lease(3, now_s=11)
        lease.on_granted(3, sent_s=10.9, timeout_s=3)
        assert not lease.is_held(11)


def _right(*members: int, lease_to: float = 0) -> AckRight:
    """Replica 1 is master since 0 s, and its log is confirmed up to 100."""
    lease = Lease(3, now_s=0)
    lease.ends_s = lease_to
    state = SyncState(
        1,
        epoch=3,
        epoch_start=100,
        members=members,
        set_epoch=1,
        confirmed_to=100,
        max_behind_s=15,
        now_s=0,
    )
    return AckRight(lease, state)


class TestRight:
    def test_with_a_lease_everything_may_be_acknowledged(self) -> None:
        right = _right(1, 2, lease_to=5)
        assert right.refusal(4.9) is None
        assert right.may_acknowledge(500, 4.9)

    @pytest.mark.behaviour("S2-53")
    def test_without_a_lease_and_without_a_replica_nothing_is_written(self) -> None:
        refusal = _right(1, 2, lease_to=5).refusal(7.25)
        assert refusal is not None
        assert "no controller has answered for 7.2 s, and replica 2 of the sync state set" in refusal

    def test_all_replicas_that_are_missing_are_named(self) -> None:
        assert "replicas 2, 3 of the sync state set" in str(_right(1, 2, 3).refusal(1))

    @pytest.mark.behaviour("S2-54")
    def test_without_a_lease_what_all_hold_may_be_acknowledged_and_no_more(self) -> None:
        right = _right(1, 2)
        right.sync_state.on_joined(2, acked_to=100, log_end=100, now_s=0)
        assert right.refusal(60) is None
        right.sync_state.on_held(200)
        assert not right.may_acknowledge(200, 60)
        right.sync_state.on_ack(2, 200, log_end=200, now_s=60)
        assert right.may_acknowledge(200, 60)

    @pytest.mark.behaviour("S2-54")
    def test_a_master_that_is_alone_in_the_set_needs_no_lease(self) -> None:
        right = _right(1)
        right.sync_state.on_held(200)
        assert right.refusal(60) is None
        assert right.may_acknowledge(200, 60)

    def test_an_open_proposal_counts(self) -> None:
        right = _right(1)
        assert right.sync_state.on_joined(2, acked_to=100, log_end=100, now_s=0) is not None
        right.sync_state.on_left(2, now_s=0)
        assert "replica 2 of" in str(right.refusal(60))
