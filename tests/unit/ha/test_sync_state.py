"""Who is in step with a master, what all of them hold, and what the controller is asked: no I/O."""

import pytest

from tanist.ha.sync_state import JOIN_AGAIN_S, RETRY_S, Propose, SyncState
from tanist.protocol.codes import ResponseCode

R = ResponseCode
MAX_BEHIND_S = 15.0


class _Master:
    """Replica 1, master of epoch 3, which began at 100 with all before it confirmed."""

    def __init__(self, *members: int, log_end: int = 100, confirmed_to: int = 100) -> None:
        self.now_s = 0.0
        self.log_end = log_end
        self.state = SyncState(
            1,
            epoch=3,
            epoch_start=100,
            members=members,
            set_epoch=7,
            confirmed_to=confirmed_to,
            max_behind_s=MAX_BEHIND_S,
            now_s=self.now_s,
        )
        self.proposals: list[Propose] = []

    def _keep(self, proposal: Propose | None) -> Propose | None:
        if proposal is not None:
            self.proposals.append(proposal)
        return proposal

    def write(self, size: int) -> None:
        self.log_end += size
        self.state.on_held(self.log_end)

    def join(
        self, broker_id: int | None, acked_to: int, *, is_learner: bool = False, held_from: int = 0
    ) -> Propose | None:
        return self._keep(
            self.state.on_joined(
                broker_id,
                acked_to=acked_to,
                log_end=self.log_end,
                now_s=self.now_s,
                is_learner=is_learner,
                held_from=held_from,
            )
        )

    def ack(self, broker_id: int, acked_to: int) -> Propose | None:
        return self._keep(self.state.on_ack(broker_id, acked_to, log_end=self.log_end, now_s=self.now_s))

    def leave(self, broker_id: int) -> Propose | None:
        return self._keep(self.state.on_left(broker_id, now_s=self.now_s))

    def tick(self, seconds: float) -> Propose | None:
        self.now_s += seconds
        return self._keep(self.state.on_tick(log_end=self.log_end, now_s=self.now_s))

    def confirm(self) -> Propose | None:
        """The controller takes the newest proposal."""
        last = self.proposals[-1]
        return self._keep(self.state.on_answer(last.members, last.set_epoch + 1, now_s=self.now_s))

    def refuse(self, code: int) -> None:
        self.state.on_refused(code, now_s=self.now_s)


def _master_with_2() -> _Master:
    """Replica 2 is in the set and connected, and everybody holds all."""
    master = _Master(1, 2)
    master.join(2, 100)
    return master


class TestConfirmOffset:
    def test_a_master_alone_confirms_by_itself(self) -> None:
        master = _Master(1)
        master.write(50)
        assert master.state.confirmed_to == 150

    @pytest.mark.behaviour("S2-51")
    def test_it_is_the_smallest_ack_of_the_set(self) -> None:
        master = _Master(1, 2, 3)
        master.join(2, 100)
        master.join(3, 100)
        master.write(100)
        master.ack(2, 180)
        assert master.state.confirmed_to == 100
        master.ack(3, 150)
        assert master.state.confirmed_to == 150
        master.ack(3, 200)
        assert master.state.confirmed_to == 180

    @pytest.mark.known_bug("KIP-966")
    def test_a_master_that_flushes_first_counts_with_what_is_on_its_disk(self) -> None:
        master = _master_with_2()
        master.log_end = 200
        master.ack(2, 200)
        assert master.state.confirmed_to == 100
        master.state.on_held(160)
        assert master.state.confirmed_to == 160

    def test_it_stays_while_a_member_has_no_connection(self) -> None:
        master = _Master(1, 2, 3)
        master.join(2, 100)
        master.write(100)
        master.ack(2, 200)
        assert master.state.confirmed_to == 100

    def test_it_stays_when_a_member_comes_back_with_less(self) -> None:
        master = _master_with_2()
        master.write(100)
        master.ack(2, 200)
        master.leave(2)
        master.join(2, 120)
        assert master.state.confirmed_to == 200

    def test_a_replica_that_is_not_in_the_set_does_not_hold_it_up(self) -> None:
        master = _Master(1)
        master.join(2, 0)
        master.write(100)
        assert master.state.confirmed_to == 200


