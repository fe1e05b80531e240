"""A master's reign on a virtual clock: its slaves, a controller, and a network that delays, loses and cuts.

The master is the pure one of ``tanist.ha``. Clocks run up to 5 % fast or slow, the master is stopped for a
while as by SIGSTOP, and one seed is one history. When the controller has not heard of the master for the
timeout on its own clock it elects one of the sync state set, which then follows no more. What it holds then
is all that is left: the history tells what was acknowledged and is lost, and what was acknowledged
after the election on the word of a lease. What befalls a reign is drawn before it begins; which messages
are late or lost is chance.
"""

import heapq
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from tanist.ha.ack_right import AckRight
from tanist.ha.lease import MARGIN, Lease
from tanist.ha.sync_state import Propose, SyncState
from tanist.protocol.codes import ResponseCode

TIMEOUT_S = 1.0
"""After so long without a heartbeat a master is replaced."""
EPOCH = 2
_HORIZON_S = 8.0
_SLAVES = (2, 3)
_NOT_LINKED = 1 << 60
_HEARTBEAT_S = 0.2
_ANSWER_S = 0.5
"""So long the master waits for the answer to a request."""
_MAX_BEHIND_S = 1.0


class Kind(Enum):
    """What can befall a reign."""

    STANDSTILL = "the master stands still"
    SILENCE = "the controller hears next to nothing of the master from now on"
    CUT = "a slave loses its connection"


@dataclass(frozen=True, slots=True)
class Trouble:
    """One of them; ``slave`` is whose connection is cut."""

    at_s: float
    kind: Kind
    lasts_s: float = 0.0
    slave: int = 0

    def __str__(self) -> str:
        lasts = f", for {self.lasts_s:.3f} s" if self.lasts_s else ""
        return f"{self.at_s:.3f} {self.kind.value}{lasts}{f': {self.slave}' if self.slave else ''}"


def draw(chance: random.Random) -> tuple[Trouble, ...]:
    """The troubles of a reign, in their order."""

    def cuts(slave: int) -> Iterator[Trouble]:
        at_s = chance.expovariate(0.7)
        while at_s < _HORIZON_S:
            yield Trouble(round(at_s, 3), Kind.CUT, slave=slave)
            at_s += 1 + chance.expovariate(0.7)

    silence = Trouble(round(chance.uniform(0.5, 5), 3), Kind.SILENCE)
    standstill = Trouble(
        round(chance.uniform(0.2, 6), 3), Kind.STANDSTILL, lasts_s=round(chance.uniform(0, 3), 3)
    )
    drawn = (silence, standstill, *(cut for slave in _SLAVES for cut in cuts(slave)))
    return tuple(sorted(drawn, key=lambda trouble: trouble.at_s))


@dataclass
class History:
    """What came of one seed."""

    seed: int
    is_all_ack: bool
    troubles: tuple[Trouble, ...] = ()
    elected_s: float | None = None
    successor_end: int = 0
    acked: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])
    """When each send was acknowledged, and its end."""
    transcript: list[str] = field(default_factory=list[str])
    """What happened, line by line."""

    @property
    def broken(self) -> str | None:
        """The rule that did not hold, if any."""
        lost = self.lost if self.is_all_ack else self.lost_after_election
        rule = "S1" if self.is_all_ack else "S8"
        return f"{rule}: acknowledged and not in the successor's log: {lost}" if lost else None

    @property
    def lost(self) -> list[tuple[float, int]]:
        """Acknowledged, and not in the successor's log."""
        return [] if self.elected_s is None else [ack for ack in self.acked if ack[1] > self.successor_end]

    @property
    def switches(self) -> int:
        """How often another took over."""
        return int(self.elected_s is not None)

    @property
    def acked_after_election(self) -> bool:
        return self.elected_s is not None and any(at_s >= self.elected_s for at_s, _ in self.acked)

    @property
    def lost_after_election(self) -> list[tuple[float, int]]:
        return [ack for ack in self.lost if self.elected_s is not None and ack[0] >= self.elected_s]


