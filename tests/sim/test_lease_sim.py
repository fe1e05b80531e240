"""Thousands of reigns on a virtual clock: what a master acknowledges, and what its successor has.

Rules that are left out one by one show that the histories would find it.
"""

import pytest

from tanist.ha.ack_right import AckRight
from tanist.ha.sync_state import SyncState
from tanist.sim.reign import run_history

SEEDS = range(1500)
FEW_SEEDS = range(300)


@pytest.mark.behaviour("S2-49", "S2-53")
@pytest.mark.known_bug("NATS #7567")
def test_nothing_that_all_of_the_set_acked_is_ever_lost() -> None:
    histories = [run_history(seed, is_all_ack=True) for seed in SEEDS]
    assert [seed for seed, history in zip(SEEDS, histories, strict=True) if history.lost] == []
    # Masters are replaced in most of them, and some acknowledge even then what all hold.
    replaced = [history for history in histories if history.elected_s is not None]
    assert len(replaced) > len(histories) / 2
    assert any(history.acked_after_election for history in replaced)


@pytest.mark.behaviour("S2-53")
@pytest.mark.known_bug("RMQ #6662", "RMQ #7017")
def test_no_master_acknowledges_on_the_word_of_its_lease_when_another_may_be_elected() -> None:
    histories = [run_history(seed, is_all_ack=False) for seed in SEEDS]
    assert [seed for seed, history in zip(SEEDS, histories, strict=True) if history.lost_after_election] == []
    # Where a send waits for one slave only, a switch may lose the last ones before it: no more is promised.
    assert any(history.lost for history in histories)


class _ExpandsLate(SyncState):
    """What is proposed does not count before it is confirmed."""

    def _recount(self) -> None:
        kept, self._proposed = self._proposed, None
        super()._recount()
        self._proposed = kept


class _ShrinksEarly(SyncState):
    """What is to leave counts no more before that is confirmed."""

    def _recount(self) -> None:
        kept = self.members
        self.members = self.members if self._proposed is None else self._proposed
        super()._recount()
        self.members = kept


class _ForgetsDoubt(SyncState):
    """A proposal without an answer is taken for refused."""

    def on_unanswered(self, *, now_s: float) -> None:
        super().on_unanswered(now_s=now_s)
        self._doubtful = frozenset()
        self._recount()


class _LooksPastTheLost(SyncState):
    """Only those that are connected count."""

    def _confirm(self) -> None:
        acks = [self._peers[broker_id].acked_to for broker_id in self._others if broker_id in self._peers]
        self.confirmed_to = max(self.confirmed_to, min(acks, default=self._held_to))


@pytest.mark.parametrize("mutant", [_ExpandsLate, _ShrinksEarly, _ForgetsDoubt, _LooksPastTheLost])
def test_a_set_that_counts_too_few_is_found(mutant: type[SyncState]) -> None:
    assert any(run_history(seed, is_all_ack=True, make_state=mutant).lost for seed in FEW_SEEDS)


def test_a_controller_that_refuses_the_set_it_has_is_found() -> None:
    # It leaves it open whether a proposal that is still on its way will be taken.
    assert any(run_history(seed, is_all_ack=True, takes_same_set=False).lost for seed in FEW_SEEDS)


class _AsksOnce(AckRight):
    """Whether it may acknowledge is asked before a message is written and not again."""

    def may_acknowledge(self, end: int, now_s: float) -> bool:
        return True


def test_an_answer_that_asks_no_clock_is_found() -> None:
    assert any(
        run_history(seed, is_all_ack=False, make_right=_AsksOnce).lost_after_election for seed in FEW_SEEDS
    )


def test_a_lease_without_a_margin_is_found() -> None:
    assert any(run_history(seed, is_all_ack=False, margin=0).lost_after_election for seed in FEW_SEEDS)
