"""What befalls a group: a list that is drawn before the history begins, so that parts of it can be left out.

Each trouble comes at its time and is over after another, whatever else happens.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from random import Random

from tanist.sim.group.controller import CONTROLLER
from tanist.sim.group.world import GroupWorld

TROUBLE_S = 6.0
"""For so long troubles begin."""
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
    LEAD_ANEW = "another controller leads"
    LEAD_ANEW_AND_KILL = "is killed with the controller"
    CUT_PAIR = "can not reach another"
    CUT_ONE_WAY = "is not heard by another"
    CUT_CONTROLLER = "can not reach the controller"
    CUT_OFF = "is cut off"
    RESET = "loses its connections"
    SLOW = "cables are slow"
    HAND_OVER = "is to be master"
    FORGE = "acks what was never sent"
    INTRUDE = "is called by a stranger"


_WITH_POWER = frozenset({Kind.POWER, Kind.POWER_ALL, Kind.POWER_AT_CUT})
_OF_NOBODY = frozenset({Kind.FREEZE_CONTROLLER, Kind.LEAD_ANEW, Kind.SLOW})
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
    broker_id = trouble.broker_id or world.controller.record.master_id or 1
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
    world.freeze(CONTROLLER)
    return lambda: world.thaw(CONTROLLER)


def _lead_anew(world: GroupWorld, _broker_id: int, _number: int) -> _Over:
    world.tell(CONTROLLER, "another one leads")
    world.controller.start()
    return None


def _lead_anew_and_kill(world: GroupWorld, broker_id: int, number: int) -> _Over:
    over = _kill()(world, broker_id, number)
    _lead_anew(world, broker_id, number)
    return over


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
        others = [name for name in world.processes if name != one] if is_all else [CONTROLLER]
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


def _hand_over(world: GroupWorld, broker_id: int, number: int) -> _Over:
    chosen = broker_id if number % 2 else 1 + number % len(world.replicas)
    if world.controller.process.is_awake:
        world.tell("operator", f"wants {chosen} for master")
        world.controller.hand_over(chosen)
    return None


def _forge(world: GroupWorld, broker_id: int, number: int) -> _Over:
    slaves = [each for each in world.replicas if each != world.controller.record.master_id]
    world.forge(slaves[number % len(slaves)] if broker_id == world.controller.record.master_id else broker_id)
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
    Kind.LEAD_ANEW: _lead_anew,
    Kind.LEAD_ANEW_AND_KILL: _lead_anew_and_kill,
    Kind.CUT_PAIR: _cut(),
    Kind.CUT_ONE_WAY: _cut(is_one_way=True),
    Kind.CUT_CONTROLLER: _cut_off(is_all=False),
    Kind.CUT_OFF: _cut_off(is_all=True),
    Kind.RESET: _reset,
    Kind.SLOW: _slow,
    Kind.HAND_OVER: _hand_over,
    Kind.FORGE: _forge,
    Kind.INTRUDE: _intrude,
}