class World:
    """Time, what is to happen, and how clocks and messages go wrong."""

    def __init__(self, history: History) -> None:
        self.random = random.Random(history.seed + 1)
        self._longest_s = (1.0, 3.5)[history.seed % 2]
        self.now_s = 0.0
        self.history = history
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def tell(self, who: str, what: str) -> None:
        self.history.transcript.append(f"{self.now_s:7.3f}  {who:10}  {what}")

    def at(self, when_s: float, act: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._due, (when_s, self._count, act))

    def after(self, delay_s: float, act: Callable[[], None]) -> None:
        self.at(self.now_s + delay_s, act)

    def run(self) -> None:
        while self._due and self._due[0][0] < _HORIZON_S:
            self.now_s, _, act = heapq.heappop(self._due)
            act()

    def delay_s(self) -> float:
        """Mostly short, now and then as long as others wait, or in every second history longer."""
        return self.random.choice((0.001, 0.005, 0.02, 0.1, self._longest_s * self.random.random()))

    def is_rarely(self, chance: float) -> bool:
        return self.random.random() < chance


class Controller:
    """Elects from the set when the master's time is over. One record, changed by compare-and-set."""

    def __init__(self, world: World, members: frozenset[int], *, takes_same_set: bool) -> None:
        self._world = world
        self._takes_same_set = takes_same_set
        self._rate = world.random.uniform(0.95, 1.05)
        self.members: frozenset[int] = members
        self.set_epoch = 1
        self.slaves: dict[int, Slave] = {}
        self.history = world.history
        self._alive_to_s = 0.0
        self.on_heartbeat()

    @property
    def _clock_s(self) -> float:
        return self._world.now_s * self._rate

    @property
    def has_elected(self) -> bool:
        return self.history.elected_s is not None

    def on_heartbeat(self) -> bool:
        """Whether the master has its lease by this."""
        if self.has_elected:
            return False
        self._alive_to_s = self._clock_s + TIMEOUT_S
        self._world.after(TIMEOUT_S / self._rate + 1e-9, self.elect_if_due)
        return True

    def alter(self, proposal: Propose) -> ResponseCode:
        if self.has_elected:
            return ResponseCode.CONTROLLER_FENCED_MASTER_EPOCH
        if proposal.set_epoch != self.set_epoch:
            return ResponseCode.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH
        if proposal.members == self.members and not self._takes_same_set:
            return ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED
        if self._world.is_rarely(0.05):
            return ResponseCode.CONTROLLER_BROKER_NOT_ALIVE
        self.members = proposal.members
        self.set_epoch += 1
        self._world.tell("controller", f"in step now: {sorted(self.members)}")
        self._world.after(0, self.elect_if_due)
        return ResponseCode.SUCCESS

    def elect_if_due(self) -> None:
        candidates = sorted(self.members & self.slaves.keys())
        if self.has_elected or self._clock_s < self._alive_to_s or not candidates:
            return
        successor = self.slaves[self._world.random.choice(candidates)]
        successor.is_master = True
        self.history.elected_s = self._world.now_s
        self.history.successor_end = successor.log_end
        self._world.tell(
            "controller", f"elects slave {successor.broker_id}, whose log ends at {successor.log_end}"
        )


class Slave:
    """Follows on one connection at a time; what is in flight goes with it."""

    def __init__(self, world: World, broker_id: int, master: "Master") -> None:
        self._world = world
        self.broker_id = broker_id
        self._master = master
        self.log_end = 0
        self.is_master = False
        self._link = 0
        self._sent_to = _NOT_LINKED
        self._free_s = self._acks_free_s = 0.0

    def connect(self) -> None:
        if self.is_master:
            return
        self._link += 1
        link = self._link
        self._sent_to = self.log_end

        def joined() -> None:
            if link == self._link:
                self._master.on_joined(self)
                self.push(self._master.log_end)

        self._master.when_awake(joined)

    def push(self, log_end: int) -> None:
        """The master sends what is new, in order."""
        if self._link and log_end > self._sent_to:
            self._sent_to, link = log_end, self._link
            self._free_s = max(self._free_s, self._world.now_s + self._world.delay_s() / 4)
            self._world.at(self._free_s, lambda: self._receive(link, log_end))

    def _receive(self, link: int, log_end: int) -> None:
        if link != self._link or self.is_master:
            return
        self.log_end = log_end
        self._acks_free_s = max(self._acks_free_s, self._world.now_s + self._world.delay_s() / 4)
        self._world.at(self._acks_free_s, lambda: self._master.when_awake(lambda: self._acked(link, log_end)))

    def _acked(self, link: int, log_end: int) -> None:
        if link == self._link:
            self._master.on_ack(self, log_end)

    def cut(self) -> None:
        """Its connection breaks, if there is one."""
        if self._sent_to == _NOT_LINKED or self.is_master:
            return
        link = self._link
        self._link += 1
        self._sent_to = _NOT_LINKED
        self._world.tell(f"slave {self.broker_id}", f"loses its connection at {self.log_end}")
        # The master sees it now or later, and the slave comes back.
        self._world.after(self._world.delay_s(), lambda: self._master.when_awake(lambda: self._left(link)))
        self._world.after(1 + self._world.delay_s(), self.connect)

    def _left(self, link: int) -> None:
        if self._link == link + 1:
            self._master.on_left(self)


