"""Histories of groups that are moved: they go on where they were ordered to, and no other moves.

``test_mutation_gate`` shows what they would find.
"""

from typing import Any, cast

import pytest

from tanist.broker.offsets import OffsetTable
from tanist.model.offsets import QueueOffset
from tanist.protocol.bodies.sync import ConsumerOffsetTable
from tanist.sim.reset.tables import PlayedDisk, PlayedOffsetFile
from tanist.sim.reset.walk import walk
from tests.support.clocks import FakeClock
from tests.support.sim_seeds import RESET


@pytest.mark.takes(22)
@pytest.mark.known_bug("stuck reset")
def test_in_no_history_a_member_is_stuck_or_goes_on_elsewhere_than_was_ordered() -> None:
    histories = [walk(seed) for seed in RESET]
    assert [(each.seed, each.broken) for each in histories if each.broken is not None] == []
    # Several orders in most of them, and masters that are replaced in between.
    assert sum(history.order_count for history in histories) > 2 * len(histories)
    assert sum(history.switches for history in histories) > len(histories) / 2


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(1266, id="who stood still commits before its heartbeat"),
        pytest.param(1658, id="who comes back finds its queue with another, and has it again"),
        pytest.param(3327, id="who comes on two connections to a broker that stands still is asked again"),
        pytest.param(9837, id="who came often to a broker that stood still is not given up"),
        pytest.param(4229, id="who reads the old master for long is judged when it comes"),
        pytest.param(1949, id="who followed an order that a switch undid is told when it is given again"),
        pytest.param(9813, id="who hears of the old master's order after the new one's stays with that"),
    ],
)
def test_who_was_away_when_the_group_was_moved_does_not_take_it_elsewhere(seed: int) -> None:
    assert walk(seed).broken is None


def test_what_is_committed_at_one_broker_is_not_at_the_other_before_it_is_told() -> None:
    disk, begun = PlayedDisk(), ConsumerOffsetTable(offset_table={"T@G": {0: QueueOffset(0)}})
    files = [PlayedOffsetFile(disk, begun) for _ in range(2)]
    one, other = (OffsetTable.open(cast("Any", file), FakeClock()) for file in files)
    one.commit("G", "T", 0, 7)
    assert other.find("G", "T", 0) == 0
    # Nor does its own file have it before it is saved.
    assert OffsetTable.open(cast("Any", files[0]), FakeClock()).find("G", "T", 0) == 0


def test_the_same_seed_tells_the_same_history() -> None:
    assert walk(3) == walk(3)
