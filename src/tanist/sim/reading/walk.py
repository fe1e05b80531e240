"""Random histories: cables are cut, processes stand still, die and come back, the registry takes its time."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from tanist.broker.slave_consume.master_standing import MasterStanding
from tanist.broker.slave_consume.slave_standing import SlaveStanding
from tanist.model.reading import FULL
from tanist.model.topics import WRITE
from tanist.sim.broken import Broken
from tanist.sim.clockwork import Clockwork
from tanist.sim.reading.brokers import MakeMaster, MakeSlave
from tanist.sim.reading.registry import PlayedRegistry
from tanist.sim.reading.world import REGISTRY, SimWorld

Act: TypeAlias = Callable[[SimWorld, Random], None]

_TROUBLE_S = 25.0
_HEAL_S = 20.0
_CONSUME_S = 0.2


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that befalls a group. ``number`` chooses who has to do with it."""

    at_s: float
    act: Act
    number: int

    def __str__(self) -> str:
        return f"{self.at_s:.3f} {self.act.__name__.strip('_').replace('_', ' ')}"


@dataclass(frozen=True, slots=True)
class History:
    """What became of a group."""

    seed: int
    broken: str | None
    """The rule that did not hold, if any."""
    switches: int
    again_count: int
    troubles: tuple[Trouble, ...]
    transcript: tuple[str, ...]


def walk(
    seed: int,
    *,
    make_master: MakeMaster = MasterStanding,
    make_slave: MakeSlave = SlaveStanding,
    make_registry: Callable[[Clockwork], PlayedRegistry] = PlayedRegistry,
    acts: "Sequence[Act] | None" = None,
    troubles: tuple[Trouble, ...] | None = None,
) -> History:
    """The history of this seed, the same each time; with ``troubles`` only these of its own.

    ``acts`` are what may befall it, in the place of all there is.
    """
    chance = Random(seed)
    slaves = ("slave", "slave2") if chance.random() < 0.4 else ("slave",)
    is_slow, silence_s = chance.random() < 0.3, chance.choice((1.5, 8.0))
    drawn = tuple(_draw(chance, _ACTS if acts is None else acts))
    world = SimWorld(
        slaves,
        chance=Random(seed + 1),
        make_master=make_master,
        make_slave=make_slave,
        make_registry=make_registry,
    )
    world.cables.is_slow, world.cables.silence_s = is_slow, silence_s
    if troubles is None:
        troubles = drawn
    broken: str | None = None
    try:
        _play(world, Random(seed + 2), troubles)
    except Broken as error:
        broken = str(error)
    return History(seed, broken, world.switches, world.again_count, troubles, tuple(world.transcript))


def _draw(chance: Random, acts: Sequence[Act]) -> Iterator[Trouble]:
    at_s = chance.uniform(0.0, 3.0)
    while at_s < _TROUBLE_S:
        yield Trouble(round(at_s, 3), chance.choice(acts), chance.randrange(1 << 16))
        at_s += chance.choice((0.1, 0.5, 2.0, 6.0)) * chance.random()


def _play(world: SimWorld, chance: Random, troubles: tuple[Trouble, ...]) -> None:
    def consume() -> None:
        world.consume(chance.randrange(3))
        world.clockwork.after(_CONSUME_S, consume)

    for name in (REGISTRY, *world.brokers):
        world.start(name)
    consume()
    for trouble in troubles:
        world.clockwork.run_for(trouble.at_s - world.clockwork.now_s)
        trouble.act(world, Random(trouble.number))
    world.clockwork.run_for(_TROUBLE_S - world.clockwork.now_s)
    world.heal()
    if not world.clockwork.run_for(_HEAL_S, world.is_healed):
        raise Broken(f"R4: the master is {world.master.look()} at {world.clockwork.now_s:.3f}")


def _cut_one(world: SimWorld, chance: Random) -> None:
    slave = chance.choice(world.slaves).name
    one, other = chance.choice([("master", REGISTRY), ("master", slave), (slave, REGISTRY)])
    world.cut(one, other, is_one_way=chance.random() < 0.3)
    world.tell("cables", f"{one} and {other} are cut off")


def _cut_master_off(world: SimWorld, _chance: Random) -> None:
    world.cut("master", REGISTRY)
    for slave in world.slaves:
        world.cut("master", slave.name)
    world.tell("cables", "the master is cut off")


def _cut_master_off_for_checks(world: SimWorld, chance: Random) -> None:
    """The slave sees its master again just when it has counted its checks; the registry does not."""
    _cut_master_off(world, chance)
    world.cables.is_slow = True

    def mend() -> None:
        world.cables.mend(lambda way: REGISTRY not in way or "master" not in way)
        world.tell("cables", "mended between master and slaves")

    world.clockwork.after(chance.uniform(3.5, 7.5), mend)


def _mend(world: SimWorld, chance: Random) -> None:
    name = chance.choice([None, None, REGISTRY, *world.brokers])
    world.cables.mend(lambda way: name is None or name in way)
    world.tell("cables", f"mended to {name or 'all'}")


def _freeze(world: SimWorld, chance: Random) -> None:
    name = chance.choice(list(world.brokers))
    if world.brokers[name].process.is_awake:
        world.freeze(name)
        world.tell(name, "stands still")
        world.clockwork.after(chance.uniform(0.1, 8.0), lambda: world.thaw(name))


def _kill(world: SimWorld, chance: Random) -> None:
    name = chance.choice(["master", *world.brokers])
    world.tell(name, "dies")
    world.kill(name)


def _kill_for_a_moment(world: SimWorld, chance: Random) -> None:
    world.cables.is_slow = True
    _kill(world, chance)
    world.clockwork.after(chance.uniform(0.05, 1.0), lambda: _start(world, chance))


def _start(world: SimWorld, _chance: Random) -> None:
    for name, broker in world.brokers.items():
        if not broker.process.is_up:
            world.tell(name, "starts")
            world.start(name)


def _slow_down(world: SimWorld, _chance: Random) -> None:
    world.cables.is_slow = not world.cables.is_slow


def _switch_registry(world: SimWorld, chance: Random) -> None:
    if world.registry.process.is_up and chance.random() < 0.5:
        world.kill(REGISTRY)
        world.tell(REGISTRY, "is down")
    elif not world.registry.process.is_up:
        world.start(REGISTRY)
        world.tell(REGISTRY, "is up")


def _operate(world: SimWorld, chance: Random) -> None:
    """An operator sees that nobody else is read, and says so."""
    if chance.random() < 0.5 and world.master.process.is_awake:
        world.master.restore()
        return
    reader = world.registry.record.reader
    if reader is not None and not world.brokers[reader].process.is_up:
        world.end()


def _assign(world: SimWorld, chance: Random) -> None:
    world.assign(chance.choice(world.slaves).name, chance.choice((FULL, WRITE)))


_ACTS: tuple[Act, ...] = (
    *(_cut_one, _cut_one, _cut_master_off, _cut_master_off),
    *(_cut_master_off_for_checks, _cut_master_off_for_checks),
    *(_mend, _mend, _freeze, _freeze, _kill, _kill_for_a_moment, _start, _start),
    *(_slow_down, _switch_registry, _operate, _assign),
)

LATE_CLAIMS = (_cut_master_off_for_checks,)
LATE_LIVES = (_cut_master_off_for_checks, _kill_for_a_moment, _kill_for_a_moment, _mend)
