"""Hundreds of histories of a group with fixed roles: never are two brokers read at once, or offsets lost.

``test_mutation_gate`` shows what they would find.
"""

import pytest

from tanist.sim.reading.walk import LATE_CLAIMS, LATE_LIVES, walk
from tanist.sim.shrinking import shortest
from tests.support import mutants
from tests.support.sim_seeds import LATE, READING


@pytest.mark.behaviour("S3-15", "S3-22", "S3-26", "S3-37", "S3-45", "S3-54")
@pytest.mark.known_bug("lost read flag")
def test_in_no_history_two_are_read_at_once_or_an_offset_is_lost_and_all_end_with_the_master() -> None:
    histories = [walk(seed) for seed in READING]
    assert [(each.seed, each.broken) for each in histories if each.broken is not None] == []
    # Slaves are read in a good part of them.
    assert sum(history.switches for history in histories) > len(histories) / 4


def test_no_late_claim_and_no_short_life_breaks_a_rule() -> None:
    for acts in (LATE_CLAIMS, LATE_LIVES):
        assert [seed for seed in LATE if walk(seed, acts=acts).broken is not None] == []


def test_a_history_that_breaks_is_told_with_what_it_needs_to_break() -> None:
    whole = walk(0, make_master=mutants.StaysUp)
    found = shortest(lambda troubles: walk(0, make_master=mutants.StaysUp, troubles=troubles))
    assert found.broken is not None
    assert whole.broken is not None
    assert found.broken[:3] == whole.broken[:3]
    assert 0 < len(found.troubles) < len(whole.troubles) / 2
