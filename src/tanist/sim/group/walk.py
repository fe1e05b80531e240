"""One history of a group under a controller: troubles for a while, then none, and then all must be well."""

from dataclasses import dataclass
from random import Random

from tanist.ha.sync_state import JOIN_AGAIN_S
from tanist.sim.alone import alone
from tanist.sim.broken import Broken
from tanist.sim.group.around import SESSION_S, TIMEOUT_MS, Promise
from tanist.sim.group.machines import PRODUCTION, Machines
from tanist.sim.group.troubles import TROUBLE_S, Trouble, begin, draw
from tanist.sim.group.world import GroupWorld

_HEAL_S = 2 * SESSION_S + TIMEOUT_MS / 1000
"""From when nothing is late any more: within two sessions a controller leads, and then the lease of the last
master is over. So long it takes until there is a master."""
_IN_STEP_S = _HEAL_S + JOIN_AGAIN_S
"""And then until all are in step: another controller may lead by then, and the last one may have refused
somebody, who is not proposed again at once."""


@dataclass(frozen=True, slots=True)
class History:
    """What became of a group."""

    seed: int
    broken: str | None
    """The rule that did not hold, if any."""
    switches: int
    ack_count: int
    troubles: tuple[Trouble, ...]
    transcript: tuple[str, ...]


def walk(
    seed: int, *, machines: Machines = PRODUCTION, troubles: tuple[Trouble, ...] | None = None
) -> History:
    """The history of this seed, the same each time; with ``troubles`` only these of its own."""
    chance = Random(seed)
    count = chance.choice((2, 3, 3, 3, 3, 5))
    promise = Promise(
        is_durable=chance.random() < 0.6,
        is_slow=chance.random() < 0.3,
        waits_for_all=chance.random() < 0.75,
    )
    drawn = draw(chance, count, is_durable=promise.is_durable)
    if troubles is None:
        troubles = drawn
    broken: str | None = None
    with alone(seed):
        world = GroupWorld(count, promise, chance=Random(seed + 1), machines=machines)
        try:
            _play(world, troubles)
        except Broken as error:
            broken = f"{error} at {world.clockwork.now_s:.3f}"
        finally:
            world.end()
    return History(seed, broken, world.switches, world.ack_count, troubles, tuple(world.transcript))


def _play(world: GroupWorld, troubles: tuple[Trouble, ...]) -> None:
    world.start()
    for trouble in troubles:
        world.clockwork.run_for(trouble.at_s - world.clockwork.now_s)
        begin(world, trouble)
    world.clockwork.run_for(TROUBLE_S - world.clockwork.now_s)
    world.heal()
    healed_s = world.clockwork.now_s
    world.clockwork.run_for(world.cables.latest_s - healed_s, lambda: world.has_acked_since(healed_s))
    if not world.clockwork.run_for(_HEAL_S, lambda: world.has_acked_since(healed_s)):
        raise Broken(f"L1: nothing is acknowledged any more; {world.complaint()}")
    world.is_producing = False
    if not world.clockwork.run_for(_IN_STEP_S, world.is_healed):
        raise Broken(world.complaint() or "L1: the group is never at rest")
    assert world.record.master_id is not None
    world.rules.check_master(world.record.master_id)