class Master:
    """Takes a message now and then, and acknowledges what it may."""

    def __init__(
        self,
        world: World,
        controller: Controller,
        *,
        is_all_ack: bool,
        make_state: type[SyncState],
        make_right: type[AckRight],
        margin: float,
    ) -> None:
        self._world = world
        self._controller = controller
        self._rate = world.random.uniform(0.95, 1.05)
        self._is_all_ack = is_all_ack
        self._timeout_s = TIMEOUT_S * (1 - margin) / (1 - MARGIN)
        self.slaves: list[Slave] = []
        self.state = make_state(
            1,
            epoch=EPOCH,
            epoch_start=0,
            members=controller.members,
            set_epoch=controller.set_epoch,
            confirmed_to=0,
            max_behind_s=_MAX_BEHIND_S,
            now_s=0,
        )
        self.lease = Lease(EPOCH, now_s=0)
        self.right = make_right(self.lease, self.state)
        self._furthest_ack = 0
        self.log_end = 0
        self._waiting: list[int] = []
        self._asleep_to_s = 0.0
        self._is_heard = True

    @property
    def clock_s(self) -> float:
        return self._world.now_s * self._rate

    # The process, and its network to the controller.

    def stand_still(self, seconds: float) -> None:
        self._asleep_to_s = self._world.now_s + seconds
        self._world.tell("master", f"stands still for {seconds:.3f} s at {self.log_end}")

    def fall_silent(self) -> None:
        """From now on next to nothing of what is said reaches the controller, or comes back."""
        self._is_heard = False

    def when_awake(self, act: Callable[[], None]) -> None:
        if self._world.now_s < self._asleep_to_s:
            self._world.at(self._asleep_to_s, lambda: self.when_awake(act))
        else:
            act()

    def _every(self, seconds: float, act: Callable[[], None]) -> None:
        def again() -> None:
            act()
            self._every(seconds, act)

        self._world.after(seconds, lambda: self.when_awake(again))

    def _request(self, ask: Callable[[], Callable[[], None]], on_silence: Callable[[], None]) -> None:
        """Ask the controller something. What it did may be done although no answer comes, and late too."""
        is_open = [True]

        def once(act: Callable[[], None]) -> None:
            if is_open[0]:
                is_open[0] = False
                act()

        def arrive() -> None:
            answer = ask()
            if not self._is_lost():
                self._world.after(self._world.delay_s(), lambda: self.when_awake(lambda: once(answer)))

        if not self._is_lost():
            self._world.after(self._world.delay_s(), arrive)
        self._world.after(_ANSWER_S, lambda: self.when_awake(lambda: once(on_silence)))

    def _is_lost(self) -> bool:
        return self._world.is_rarely(0.1 if self._is_heard else 0.9)

    # What it does.

    def start(self) -> None:
        self._every(_HEARTBEAT_S, self._beat)
        self._every(0.07, self._write)
        self._every(0.2, lambda: self._propose(self.state.on_tick(log_end=self.log_end, now_s=self.clock_s)))

    def _beat(self) -> None:
        sent_s = self.clock_s

        def ask() -> Callable[[], None]:
            has_lease = self._controller.on_heartbeat()
            return lambda: self._granted(sent_s) if has_lease else None

        self._request(ask, lambda: None)

    def _granted(self, sent_s: float) -> None:
        self.lease.on_granted(EPOCH, sent_s=sent_s, timeout_s=self._timeout_s)

    def _write(self) -> None:
        if self.right.refusal(self.clock_s) is None:
            self.log_end += 1
            self._waiting.append(self.log_end)
            self.state.on_held(self.log_end)
            for slave in self.slaves:
                slave.push(self.log_end)
            self._acknowledge()

    def _acknowledge(self) -> None:
        """As the broker does: who has waited long enough is told so, and is no success."""
        kept: list[int] = []
        safe_to = self.state.confirmed_to if self._is_all_ack else self._furthest_ack
        for end in self._waiting:
            if end > safe_to:
                kept.append(end)
            elif self.right.may_acknowledge(end, self.clock_s):
                self._controller.history.acked.append((self._world.now_s, end))
                self._world.tell("master", f"acknowledges {end}")
        self._waiting = kept[-30:]

    def on_joined(self, slave: Slave) -> None:
        self._propose(
            self.state.on_joined(
                slave.broker_id, acked_to=slave.log_end, log_end=self.log_end, now_s=self.clock_s
            )
        )

    def on_left(self, slave: Slave) -> None:
        self._propose(self.state.on_left(slave.broker_id, now_s=self.clock_s))

    def on_ack(self, slave: Slave, acked_to: int) -> None:
        self._furthest_ack = max(self._furthest_ack, acked_to)
        self._propose(self.state.on_ack(slave.broker_id, acked_to, log_end=self.log_end, now_s=self.clock_s))

    def _propose(self, proposal: Propose | None) -> None:
        self._acknowledge()
        if proposal is None:
            return

        def ask() -> Callable[[], None]:
            code = self._controller.alter(proposal)
            if code is ResponseCode.SUCCESS:
                members, set_epoch = self._controller.members, self._controller.set_epoch
                return lambda: self._propose(self.state.on_answer(members, set_epoch, now_s=self.clock_s))
            return lambda: self._failed(code)

        self._request(ask, lambda: self._failed(None))

    def _failed(self, code: ResponseCode | None) -> None:
        if code is None:
            self.state.on_unanswered(now_s=self.clock_s)
        else:
            self.state.on_refused(code, now_s=self.clock_s)
        self._acknowledge()
        self._request(self._tell, lambda: None)

    def _tell(self) -> Callable[[], None]:
        if self._controller.has_elected:
            return lambda: None
        members, set_epoch = self._controller.members, self._controller.set_epoch
        return lambda: self._propose(self.state.on_set_told(members, set_epoch, now_s=self.clock_s))


