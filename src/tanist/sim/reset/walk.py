"""One history of a group that is moved: troubles for a minute, then none, and then all must be well."""

from dataclasses import dataclass
from random import Random

from tanist.sim.alone import alone
from tanist.sim.broken import Broken
from tanist.sim.reset.machines import PRODUCTION, Machines
from tanist.sim.reset.troubles import TROUBLE_S, Trouble, begin, draw
from tanist.sim.reset.world import ResetWorld

_SETTLED_S = 40.0
_HEAL_S = 90.0


@dataclass(frozen=True, slots=True)
class History:
    """What became of a group."""

    seed: int
    broken: str | None
    switches: int
    order_count: int
    troubles: tuple[Trouble, ...]
    transcript: tuple[str, ...]


def walk(
    seed: int, *, machines: Machines = PRODUCTION, troubles: tuple[Trouble, ...] | None = None
) -> History:
    """The history of this seed, the same each time; with ``troubles`` only these of its own."""
    chance = Random(seed)
    is_broadcasting = chance.random() < 0.35
    is_orderly = chance.random() < 0.25
    drawn = draw(chance)
    if troubles is None:
        troubles = drawn
    broken: str | None = None
    with alone(seed):
        world = ResetWorld(
            is_broadcasting=is_broadcasting,
            is_orderly=is_orderly,
            chance=Random(seed + 1),
            machines=machines,
        )
        try:
            _play(world, troubles)
        except Broken as error:
            broken = f"{error} at {world.clockwork.now_s:.3f}"
        finally:
            world.end()
    order_count = len({given.order_id for each in world.rules.given.values() for given in each})
    return History(seed, broken, world.switches, order_count, troubles, tuple(world.transcript))


def _play(world: ResetWorld, troubles: tuple[Trouble, ...]) -> None:
    world.start()
    for trouble in troubles:
        world.clockwork.run_for(trouble.at_s - world.clockwork.now_s)
        begin(world, trouble)
    world.clockwork.run_for(TROUBLE_S - world.clockwork.now_s)
    world.heal()
    world.rules.quiet_since_s = world.clockwork.now_s + _SETTLED_S
    end_s = world.clockwork.now_s + _HEAL_S
    while (complaint := world.complaint()) is not None:
        if world.clockwork.now_s >= end_s:
            raise Broken(complaint)
        world.clockwork.run_for(1.0)
