"""Hundreds of reigns on a virtual clock: what a master acknowledges, and what its successor has.

``test_mutation_gate`` shows what they would find.
"""

import pytest

from tanist.sim.reign import Trouble, run_history
from tanist.sim.shrinking import shortest
from tests.support.sim_seeds import COUNTERS


@pytest.mark.behaviour("S2-49", "S2-53")
@pytest.mark.known_bug("NATS #7567")
def test_nothing_that_all_of_the_set_acked_is_ever_lost() -> None:
    histories = [run_history(seed, is_all_ack=True) for seed in COUNTERS]
    assert [seed for seed, history in zip(COUNTERS, histories, strict=True) if history.lost] == []
    # Masters are replaced in most of them, and some acknowledge even then what all hold.
    replaced = [history for history in histories if history.elected_s is not None]
    assert len(replaced) > len(histories) / 2
    assert any(history.acked_after_election for history in replaced)


@pytest.mark.behaviour("S2-53")
@pytest.mark.known_bug("RMQ #6662", "RMQ #7017")
def test_no_master_acknowledges_on_the_word_of_its_lease_when_another_may_be_elected() -> None:
    histories = [run_history(seed, is_all_ack=False) for seed in COUNTERS]
    assert [
        seed for seed, history in zip(COUNTERS, histories, strict=True) if history.lost_after_election
    ] == []
    # Where a send waits for one slave only, a switch may lose the last ones before it: no more is promised.
    assert any(history.lost for history in histories)


def test_a_reign_that_breaks_is_told_with_what_it_needs_to_break() -> None:
    whole = run_history(863, is_all_ack=False, margin=0)
    found = shortest(lambda troubles: run_history(863, is_all_ack=False, margin=0, troubles=troubles))
    assert found.broken is not None
    assert found.broken[:3] == "S8:"
    assert set(found.troubles) < set(whole.troubles)
    assert not any(
        run_history(863, is_all_ack=False, margin=0, troubles=_without(trouble, found.troubles)).broken
        for trouble in found.troubles
    )


def _without(trouble: Trouble, troubles: tuple[Trouble, ...]) -> tuple[Trouble, ...]:
    return tuple(each for each in troubles if each != trouble)
