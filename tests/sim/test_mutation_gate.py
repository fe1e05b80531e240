"""The gate: bugs that this family of brokers had, planted one by one, are found by the simulations.

Each has the seed that found it when it was planted. Should a history be another one since, the seeds of the
test command are searched. What finds a bug has to be sound without it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tanist.sim.clockwork import Clockwork
from tanist.sim.group.machines import PRODUCTION, Machines
from tanist.sim.group.troubles import Kind, Trouble
from tanist.sim.group.walk import walk as group_walk
from tanist.sim.reading.registry import PlayedRegistry
from tanist.sim.reading.walk import LATE_CLAIMS, LATE_LIVES
from tanist.sim.reading.walk import walk as reading_walk
from tanist.sim.reign import run_history
from tanist.sim.reset import machines as reset_machines
from tanist.sim.reset.walk import walk as reset_walk
from tests.support import group_mutants, mutants, reset_mutants
from tests.support.sim_seeds import COUNTERS, GROUP, LATE, READING, RESET, TOLD_COUNT


class ForgetsWithTheSlave(PlayedRegistry):
    """Who is read is only known as long as that one has a session."""

    def _changed(self) -> None:
        reader = self.record.reader
        if reader is not None and reader not in self.presence:
            self.record = type(self.record)(group=self.record.group, second=self.record.second)
        super()._changed()


@dataclass(frozen=True)
class Planted:
    """One bug: how a seed is judged with and without it, which are told, and which one finds it."""

    with_bug: Callable[[int], object]
    without: Callable[[int], object]
    told: range
    seed: int


EMPTY_REIGN = (
    Trouble(1.273, Kind.CUT_OFF, 0, 0.3, 27),
    Trouble(2.402, Kind.KILL_REPORTED, 0, 0.05, 63),
    Trouble(2.661, Kind.POWER, 0, 0.8, 1),
)
"""A reign ends before anything that it wrote is on a disk."""


def _group(seed: int, troubles: tuple[Trouble, ...] | None = None, **parts: object) -> Planted:
    machines = Machines(**parts)  # pyright: ignore[reportArgumentType]
    return Planted(
        lambda each: group_walk(each, machines=machines, troubles=troubles).broken,
        lambda each: group_walk(each, machines=PRODUCTION, troubles=troubles).broken,
        GROUP,
        seed,
    )


def _reading(seed: int, **parts: object) -> Planted:
    acts = {"acts": parts["acts"]} if "acts" in parts else {}
    return Planted(
        lambda each: reading_walk(each, **parts).broken,  # pyright: ignore[reportArgumentType]
        lambda each: reading_walk(each, **acts).broken,  # pyright: ignore[reportArgumentType]
        LATE if acts else READING,
        seed,
    )


def _reset(seed: int, **parts: object) -> Planted:
    machines = reset_machines.Machines(**parts)  # pyright: ignore[reportArgumentType]
    return Planted(
        lambda each: reset_walk(each, machines=machines).broken,
        lambda each: reset_walk(each).broken,
        RESET,
        seed,
    )


def _lease(seed: int, **parts: object) -> Planted:
    return Planted(
        lambda each: run_history(each, is_all_ack=False, **parts).lost_after_election,  # pyright: ignore[reportArgumentType]
        lambda each: run_history(each, is_all_ack=False).lost_after_election,
        COUNTERS,
        seed,
    )


def _all_ack(seed: int, **parts: object) -> Planted:
    return Planted(
        lambda each: run_history(each, is_all_ack=True, **parts).lost,  # pyright: ignore[reportArgumentType]
        lambda each: run_history(each, is_all_ack=True).lost,
        COUNTERS,
        seed,
    )


def _registry(clockwork: Clockwork) -> PlayedRegistry:
    return ForgetsWithTheSlave(clockwork)


GATE = {
    "RocketMQ #5663: who joins does not count before that is confirmed": _group(
        0, sync_state=mutants.ExpandsLate
    ),
    "who leaves counts no more before that is confirmed": _group(1, sync_state=mutants.ShrinksEarly),
    "RocketMQ #6662: confirmed moves on at a master that is cut off": _group(
        0, sync_state=mutants.LooksPastTheLost
    ),
    "RocketMQ #7017: two masters acknowledge": _group(13, ack_right=mutants.AsksOnce),
    "RocketMQ #7689: controller and master are gone together": _group(
        13, reigns=group_mutants.WaitsForNoLease
    ),
    "RocketMQ #9942: the same master, and an epoch that wrote nothing": _group(
        27, EMPTY_REIGN, disk=group_mutants.GoesOnInTheOldEpoch
    ),
    "RocketMQ #10666: what was cut comes back": _group(482, disk=group_mutants.CutsWithoutNote),
    "the poison: an absurd ack is believed": _group(26, master_link=group_mutants.BelievesAnyAck),
    "the record of slave consumption is ephemeral": _reading(0, make_registry=_registry),
    "the early permission: a slave is read while its master counts on it": _reading(
        6, make_slave=mutants.PromisesNothing, acts=LATE_CLAIMS
    ),
    "KIP-966: acknowledged before it is on the disk": _group(1, disk=group_mutants.SaysFlushedBefore),
    "an election from outside of the set": _group(3, reigns=group_mutants.ElectsAnybody),
    "a log that diverged is not cut": _group(0, slave_link=group_mutants.CutsNothing),
    "a log is cut by too few epochs": _group(41, slave_link=group_mutants.KnowsItsFirstEpochOnly),
    "an epoch is not on the disk": _group(3, disk=group_mutants.ForgetsItsEpoch),
    "a master that is elected again reigns on": _group(72, role_orders=group_mutants.StaysInItsReign),
    "a silent master is replaced although its lease may run": _group(13, reigns=group_mutants.ElectsAtOnce),
    "a controller that stood still leads on": _group(22, leading=group_mutants.BelievesItsSession),
    "a controller counts on its session for too long": _group(22, registry=group_mutants.HeldForTooLong),
    "a watch is not set again on a new connection": _group(62, registry=group_mutants.WatchesOneConnection),
    "what is ephemeral outlives its session": _group(2, zookeeper=group_mutants.OutlivesItsSession),
    "a proposal without an answer is taken for refused": _group(26, sync_state=mutants.ForgetsDoubt),
    "a controller refuses the set that it has": _all_ack(385, takes_same_set=False),
    "a lease without a margin": _lease(863, margin=0),
    "a master counts on its slave for too long": _reading(0, make_master=mutants.LongLease),
    "a slave is read while it hands back": _reading(0, make_slave=mutants.ReadsOn),
    "a master never gives up": _reading(0, make_master=mutants.StaysUp),
    "a master counts on a slave that is read": _reading(3, make_master=mutants.BelievesReaders),
    "a slave takes itself for the second": _reading(1, make_slave=mutants.AnySlave),
    "a slave follows offsets before it knows": _reading(0, make_slave=mutants.TakesOldOffsets),
    "a slave says that it is not read before it knows": _reading(
        30, make_slave=mutants.SpeaksTooSoon, acts=LATE_LIVES
    ),
    "a master takes back less than it had itself": _reading(
        19, make_master=mutants.TakesLess, acts=LATE_LIVES
    ),
    "an order moves other groups too": _reset(2, reset_handler=reset_mutants.MovesAllGroups),
    "a broadcasting member that has taken no queue follows no order": _reset(
        21, resets=reset_mutants.MovesWhatItHas
    ),
    "an order is acknowledged that only its master knows": _reset(
        61, reset_handler=reset_mutants.AnswersAtOnce
    ),
    "a crash takes back an order that was acknowledged": _reset(
        290, set_unsaved=reset_mutants.set_what_stands_as_found
    ),
}

REQUIRED = ("#5663", "#6662", "#7017", "#7689", "#9942", "#10666", "poison", "ephemeral", "early permission")


@pytest.mark.parametrize("name", GATE)
def test_a_planted_bug_is_found_by_a_history_that_is_sound_without_it(name: str) -> None:
    planted = GATE[name]
    found = next((seed for seed in (planted.seed, *planted.told) if planted.with_bug(seed)), None)
    assert planted.seed in planted.told
    assert found is not None, f"no history of {len(planted.told)} finds it"
    assert not planted.without(found)


def test_the_gate_has_the_bugs_that_it_must_have() -> None:
    assert len(GATE) >= 15
    assert [bug for bug in REQUIRED if not any(bug in name for name in GATE)] == []


def test_two_thousand_histories_are_told_and_half_of_them_of_whole_groups() -> None:
    assert TOLD_COUNT >= 2_000
    assert len(GROUP) >= 1_000
