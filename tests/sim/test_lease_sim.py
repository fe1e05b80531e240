"""Hundreds of reigns on a virtual clock: what a master acknowledges, and what its successor has.

``test_mutation_gate`` shows what they would find.
"""

import pytest

from tanist.sim.reign import run_history
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
