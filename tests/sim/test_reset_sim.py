"""Histories of groups that are moved: they go on where they were ordered to, and no other moves.

``test_mutation_gate`` shows what they would find.
"""

import pytest

from tanist.sim.reset.walk import walk
from tests.support.sim_seeds import RESET


@pytest.mark.takes(10)
@pytest.mark.known_bug("stuck reset")
def test_in_no_history_a_member_is_stuck_or_goes_on_elsewhere_than_was_ordered() -> None:
    histories = [walk(seed) for seed in RESET]
    assert [(each.seed, each.broken) for each in histories if each.broken is not None] == []
    # Several orders in most of them, and masters that are replaced in between.
    assert sum(history.order_count for history in histories) > 2 * len(histories)
    assert sum(history.switches for history in histories) > len(histories) / 2


def test_the_same_seed_tells_the_same_history() -> None:
    assert walk(3) == walk(3)
