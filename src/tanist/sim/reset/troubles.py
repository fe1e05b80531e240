"""What befalls a group that is moved: orders first of all, and what comes in between."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from random import Random

from tanist.sim.reset.around import QUEUES
from tanist.sim.reset.links import Place
from tanist.sim.reset.member import NAME_SERVER
from tanist.sim.reset.world import BESIDE, TOPIC, ResetWorld

TROUBLE_S = 60.0
"""For so long troubles begin."""
_LATE_MS = 3_600_000


class Kind(Enum):
    """What can happen."""

    ORDER = "the group is ordered elsewhere"
    KILL_MASTER = "the master is killed"
    KILL_SLAVE = "the slave is killed"
    SWITCH = "the slave becomes master"
    FREEZE_MASTER = "the master stands still"
    FREEZE_MEMBER = "a member stands still"
    KILL_MEMBER = "a member is killed"
    LEAVE = "a member leaves"
    JOIN = "a member comes"
    HANG_UP = "a member's connections break"
    CUT_MEMBER = "a member is cut off from a broker"
    CUT_FEED = "the slave hears nothing of its master"
    LOSE_ANSWERS = "answers are lost"
    SLOW = "cables are slow"
    SLOW_WORK = "a member takes long for a message"
    DISK_FULL = "the master's disk is full"
    CLOCK = "the master's clock is set"


_OFTEN = (
    *(Kind.ORDER,) * 8,
    Kind.KILL_MASTER,
    Kind.SWITCH,
    Kind.JOIN,
    Kind.LEAVE,
    Kind.HANG_UP,
    Kind.KILL_MEMBER,
)


@dataclass(frozen=True, slots=True)
class Trouble:
    """One of them. ``number`` chooses who has to do with it, and where an order goes."""

    at_s: float
    kind: Kind
    lasts_s: float
    number: int

    def __str__(self) -> str:
        return f"{self.at_s:.3f} {self.kind.value}, for {self.lasts_s:.3f} s"


def draw(chance: Random) -> tuple[Trouble, ...]:
    """The troubles of a history, in their order. There is an order in each."""
    kinds = [Kind.ORDER, *(chance.choice((*Kind, *_OFTEN)) for _ in range(chance.randint(2, 9)))]
    drawn = [
        Trouble(
            at_s=round(chance.uniform(1.0, TROUBLE_S), 3),
            kind=kind,
            lasts_s=round(chance.choice((0.5, 3.0, 12.0, 45.0)) * chance.uniform(0.3, 1.0), 3),
            number=chance.randrange(1 << 16),
        )
        for kind in kinds
    ]
    # What comes soon after an order meets its members in the middle of it.
    close = [
        Trouble(round(order.at_s + chance.uniform(0.0, 1.0), 3), kind, lasts_s=2.0, number=order.number)
        for order in drawn
        if order.kind is Kind.ORDER and chance.random() < 0.5
        for kind in (
            chance.choice((Kind.SWITCH, Kind.KILL_MASTER, Kind.KILL_MEMBER, Kind.JOIN, Kind.HANG_UP)),
        )
    ]
    return tuple(sorted((*drawn, *close), key=lambda trouble: trouble.at_s))


def begin(world: ResetWorld, trouble: Trouble) -> None:
    """Have it happen, and be over in its time."""
    over = _ACTS[trouble.kind](world, trouble.number)
    if over is not None:
        world.clockwork.after(trouble.lasts_s, over)


_Over = Callable[[], None] | None


def _order(world: ResetWorld, number: int) -> _Over:
    chance = Random(number)
    topic = chance.choice((TOPIC, TOPIC, BESIDE))
    queues = range(QUEUES) if chance.random() < 0.6 else [chance.randrange(QUEUES)]
    targets: dict[int, int] = {}
    for queue_id in queues:
        end = world.around.end_of(topic, queue_id)
        targets[queue_id] = chance.choice(
            (0, end, chance.randint(0, end), max(0, end - chance.randint(1, 4)))
        )
    world.order(topic, targets)
    return None


def _kill_master(world: ResetWorld, _number: int) -> _Over:
    broker = world.master
    world.kill(broker)
    return lambda: world.begin_again(broker)


def _kill_slave(world: ResetWorld, _number: int) -> _Over:
    broker = world.slave
    world.kill(broker)
    return lambda: world.begin_again(broker)


def _switch(world: ResetWorld, _number: int) -> _Over:
    world.switch()
    return None


def _freeze(world: ResetWorld, place: Place) -> _Over:
    world.freeze(place)
    return lambda: world.thaw(place)


def _kill_member(world: ResetWorld, number: int) -> _Over:
    member = world.members[number % len(world.members)]
    if not member.is_there:
        return None
    world.tell(member.name, "is killed")
    member.kill()

    def again() -> None:
        if not member.place.process.is_up:
            world.tell(member.name, "starts")
            member.start()

    return again


def _leave(world: ResetWorld, number: int) -> _Over:
    member = world.members[number % len(world.members)]
    if member.is_there and member.place.process.is_awake:
        world.tell(member.name, "leaves")
        member.leave()
    return None


def _join(world: ResetWorld, _number: int) -> _Over:
    away = [member for member in world.members if not member.place.process.is_up]
    if away:
        world.tell(away[0].name, "comes")
        away[0].start()
    return None


def _hang_up(world: ResetWorld, number: int) -> _Over:
    member = world.members[number % len(world.members)]
    world.tell(member.name, "loses its connections")
    for end in [*member.place.ends]:
        end.other.break_off()
    return None


def _cut(world: ResetWorld, one: str, *others: str) -> _Over:
    ways = [way for other in others for way in ((one, other), (other, one))]
    world.cut(*ways)
    return lambda: world.mend(*ways)


def _cut_member(world: ResetWorld, number: int) -> _Over:
    member = world.members[number % len(world.members)]
    others = [*world.brokers, NAME_SERVER]
    return _cut(world, member.name, *(others if number % 3 else others[number % 2 :][:1]))


def _lose_answers(world: ResetWorld, _number: int) -> _Over:
    world.around.answer_loss = 0.3

    def over() -> None:
        world.around.answer_loss = 0.0

    return over


def _slow(world: ResetWorld, _number: int) -> _Over:
    world.cables.is_slow = True

    def over() -> None:
        world.cables.is_slow = False

    return over


def _slow_work(world: ResetWorld, number: int) -> _Over:
    member = world.members[number % len(world.members)]
    member.work_s = (0.5, 14.0)

    def over() -> None:
        member.work_s = (0.01, 0.1)

    return over


def _disk_full(world: ResetWorld, _number: int) -> _Over:
    disk = world.master.disk
    disk.is_full = True

    def over() -> None:
        disk.is_full = False

    return over


def _clock(world: ResetWorld, number: int) -> _Over:
    world.master.clock.is_wrong_by_ms += _LATE_MS if number % 2 else -_LATE_MS
    return None


_ACTS: "dict[Kind, Callable[[ResetWorld, int], _Over]]" = {
    Kind.ORDER: _order,
    Kind.KILL_MASTER: _kill_master,
    Kind.KILL_SLAVE: _kill_slave,
    Kind.SWITCH: _switch,
    Kind.FREEZE_MASTER: lambda world, _number: _freeze(world, world.master.place),
    Kind.FREEZE_MEMBER: lambda world, number: _freeze(
        world, world.members[number % len(world.members)].place
    ),
    Kind.KILL_MEMBER: _kill_member,
    Kind.LEAVE: _leave,
    Kind.JOIN: _join,
    Kind.HANG_UP: _hang_up,
    Kind.CUT_MEMBER: _cut_member,
    Kind.CUT_FEED: lambda world, _number: _cut(world, world.master.name, world.slave.name),
    Kind.LOSE_ANSWERS: _lose_answers,
    Kind.SLOW: _slow,
    Kind.SLOW_WORK: _slow_work,
    Kind.DISK_FULL: _disk_full,
    Kind.CLOCK: _clock,
}