class TestExpand:
    @pytest.mark.behaviour("S2-49", "S2-50")
    def test_a_replica_that_has_all_is_proposed_at_once(self) -> None:
        master = _Master(1)
        assert master.join(2, 100) == Propose(frozenset({1, 2}), 7)

    @pytest.mark.behaviour("S2-50")
    def test_it_is_proposed_by_the_ack_that_reaches_the_confirm_offset_and_by_none_before(self) -> None:
        master = _Master(1, log_end=500, confirmed_to=400)
        master.state.on_held(500)
        assert master.join(2, 300) is None
        assert master.ack(2, 499) is None
        assert master.ack(2, 500) == Propose(frozenset({1, 2}), 7)

    def test_it_must_have_reached_the_epochs_beginning(self) -> None:
        # Nothing before the epoch was known to be confirmed.
        master = _Master(1, 3, log_end=90, confirmed_to=0)
        master.log_end = 90
        assert master.join(2, 90) is None
        master.log_end = 100
        assert master.ack(2, 100) == Propose(frozenset({1, 2, 3}), 7)

    def test_it_must_have_had_all_that_there_was_at_an_earlier_look(self) -> None:
        # Replica 3 holds the confirm offset back, so it alone says little.
        master = _Master(1, 3, log_end=5000)
        master.join(3, 100)
        assert master.join(2, 100) is None
        master.write(1000)
        assert master.ack(2, 4000) is None
        assert master.ack(2, 5000) == Propose(frozenset({1, 2, 3}), 7)

    def test_one_that_is_always_a_little_behind_joins_all_the_same(self) -> None:
        master = _Master(1, 3, log_end=1000)
        master.join(3, 100)
        master.join(2, 900)
        master.write(100)
        assert master.ack(2, 1000) == Propose(frozenset({1, 2, 3}), 7)

    @pytest.mark.behaviour("S2-52")
    def test_a_learner_never_joins_and_is_never_counted(self) -> None:
        master = _Master(1)
        assert master.join(2, 100, is_learner=True) is None
        master.write(50)
        assert master.state.confirmed_to == 150
        assert master.ack(2, 150) is None
        assert master.tick(60) is None
        assert master.state.counted == {1}

    @pytest.mark.behaviour("S2-52")
    def test_a_member_that_comes_back_as_a_learner_leaves(self) -> None:
        master = _Master(1, 2)
        assert master.join(2, 100, is_learner=True) == Propose(frozenset({1}), 7)
        master.write(50)
        master.ack(2, 150)
        assert master.state.confirmed_to == 100

    @pytest.mark.parametrize("broker_id", [None, -1, 0, 1])
    def test_who_has_no_id_of_another_replica_is_nobody(self, broker_id: int | None) -> None:
        master = _Master(1)
        assert master.join(broker_id, 100) is None
        assert master.state.on_ack(broker_id, 100, log_end=100, now_s=0) is None
        assert master.state.on_left(broker_id, now_s=0) is None
        assert master.state.counted == {1}

    def test_one_that_lacks_part_of_what_is_not_confirmed_yet_does_not_join(self) -> None:
        # It began with the master's last file, behind the confirm offset.
        master = _Master(1, 3, log_end=5000)
        master.join(3, 100)
        assert master.join(2, 5000, held_from=4096) is None
        master.ack(3, 4096)
        assert master.ack(2, 5000) is None
        master.state.on_held(5000)
        assert master.ack(2, 5000) == Propose(frozenset({1, 2, 3}), 7)

    @pytest.mark.known_bug("RMQ #5663")
    def test_what_joins_counts_from_before_the_controller_is_asked(self) -> None:
        # RocketMQ's issue 5663: the controller may have taken it and elect it, before we hear of that.
        master = _Master(1)
        master.join(2, 100)
        master.write(50)
        assert master.state.counted == {1, 2}
        assert master.state.members == {1}
        assert master.state.confirmed_to == 100
        master.ack(2, 150)
        assert master.state.confirmed_to == 150


class TestShrink:
    @pytest.mark.behaviour("S2-50")
    def test_a_member_whose_connection_closes_is_to_leave_at_once(self) -> None:
        assert _master_with_2().leave(2) == Propose(frozenset({1}), 7)

    @pytest.mark.known_bug("early shrink")
    def test_what_leaves_counts_until_the_controller_has_confirmed_that(self) -> None:
        master = _master_with_2()
        master.leave(2)
        master.write(50)
        assert master.state.counted == {1, 2}
        assert master.state.confirmed_to == 100
        master.confirm()
        assert master.state.counted == {1}
        assert master.state.confirmed_to == 150

    @pytest.mark.behaviour("S2-50")
    def test_a_member_that_is_behind_for_too_long_is_to_leave(self) -> None:
        master = _master_with_2()
        master.write(50)
        assert master.tick(1) is None
        assert master.tick(MAX_BEHIND_S) is None
        assert master.tick(0.1) == Propose(frozenset({1}), 7)

    def test_a_member_that_lags_and_follows_stays(self) -> None:
        master = _master_with_2()
        for _ in range(100):
            master.write(50)
            assert master.tick(1) is None
            master.ack(2, master.log_end - 50)
        assert master.proposals == []

    def test_a_member_that_acks_and_falls_further_behind_leaves(self) -> None:
        master = _master_with_2()
        for _ in range(20):
            master.write(1000)
            master.tick(1)
            master.ack(2, master.log_end - 20_000 + 100)
        assert master.proposals == [Propose(frozenset({1}), 7)]

    def test_a_member_with_nothing_to_do_stays(self) -> None:
        master = _master_with_2()
        for _ in range(100):
            assert master.tick(1) is None
        master.write(50)
        assert master.tick(1) is None

    def test_a_member_that_never_came_may_take_as_long(self) -> None:
        master = _Master(1, 2)
        assert master.tick(MAX_BEHIND_S) is None
        assert master.tick(0.1) == Propose(frozenset({1}), 7)

    def test_one_that_is_back_before_its_leaving_was_confirmed_is_proposed_again(self) -> None:
        master = _master_with_2()
        master.leave(2)
        assert master.join(2, 100) is None
        assert master.confirm() == Propose(frozenset({1, 2}), 8)
        assert master.confirm() is None
        assert master.state.members == {1, 2}


