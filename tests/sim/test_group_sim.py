"""A thousand histories of groups under a controller, and what a broken one is shrunk to."""

import pytest

from tanist.sim.group.machines import Machines
from tanist.sim.group.troubles import Kind
from tanist.sim.group.walk import History, walk
from tanist.sim.shrinking import shortest, shrink
from tests.support.group_mutants import BelievesAnyAck
from tests.support.sim_seeds import GROUP

HALF = len(GROUP) // 2


@pytest.mark.known_bug("RMQ #7689", "NATS #7567")
@pytest.mark.takes(15)
@pytest.mark.parametrize("seeds", [GROUP[:HALF], GROUP[HALF:]], ids=["first half", "second half"])
def test_in_no_history_a_rule_is_broken_and_all_groups_end_with_one_log(seeds: range) -> None:
    histories = [walk(seed) for seed in seeds]
    assert [(each.seed, each.broken) for each in histories if each.broken is not None] == []
    # There are several reigns in most of them, and messages are acknowledged.
    assert sum(history.switches for history in histories) > 1.5 * len(histories)
    assert sum(history.ack_count for history in histories) > 20 * len(histories)


def test_of_a_broken_history_only_the_troubles_are_left_that_it_needs() -> None:
    mutant = Machines(master_link=BelievesAnyAck)
    whole = next(history for seed in GROUP if _is_long(history := walk(seed, machines=mutant)))
    assert whole.broken is not None
    found = shortest(lambda troubles: walk(whole.seed, machines=mutant, troubles=troubles))
    assert found.broken is not None
    assert found.broken[:3] == whole.broken[:3]
    # What is left out changes chance too, so another one may be needed for the same moment to come.
    assert Kind.FORGE in [trouble.kind for trouble in found.troubles]
    assert len(found.troubles) <= 2
    assert set(found.troubles) < set(whole.troubles)


def _is_long(history: History) -> bool:
    return history.broken is not None and len(history.troubles) >= 4


def test_a_sound_history_is_not_shrunk() -> None:
    assert shortest(lambda troubles: walk(0, troubles=troubles)) == walk(0)


def test_what_is_needed_together_is_kept() -> None:
    assert shrink(tuple(range(20)), lambda kept: {3, 11, 12} <= set(kept)) == (3, 11, 12)
    assert shrink((1, 2, 3), lambda _kept: True) == ()