def run_history(
    seed: int,
    *,
    is_all_ack: bool,
    make_state: type[SyncState] = SyncState,
    make_right: type[AckRight] = AckRight,
    margin: float = MARGIN,
    takes_same_set: bool = True,
    troubles: tuple[Trouble, ...] | None = None,
) -> History:
    """One reign of replica 1, with replicas 2 and 3, with ``troubles`` only these of its own.

    Sends wait for all of the set, or for one slave.
    """
    world = World(History(seed, is_all_ack, draw(random.Random(seed)) if troubles is None else troubles))
    members = frozenset(range(1, 2 + world.random.randrange(3)))
    controller = Controller(world, members, takes_same_set=takes_same_set)
    master = Master(
        world, controller, is_all_ack=is_all_ack, make_state=make_state, make_right=make_right, margin=margin
    )
    for broker_id in _SLAVES:
        slave = Slave(world, broker_id, master)
        master.slaves.append(slave)
        controller.slaves[broker_id] = slave
        world.after(world.delay_s(), slave.connect)
    for trouble in world.history.troubles:
        world.at(trouble.at_s, _act(trouble, master, controller))
    master.start()
    world.run()
    return controller.history


def _act(trouble: Trouble, master: Master, controller: Controller) -> Callable[[], None]:
    match trouble.kind:
        case Kind.STANDSTILL:
            return lambda: master.stand_still(trouble.lasts_s)
        case Kind.SILENCE:
            return master.fall_silent
        case Kind.CUT:
            return controller.slaves[trouble.slave].cut