class TestProposals:
    def test_there_is_one_at_a_time_and_the_newest_wish_follows(self) -> None:
        master = _master_with_2()
        master.leave(2)
        assert master.join(3, 100) is None
        assert master.join(4, 100) is None
        assert master.leave(4) is None
        assert master.confirm() == Propose(frozenset({1, 3}), 8)

    def test_a_refused_one_is_withdrawn_and_tried_again_later(self) -> None:
        master = _Master(1)
        master.join(2, 100)
        master.write(50)
        master.refuse(R.CONTROLLER_BROKER_METADATA_NOT_EXIST)
        assert master.state.counted == {1}
        assert master.state.confirmed_to == 150
        master.ack(2, 150)
        assert master.tick(RETRY_S / 2) is None
        assert master.tick(RETRY_S / 2) == Propose(frozenset({1, 2}), 7)

    def test_where_there_is_a_newer_set_one_may_have_made_it_and_counts_until_that_is_known(self) -> None:
        master = _Master(1)
        master.join(2, 100)
        master.refuse(R.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH)
        master.write(50)
        assert master.state.counted == {1, 2}
        assert master.state.confirmed_to == 100
        master.state.on_set_told([1], 8, now_s=master.now_s)
        assert (master.state.members, master.state.set_epoch) == ({1}, 8)

    def test_one_whom_the_controller_does_not_know_keeps_no_other_out(self) -> None:
        master = _Master(1)
        master.join(99, 100)
        master.join(2, 100)
        master.refuse(R.CONTROLLER_INVALID_REPLICAS)
        assert master.tick(RETRY_S) == Propose(frozenset({1, 2}), 7)
        assert master.confirm() is None
        assert master.tick(JOIN_AGAIN_S) == Propose(frozenset({1, 2, 99}), 8)

    def test_only_a_newer_set_is_taken(self) -> None:
        master = _master_with_2()
        assert master.state.on_set_told([1], 7, now_s=0) is None
        assert master.state.members == {1, 2}
        assert master.state.on_set_told([1], 8, now_s=0) == Propose(frozenset({1, 2}), 8)
        assert master.state.members == {1}

    def test_what_is_told_while_a_proposal_is_open_settles_it(self) -> None:
        master = _Master(1)
        master.join(2, 100)
        master.state.on_set_told([1, 2], 8, now_s=0)
        assert master.leave(2) is None
        # The answer to the proposal comes late, and the next one waits for it.
        assert master.confirm() == Propose(frozenset({1}), 8)

    def test_one_without_an_answer_counts_until_a_newer_set_is_known(self) -> None:
        master = _Master(1)
        master.join(2, 100)
        master.state.on_unanswered(now_s=master.now_s)
        master.leave(2)
        master.write(50)
        assert master.state.counted == {1, 2}
        assert master.state.confirmed_to == 100
        # If the controller takes the same set once more, it can not take the other any more.
        assert master.tick(RETRY_S) == Propose(frozenset({1}), 7)
        assert master.state.counted == {1, 2}
        assert master.confirm() is None
        assert master.state.counted == {1}
        assert master.state.confirmed_to == 150

    def test_that_it_was_taken_ends_the_doubt_too(self) -> None:
        master = _Master(1)
        master.join(2, 100)
        master.state.on_unanswered(now_s=master.now_s)
        assert master.state.on_set_told([1, 2], 8, now_s=master.now_s) is None
        assert master.state.members == {1, 2}
        assert master.tick(60) is None

    def test_a_controller_that_refuses_the_set_it_has_ends_the_doubt(self) -> None:
        master = _Master(1)
        master.join(2, 100)
        master.state.on_unanswered(now_s=master.now_s)
        master.leave(2)
        master.tick(RETRY_S)
        master.refuse(R.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED)
        assert master.state.counted == {1}

    def test_another_refusal_does_not(self) -> None:
        master = _Master(1)
        master.join(2, 100)
        master.state.on_unanswered(now_s=master.now_s)
        master.leave(2)
        master.tick(RETRY_S)
        master.refuse(R.CONTROLLER_NOT_LEADER)
        assert master.state.counted == {1, 2}

    def test_an_answer_to_nothing_changes_nothing(self) -> None:
        master = _master_with_2()
        master.refuse(R.CONTROLLER_INVALID_REPLICAS)
        master.state.on_unanswered(now_s=0)
        assert master.leave(2) == Propose(frozenset({1}), 7)
