"""What befalls a group: a list that is drawn before the history begins, so that parts of it can be left out.

Each trouble comes at its time and is over after another, whatever else happens.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from random import Random

from tanist.sim.group.naming import CONTROLLER, REGISTRY
from tanist.sim.group.world import GroupWorld

TROUBLE_S = 6.0
"""For so long troubles begin."""
_HOUR_MS = 3_600_000
_SAID = (b"GET / HTTP/1.1\r\n\r\n", (1 << 40).to_bytes(8), bytes(8), b"\xff" * 64, b"\x16\x03\x01" * 20)


class Kind(Enum):
    """What can happen."""

    KILL = "is killed"
    KILL_REPORTED = "is killed, and its supervisor tells"
    POWER = "loses power"
    POWER_ALL = "and all others lose power"
    POWER_AT_CUT = "loses power soon after it cuts its log"
    FREEZE = "stands still"
    FREEZE_CONTROLLER = "the controller stands still"
    KILL_CONTROLLER = "the controller is killed"
    ROLL_CONTROLLERS = "the controllers are restarted, first the one that does not lead"
    ROLL_WITHOUT = "can not reach the controllers, which are restarted"
    KILL_CONTROLLER_TOO = "is killed with the controller"
    CUT_REGISTRY = "the controller can not reach the registry"
    RESET_REGISTRY = "the registry's connections break"
    FREEZE_REGISTRY = "the registry has no leader"
    CUT_PAIR = "can not reach another"
    CUT_ONE_WAY = "is not heard by another"
    CUT_CONTROLLER = "can not reach the controllers"
    CUT_OFF = "is cut off"
    RESET = "loses its connections"
    SLOW = "cables are slow"
    REPEAT = "what replicas ask controllers is heard twice"
    FULL = "has a full disk"
    CLOCK = "the controllers' clocks are set"
    HAND_OVER = "is to be master"
    FORGE = "acks what was never sent"
    INTRUDE = "is called by a stranger"


_WITH_POWER = frozenset({Kind.POWER, Kind.POWER_ALL, Kind.POWER_AT_CUT})
_OF_NOBODY = frozenset(
    {
        Kind.FREEZE_CONTROLLER,
        Kind.KILL_CONTROLLER,
        Kind.ROLL_CONTROLLERS,
        Kind.CUT_REGISTRY,
        Kind.RESET_REGISTRY,
        Kind.FREEZE_REGISTRY,
        Kind.SLOW,
        Kind.REPEAT,
        Kind.CLOCK,
    }
)
_OFTEN = (Kind.KILL, Kind.POWER, Kind.POWER_AT_CUT, Kind.CUT_PAIR, Kind.CUT_OFF, Kind.FREEZE, Kind.RESET)


@dataclass(frozen=True, slots=True)
class Trouble:
    """One of them. ``number`` chooses who else has to do with it."""

    at_s: float
    kind: Kind
    broker_id: int
    """0 for whoever is master then."""
    lasts_s: float
    number: int

    def __str__(self) -> str:
        who = f"replica {self.broker_id} " if self.broker_id else "the master "
        what = self.kind.value if self.kind in _OF_NOBODY else who + self.kind.value
        return f"{self.at_s:.3f} {what}, for {self.lasts_s:.3f} s"


def draw(chance: Random, count: int, *, is_durable: bool) -> tuple[Trouble, ...]:
    """The troubles of a group with so many replicas, in their order."""
    kinds = [kind for kind in (*Kind, *_OFTEN) if is_durable or kind not in _WITH_POWER]
    drawn = [
        Trouble(
            at_s=round(chance.uniform(0.3, TROUBLE_S), 3),
            kind=chance.choice(kinds),
            broker_id=chance.choice((0, 0, *range(1, count + 1))),
            lasts_s=round(chance.choice((0.1, 0.6, 2.5)) * chance.uniform(0.3, 1.0), 3),
            number=chance.randrange(1 << 16),
        )
        for _ in range(chance.randint(2, 10))
    ]
    return tuple(sorted(drawn, key=lambda trouble: trouble.at_s))


def begin(world: GroupWorld, trouble: Trouble) -> None:
    """Have it happen, and be over in its time."""
    broker_id = trouble.broker_id or world.record.master_id or 1
    over = _ACTS[trouble.kind](world, broker_id, trouble.number)
    if over is not None:
        world.clockwork.after(trouble.lasts_s, over)


_Over = Callable[[], None] | None


def _kill(*, is_power: bool = False, is_reported: bool = False) -> "Callable[[GroupWorld, int, int], _Over]":
    def act(world: GroupWorld, broker_id: int, _number: int) -> _Over:
        world.kill(broker_id, is_power=is_power, is_reported=is_reported)
        return lambda: world.begin_again(broker_id)

    return act


def _power_all(world: GroupWorld, _broker_id: int, _number: int) -> _Over:
    for broker_id in world.replicas:
        world.kill(broker_id, is_power=True)

    def again() -> None:
        for broker_id in world.replicas:
            world.clockwork.after(
                world.chance.uniform(0.0, 0.5), lambda broker_id=broker_id: world.begin_again(broker_id)
            )

    return again


def _power_at_cut(world: GroupWorld, broker_id: int, number: int) -> _Over:
    def strike() -> None:
        world.kill(broker_id, is_power=True)
        world.clockwork.after(0.1, lambda: world.begin_again(broker_id))

    def on_cut() -> None:
        world.clockwork.after(number % 40 / 1000, strike)

    world.replicas[broker_id].on_next_cut = on_cut
    return None


def _freeze(world: GroupWorld, broker_id: int, _number: int) -> _Over:
    name = world.replicas[broker_id].process.name
    world.freeze(name)
    return lambda: world.thaw(name)


def _freeze_controller(world: GroupWorld, _broker_id: int, _number: int) -> _Over:
    name = world.leader.process.name
    world.freeze(name)
    return lambda: world.thaw(name)


def _kill_controller(world: GroupWorld, _broker_id: int, _number: int) -> _Over:
    controller = world.leader
    world.kill_controller(controller)
    return lambda: world.begin_to_control(controller)


def _roll_controllers(world: GroupWorld, _broker_id: int, number: int) -> _Over:
    controller = world.leader
    for other in world.controllers:
        if other is not controller:
            world.kill_controller(other)
            world.begin_to_control(other)
    # The other one may not have heard of everybody yet.
    world.clockwork.after(0.1 + number % 50 / 100, lambda: world.stop_controller(controller))
    return lambda: world.begin_to_control(controller)


def _roll_without(world: GroupWorld, broker_id: int, number: int) -> _Over:
    return _both(
        _cut_off(is_all=False)(world, broker_id, number), _roll_controllers(world, broker_id, number)
    )


def _both(one: _Over, other: _Over) -> _Over:
    def over() -> None:
        for each in (one, other):
            if each is not None:
                each()

    return over


def _kill_controller_too(world: GroupWorld, broker_id: int, number: int) -> _Over:
    return _both(_kill()(world, broker_id, number), _kill_controller(world, broker_id, number))


def _cut_registry(world: GroupWorld, _broker_id: int, number: int) -> _Over:
    name = world.leader.process.name
    ways = [(name, REGISTRY), (REGISTRY, name)][: 2 - number % 2]
    world.cut(*ways)
    return lambda: world.mend(*ways)


def _reset_registry(world: GroupWorld, _broker_id: int, _number: int) -> _Over:
    for controller in world.controllers:
        world.registry.drop(controller.process)
    return None


def _freeze_registry(world: GroupWorld, _broker_id: int, _number: int) -> _Over:
    world.tell(REGISTRY, "has no leader")
    world.registry.stand_still()
    return world.registry.go_on


def _cut(*, is_one_way: bool = False) -> "Callable[[GroupWorld, int, int], _Over]":
    def act(world: GroupWorld, broker_id: int, number: int) -> _Over:
        others = [each for each in world.replicas if each != broker_id]
        one = world.replicas[broker_id].process.name
        other = world.replicas[others[number % len(others)]].process.name
        ways = ((one, other),) if is_one_way else ((one, other), (other, one))
        world.cut(*ways)
        return lambda: world.mend(*ways)

    return act


def _cut_off(*, is_all: bool) -> "Callable[[GroupWorld, int, int], _Over]":
    def act(world: GroupWorld, broker_id: int, _number: int) -> _Over:
        one = world.replicas[broker_id].process.name
        others = [name for name in world.processes if name != one and (is_all or name.startswith(CONTROLLER))]
        ways = [way for other in others for way in ((one, other), (other, one))]
        world.cut(*ways)
        return lambda: world.mend(*ways)

    return act


def _reset(world: GroupWorld, broker_id: int, _number: int) -> _Over:
    world.replicas[broker_id].reset()
    return None


def _slow(world: GroupWorld, _broker_id: int, _number: int) -> _Over:
    world.cables.is_slow = True

    def over() -> None:
        world.cables.is_slow = False

    return over


def _repeat(world: GroupWorld, _broker_id: int, _number: int) -> _Over:
    world.cables.is_repeating = True

    def over() -> None:
        world.cables.is_repeating = False

    return over


def _fill(world: GroupWorld, broker_id: int, _number: int) -> _Over:
    world.tell(world.replicas[broker_id].process.name, "has a full disk")
    disk = world.replicas[broker_id].disk
    disk.is_full = True

    def over() -> None:
        disk.is_full = False

    return over


def _set_clocks(world: GroupWorld, _broker_id: int, number: int) -> _Over:
    for controller in world.controllers:
        controller.set_clock(_HOUR_MS if number % 2 else -_HOUR_MS)
    return None


def _hand_over(world: GroupWorld, broker_id: int, number: int) -> _Over:
    chosen = broker_id if number % 2 else 1 + number % len(world.replicas)
    world.hand_over(chosen)
    return None


def _forge(world: GroupWorld, broker_id: int, number: int) -> _Over:
    slaves = [each for each in world.replicas if each != world.record.master_id]
    world.forge(slaves[number % len(slaves)] if broker_id == world.record.master_id else broker_id)
    return None


def _intrude(world: GroupWorld, broker_id: int, number: int) -> _Over:
    world.intrude(broker_id, _SAID[number % len(_SAID)])
    return None


_ACTS: "dict[Kind, Callable[[GroupWorld, int, int], _Over]]" = {
    Kind.KILL: _kill(),
    Kind.KILL_REPORTED: _kill(is_reported=True),
    Kind.POWER: _kill(is_power=True),
    Kind.POWER_ALL: _power_all,
    Kind.POWER_AT_CUT: _power_at_cut,
    Kind.FREEZE: _freeze,
    Kind.FREEZE_CONTROLLER: _freeze_controller,
    Kind.KILL_CONTROLLER: _kill_controller,
    Kind.ROLL_CONTROLLERS: _roll_controllers,
    Kind.ROLL_WITHOUT: _roll_without,
    Kind.KILL_CONTROLLER_TOO: _kill_controller_too,
    Kind.CUT_REGISTRY: _cut_registry,
    Kind.RESET_REGISTRY: _reset_registry,
    Kind.FREEZE_REGISTRY: _freeze_registry,
    Kind.CUT_PAIR: _cut(),
    Kind.CUT_ONE_WAY: _cut(is_one_way=True),
    Kind.CUT_CONTROLLER: _cut_off(is_all=False),
    Kind.CUT_OFF: _cut_off(is_all=True),
    Kind.RESET: _reset,
    Kind.SLOW: _slow,
    Kind.REPEAT: _repeat,
    Kind.FULL: _fill,
    Kind.CLOCK: _set_clocks,
    Kind.HAND_OVER: _hand_over,
    Kind.FORGE: _forge,
    Kind.INTRUDE: _intrude,
}
