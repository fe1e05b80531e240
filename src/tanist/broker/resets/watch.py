"""One order that is applied, and who of the group has followed. Pure.

    PENDING --sent to it, or answered to its pull--> TOLD --seen at the target, or says so--> CONFIRMED
       ^------------its connection ends---------------+ \\--goes on elsewhere, or says so--> FAILED

In clustering mode the broker's own offsets are at their targets from the start. In broadcasting mode only the
clients have offsets, and each has to move its own.

**What is proof.** A client of ours says what it did (RESET_RECEIPT), and is believed; unless it says nothing
for ``PATIENCE_MS``, what it was seen to do alone does not count. Of any other one counts what it does in a
queue after it was told:

- it commits exactly the target, which is how a client of RocketMQ keeps a reset in clustering mode; or
- it pulls from exactly the target, and no earlier pull that was seen since had ended there. So a consumer
  that merely reads on and passes the target has not moved.

Where its last pull had ended at the target, as it does when a backlog is skipped that the client has fetched
already, or fetches before it has read the order, a pull from there proves nothing. There it counts that it
commits the target, or that it says it stands there, which it is asked (221) when it is told and when it pulls
from the target next.

A client has confirmed when that holds for each queue that it has. In broadcasting mode these are all queues
of the order. In clustering mode it is asked which it has (221), as it is told; one that has none has nothing
to do. One that does not answer has confirmed when ``PATIENCE_MS`` are over and each queue in which it was
seen meanwhile, one at least, has moved. A queue that another member was seen to read from its target is no
longer one of those it was taken from, whether that member was told or came later.

**Who comes back** and has not followed is told once more. In clustering mode it is sent to where the group
stands by now, and not to the target, in queues in which anybody was seen at the target since: the target
would take the group back from where it has come, and untold it would go on where it had been itself. One that
has failed is not told.

It has failed when it goes on elsewhere, by a pull or a commit, more than ``PATIENCE_MS`` after it was told; a
proof that comes later still counts. One that does nothing stays told.

**Who is told too early.** A client of RocketMQ that broadcasts moves in the queues that it has. One that was
just started has none before it first looks for them, which its pause keeps it from: it is told in vain, and
reads on where its file says. That is seen by its first pull in a queue, which comes after its pause and from
elsewhere. Then it is told once more on this connection, but for the queues in which it has moved.

**What is on its way.** In clustering mode a commit of a client that is told and has not moved in that queue
is passed over: it was made before the client knew. It is taken if it is the target; or if the client has
moved there, which a question for the offset (14) shows as well, for who asks goes on from the answer; or once
``PATIENCE_MS`` have passed since it was told, so that nobody's progress is held for longer. Members of which
nothing was known when the order was applied, because the broker or their connection was new, are judged by
their first pull or commit for as long, and told if they go on elsewhere. One that comes within that time is
judged for as long from then on: it may have read another replica until then, and wait there for a message
still, and so pull nothing here for a while. A commit of an operator is taken.
A broker that knows the order from before it was started, or from its master, judges for as long once more:
rather is a group sent again where one of it has been than read on where it was.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from tanist.broker.consumer_group import Client, ClientConnection
from tanist.broker.resets.actions import Action, AskStanding, NoteReceipt, TellClient, WakePulls
from tanist.broker.resets.moment import LONG_AGO_MS, Moment
from tanist.broker.resets.receipts import MAX_TELLS, Receipt, host_of
from tanist.protocol.bodies.reset import QueueReceipts, ReceiptState
from tanist.protocol.codes import Version

PATIENCE_MS = 30_000
"""Clients of RocketMQ pause for 10 s before they move; a pull of theirs waits up to 20 s."""

PAUSE_MS = 9_900
"""So long a client of RocketMQ that was told does not pull: its 10 s, but for what two clocks differ."""

ASK_AGAIN_MS = 5_000
"""A client is not asked where it stands more often than that."""

MAX_RECEIPTS = 10_000
"""Clients that one order follows."""
UNKEPT = "(more)"
"""Stands for all others."""

FindMember = Callable[[], Client | None]
"""Finds out who is at the other end of a connection; None if no member of the group is."""


@dataclass(frozen=True, slots=True)
class Commit:
    """An offset that somebody commits in a queue of the order."""

    connection: ClientConnection
    queue_id: int
    offset: int
    is_one_way: bool
    """Clients of RocketMQ want no answer, and its tools do."""
    client_id: str | None = None
    """Members of ours say who they are, and tools do not."""


@dataclass(slots=True, eq=False)
class OrderWatch:
    """Follows one order. Its methods are told what clients do, in the order in which that comes."""

    order_id: str
    group: str
    topic: str
    targets: Mapping[int, int]
    observable: frozenset[int]
    """The queues of ``targets`` that can be pulled from."""
    is_broadcast: bool
    is_server_side: bool
    """Whether clients are told by the answers to their pulls, and nothing is sent to them."""
    timestamp_ms: int = -1
    is_forced: bool = False
    applied_ms: int = 0
    """On the clock that people read."""
    applied_at_ms: int = LONG_AGO_MS
    judges_until_ms: int | None = LONG_AGO_MS
    """Until then members of which nothing is known are judged by what they do. Both on the steady clock.

    None: for ``PATIENCE_MS``, which begin when the broker that has the group first looks at its members.
    """
    stood: frozenset[int] = frozenset()
    """The queues in which the group's last pull before the order had ended at the target."""
    is_model_known: bool = True
    """Whether the group has said that it broadcasts, or not; if not, its next member does."""
    receipts: list[Receipt] = field(default_factory=list[Receipt])
    _by_connection: dict[Hashable, Receipt] = field(default_factory=dict[Hashable, Receipt], init=False)
    _at_target: set[tuple[Hashable, int]] = field(default_factory=set[tuple[Hashable, int]], init=False)
    _answered: set[tuple[Hashable, int]] = field(default_factory=set[tuple[Hashable, int]], init=False)
    _reached: set[int] = field(default_factory=set[int], init=False)
    """The queues in which a member was seen at the target, in clustering mode."""

    _came: dict[Hashable, int] = field(default_factory=dict[Hashable, int], init=False)
    """Until when, on the steady clock, members are judged that came while those unknown were."""

    _unkept: set[Hashable] = field(default_factory=set[Hashable], init=False)
    """Connections of members for which there was no receipt left."""

    def __post_init__(self) -> None:
        self._reached = {queue_id for receipt in self.receipts for queue_id in receipt.queues}

    # Who is there

    def begin(self, clients: Iterable[tuple[Client, bool]], now: Moment) -> list[Action]:
        """The order is applied, and these are the group's members; of each whether it pulls by itself."""
        actions: list[Action] = []
        for client, is_active in clients:
            if (receipt := self._add(client)) is not None:
                actions += self._tell(receipt, client, now, is_active=is_active)
        return [*actions, WakePulls(self)] if self.is_server_side else actions

    def on_member(
        self, client: Client, now: Moment, *, is_broadcast: bool, is_active: bool = False
    ) -> list[Action]:
        """A member is there, as its heartbeat says."""
        self._begin_to_judge(now)
        if client.connection in self._by_connection:
            return []
        if not self.is_model_known:
            self.is_model_known, self.is_broadcast = True, is_broadcast
        receipt = self._returned(client)
        if receipt is None:
            # Who comes anew in clustering mode asks for its offsets, which are at their targets.
            # Who only had another replica until now goes on where it was, which it may not do for a while.
            if not self.is_broadcast:
                if self._judges(now):
                    self._came.setdefault(client.connection, now.steady_ms + PATIENCE_MS)
                return []
            receipt = self._add(client)
        if receipt is None:
            return []
        if receipt.state is not ReceiptState.CONFIRMED:
            return self._tell_again(receipt, client, now, is_active=is_active)
        self._at_target |= {(client.connection, queue_id) for queue_id in self.targets}
        return []

    def on_left(self, connection: Hashable) -> bool:
        """A member has gone, or its connection has; whether it was one that is known."""
        self._at_target = {place for place in self._at_target if place[0] != connection}
        self._answered = {place for place in self._answered if place[0] != connection}
        self._unkept.discard(connection)
        self._came.pop(connection, None)
        receipt = self._by_connection.pop(connection, None)
        if receipt is None:
            return False
        receipt.connection = None
        if receipt.state is ReceiptState.TOLD:
            receipt.state = ReceiptState.PENDING
        if receipt.is_open:
            receipt.reason = "it left before it had moved"
            if self._is_here(receipt.client_id):
                # It has come on another connection, and its last words on this one came after that.
                self.receipts.remove(receipt)
        return True

    # What clients do

    def may_commit(self, commit: Commit, now: Moment, find_member: FindMember) -> tuple[bool, list[Action]]:
        """Whether a commit counts, and what follows from it."""
        target = self.targets.get(commit.queue_id)
        place = (commit.connection, commit.queue_id)
        if target is None or self.is_broadcast or place in self._at_target:
            return True, []
        receipt = self._by_connection.get(commit.connection)
        is_spared = receipt is not None and commit.queue_id in receipt.spared
        if commit.offset == target and not is_spared:
            moved = (
                self._stranger_moved(find_member(), commit.queue_id, now)
                if receipt is None
                else self._moved(receipt, commit.queue_id, now)
            )
            return True, moved
        if receipt is None:
            return self._judge_stranger(commit, now, find_member)
        if receipt.state is ReceiptState.FAILED:
            return True, []
        if now.steady_ms - max(receipt.told_at_ms, self.applied_at_ms) <= PATIENCE_MS:
            receipt.seen.add(commit.queue_id)
            return False, []
        return True, self._elsewhere(receipt, commit.queue_id, commit.offset, now)

    def on_query(self, connection: Hashable, queue_id: int, find_member: FindMember) -> None:
        """A client is told where the group stands: that is where it goes on, in clustering mode."""
        if not self.is_broadcast and queue_id in self.targets and find_member() is not None:
            self._at_target.add((connection, queue_id))

    def on_pull(
        self,
        connection: ClientConnection,
        queue_id: int,
        asked: int,
        next_offset: int,
        *,
        now: Moment,
        find_member: FindMember,
    ) -> list[Action]:
        """A client pulls from ``asked``, and goes on at ``next_offset``."""
        target = self.targets.get(queue_id)
        if target is None:
            return []
        receipt, place = self._by_connection.get(connection), (connection, queue_id)
        if receipt is None:
            return [] if self.is_broadcast else self._judge_pull(place, asked, now, find_member)
        is_new = queue_id not in receipt.queues
        if is_new and asked == target and receipt.next_offsets.get(queue_id) != target:
            return self._moved(receipt, queue_id, now)
        if not is_new or place in self._at_target:
            return []
        if asked == target:
            receipt.seen.add(queue_id)
            return self._ask_again(receipt, find_member, now)
        receipt.next_offsets[queue_id] = next_offset
        was_in_vain = self._was_told_in_vain(receipt, queue_id, asked, now)
        told = self._tell_once_more(receipt, find_member, now) if was_in_vain else []
        return told or self._elsewhere(receipt, queue_id, asked, now)

    def take_pending(self, connection: Hashable, queue_id: int, asked: int, now: Moment) -> int | None:
        """Where to send a client that pulls from ``asked``; None if it is to be answered as always.

        In broadcasting mode each client is sent once in each queue. So it is in clustering mode, where only
        those are left that have not asked where the group stands.
        """
        target, place = self.targets.get(queue_id), (connection, queue_id)
        receipt = self._by_connection.get(connection)
        # Who stood there before has perhaps not consumed what it had fetched, and drops it when it is sent.
        is_there = asked == target and (receipt is None or queue_id not in receipt.stood)
        if not self.is_server_side or target is None or is_there:
            return None
        if place in self._answered or place in self._at_target:
            return None
        if receipt is None:
            if self.is_broadcast or not self._judges(now, connection):
                return None
        elif not receipt.is_open or queue_id in receipt.queues or queue_id in receipt.spared:
            return None
        else:
            if receipt.state is ReceiptState.PENDING:
                receipt.told(now)
            receipt.seen.add(queue_id)
        self._answered.add(place)
        return target

    def on_standing(self, connection: Hashable, offsets: Mapping[int, int], now: Moment) -> list[Action]:
        """A client says where it stood when it was told, by queue."""
        receipt = self._by_connection.get(connection)
        if receipt is None or not receipt.is_open:
            return []
        known = {queue_id: offset for queue_id, offset in offsets.items() if queue_id in self.targets}
        # Asked once more it tells where it has come to, and not where it stood.
        receipt.old_offsets = {q: offset for q, offset in known.items() if offset >= 0} | receipt.old_offsets
        if not self.is_broadcast and receipt.owned is None:
            receipt.owned = (known.keys() | receipt.seen) - receipt.spared
            if not receipt.owned:
                receipt.reason = "it has none of the queues"
        actions: list[Action] = []
        for queue_id in sorted((receipt.stood | self._ended_at_target(receipt)) - receipt.queues.keys()):
            if known.get(queue_id) == self.targets.get(queue_id, -1):
                actions += self._moved(receipt, queue_id, now)
        return [*actions, *self._settle(receipt, now)]

    def on_receipt(self, client: Client, said: QueueReceipts, now: Moment) -> list[Action]:
        """A client says itself what it did. Once more is fine: it may have taken its first message since."""
        receipt = self._by_connection.get(client.connection) or self._returned(client) or self._add(client)
        if receipt is None:
            return []
        was_confirmed = receipt.state is ReceiptState.CONFIRMED
        if said.failure:
            return self._fail(receipt, said.failure)
        for queue in said.queues:
            target = self.targets.get(queue.queue_id)
            if target is None:
                continue
            if queue.new_offset != target and queue.queue_id in receipt.spared:
                self._at_target.add((client.connection, queue.queue_id))
                continue
            if queue.new_offset != target:
                return self._fail(
                    receipt, f"it went to {queue.new_offset} in queue {queue.queue_id}, and not to {target}"
                )
            receipt.queues[queue.queue_id] = queue
            self._at_target.add((client.connection, queue.queue_id))
        if was_confirmed:
            return []
        if not receipt.spared:
            receipt.reason = "it has none of the queues"
        return self._confirm(receipt, now)

    def on_tick(self, now: Moment) -> list[Action]:
        """Time has passed: who was seen to move and did not say what it has, or did, may have confirmed."""
        self._begin_to_judge(now)
        actions: list[Action] = []
        for receipt in self.receipts:
            if receipt.state is not ReceiptState.TOLD or now.steady_ms - receipt.told_at_ms <= PATIENCE_MS:
                continue
            if self.is_broadcast or receipt.owned is not None:
                actions += self._settle(receipt, now)
            elif receipt.seen and receipt.seen <= receipt.queues.keys():
                actions += self._confirm(receipt, now)
        return actions

    def supersede(self, order_id: str) -> list[Action]:
        """Another order moves the same queues: who has not followed this one need not any more."""
        self.judges_until_ms = LONG_AGO_MS
        self._came.clear()
        actions: list[Action] = []
        for receipt in self.receipts:
            if receipt.is_open:
                actions += self._fail(receipt, f"order {order_id} came before it had moved")
        return actions

    def give_up(self, queues: frozenset[int], order_id: str, now: Moment) -> list[Action]:
        """Another order moves some of the queues: this one goes on with the others."""
        self.targets = {queue_id: to for queue_id, to in self.targets.items() if queue_id not in queues}
        self.observable -= queues
        self.stood -= queues
        actions: list[Action] = []
        for receipt in self.receipts:
            receipt.seen -= queues
            lost = set[int]() if receipt.owned is None else receipt.owned & queues
            if receipt.owned is not None:
                receipt.owned -= queues
            if lost and not receipt.owned and not lost <= receipt.queues.keys() and receipt.is_open:
                actions += self._fail(receipt, f"order {order_id} came before it had moved")
            elif receipt.is_open:
                actions += self._settle(receipt, now)
        return actions

    def is_over(self, now: Moment) -> bool:
        """Whether there is nothing left to watch. In broadcasting mode others may come all the time."""
        is_quiet = not self._judges_anybody(now) and now.steady_ms > self.applied_at_ms + PATIENCE_MS
        is_settled = not any(receipt.is_open for receipt in self.receipts)
        return self.is_model_known and not self.is_broadcast and is_quiet and is_settled

    def stop_judging(self, now: Moment) -> bool:
        """Whether the time to judge has just ended."""
        is_over = self.is_judging and not self._judges_anybody(now)
        if is_over:
            self.judges_until_ms = LONG_AGO_MS
        return is_over

    @property
    def is_judging(self) -> bool:
        """Whether whoever takes the order over, after a crash of this broker too, has to judge."""
        return self.judges_until_ms != LONG_AGO_MS

    # Within

    def _begin_to_judge(self, now: Moment) -> None:
        if self.judges_until_ms is None:
            self.judges_until_ms = now.steady_ms + PATIENCE_MS

    def _judges(self, now: Moment, connection: Hashable = None) -> bool:
        """Whether members of which nothing is known are judged; with a connection, whether this one is."""
        until_ms = self._came.get(connection, LONG_AGO_MS)
        if self.judges_until_ms is not None:
            until_ms = max(until_ms, self.judges_until_ms)
        return now.steady_ms <= until_ms

    def _judges_anybody(self, now: Moment) -> bool:
        return self._judges(now) or any(now.steady_ms <= until_ms for until_ms in self._came.values())

    def _is_here(self, client_id: str) -> bool:
        """Whether a client is known on a connection that there is."""
        return any(it.client_id == client_id and it.connection is not None for it in self.receipts)

    def _add(self, client: Client) -> Receipt | None:
        """None if there are too many: it is counted, in a last receipt of nobody, and not told."""
        if len(self.receipts) >= MAX_RECEIPTS:
            if client.connection not in self._unkept:
                self._unkept.add(client.connection)
                self._count_unkept()
            return None
        receipt = Receipt.of(client)
        self.receipts.append(receipt)
        self._by_connection[client.connection] = receipt
        return receipt

    def _count_unkept(self) -> None:
        if self.receipts[-1].client_id != UNKEPT:
            unkept = Receipt(UNKEPT, address="", language="", version=0, state=ReceiptState.FAILED)
            self.receipts.append(unkept)
        self.receipts[
            -1
        ].reason = f"{len(self._unkept)} more clients are there than the {MAX_RECEIPTS} that an order follows"

    def _returned(self, client: Client) -> Receipt | None:
        """The receipt of a client that comes back on another connection.

        It has two if it came on one connection before the other was known to have ended. Then it is the one
        that has yet to follow: nobody is said to have moved for what was seen of another.
        """
        gone = (it for it in self.receipts if it.client_id == client.client_id and it.connection is None)
        receipt = min(gone, key=lambda each: not each.is_open, default=None)
        if receipt is None:
            return None
        receipt.connection, receipt.address = client.connection, client.connection.peer
        receipt.language, receipt.version = client.language, client.version
        receipt.is_told_once_more = False
        self._by_connection[client.connection] = receipt
        return receipt

    def _tell_again(
        self, receipt: Receipt, client: Client, now: Moment, *, is_active: bool = False
    ) -> list[Action]:
        """It is back, and had not followed."""
        if self.is_broadcast or not receipt.told_count:
            return self._tell(receipt, client, now, is_active=is_active)
        if receipt.state is ReceiptState.FAILED:
            return []
        had = self.targets.keys() if receipt.owned is None else receipt.owned
        self._at_target |= {(client.connection, queue_id) for queue_id in receipt.queues}
        spared = frozenset(self._reached - receipt.queues.keys())
        actions = self._tell(receipt, client, now, is_active=is_active, spared=spared)
        if had <= self._reached and receipt.is_open:
            receipt.owned, receipt.reason = set(), "its queues went to others"
        return actions

    def _tell(
        self,
        receipt: Receipt,
        client: Client,
        now: Moment,
        *,
        is_active: bool = False,
        spared: frozenset[int] = frozenset(),
    ) -> list[Action]:
        if is_active:
            return self._fail(receipt, "it pulls by itself: such consumers do not take orders")
        if client.version < Version.V3_0_7_SNAPSHOT:
            return self._fail(receipt, f"its version, {client.version}, takes no orders")
        if not receipt.count_tell(now):
            return self._fail(receipt, f"it was told {MAX_TELLS} times, and left each time")
        receipt.spared = spared
        # Of one that is back it is known where its own pulls had ended.
        receipt.stood = self.stood if receipt.told_count == 1 else self._ended_at_target(receipt)
        receipt.owned, receipt.next_offsets = None, {q: self.targets[q] for q in receipt.stood}
        receipt.seen.clear()
        if self.is_server_side:
            receipt.state, receipt.reason = ReceiptState.PENDING, "it is told when it pulls next"
            return [AskStanding(self, client)]
        receipt.told(now)
        if self.is_broadcast and receipt.says_itself:
            # Which queues it has is known, and where it stood it says in its receipt.
            return [TellClient(self, client)]
        # Who broadcasts and comes back goes on where its file says, and that may lie before its move.
        is_where_it_moved = receipt.is_told_once_more or not self.is_broadcast
        moved = frozenset(receipt.queues) if is_where_it_moved else frozenset[int]()
        # Clients of RocketMQ stop for ten seconds at every order, one for no queue too.
        is_left = not moved or not moved >= self.targets.keys()
        return [AskStanding(self, client), *([TellClient(self, client, spared, moved)] if is_left else [])]

    def _tell_stranger(self, client: Client | None, now: Moment) -> list[Action]:
        """Of a member that is not known, and goes on elsewhere."""
        if client is None:
            return []
        receipt = self._returned(client) or self._add(client)
        return [] if receipt is None else self._tell_again(receipt, client, now)

    def _tell_once_more(self, receipt: Receipt, find_member: FindMember, now: Moment) -> list[Action]:
        client = find_member()
        if client is None:
            return []
        receipt.is_told_once_more = True
        return self._tell(receipt, client, now)

    def _was_told_in_vain(self, receipt: Receipt, queue_id: int, asked: int, now: Moment) -> bool:
        """Whether it had no queue then: its first pull in this one comes after its pause, and from elsewhere.

        One that had the queue when it was told would go to its target, if it is able to.
        """
        is_able = not receipt.says_itself and not receipt.is_deaf_in_broadcasting
        is_done = receipt.is_told_once_more or receipt.told_count >= MAX_TELLS
        if not self.is_broadcast or self.is_server_side or not is_able or is_done:
            return False
        # From where it stood it may have come past the target either way.
        is_certain = queue_id not in receipt.stood or asked < self.targets[queue_id]
        is_late = receipt.state is ReceiptState.TOLD and now.steady_ms - receipt.told_at_ms >= PAUSE_MS
        return is_late and is_certain and queue_id not in receipt.seen

    def _ended_at_target(self, receipt: Receipt) -> frozenset[int]:
        """The queues in which its last pull went up to the target."""
        return frozenset(q for q, ended in receipt.next_offsets.items() if ended == self.targets.get(q))

    def _ask_again(self, receipt: Receipt, find_member: FindMember, now: Moment) -> list[Action]:
        client = find_member()
        if client is None or now.steady_ms - receipt.asked_at_ms < ASK_AGAIN_MS:
            return []
        receipt.asked_at_ms = now.steady_ms
        return [AskStanding(self, client)]

    def _judge_pull(
        self, place: tuple[Hashable, int], asked: int, now: Moment, find_member: FindMember
    ) -> list[Action]:
        """Of somebody who was not told."""
        queue_id = place[1]
        if asked == self.targets[queue_id]:
            has_come = place in self._at_target or queue_id not in self.stood
            return self._stranger_moved(find_member(), queue_id, now) if has_come else []
        is_judged = self._judges(now, place[0]) and place not in self._at_target
        return self._tell_stranger(find_member(), now) if is_judged else []

    def _judge_stranger(
        self, commit: Commit, now: Moment, find_member: FindMember
    ) -> tuple[bool, list[Action]]:
        client = find_member()
        if client is not None:
            if not self._judges(now, client.connection):
                return True, []
            return False, self._tell_stranger(client, now)
        if commit.client_id is not None:
            return self._may_go_ahead(commit.client_id, now), []
        # A client may commit on another connection than the one on which it is a member.
        host = host_of(commit.connection.peer)
        is_likely_a_client = commit.is_one_way and any(
            receipt.is_open
            and receipt.host == host
            and now.steady_ms - max(receipt.told_at_ms, self.applied_at_ms) <= PATIENCE_MS
            for receipt in self.receipts
        )
        return not is_likely_a_client, []

    def _may_go_ahead(self, client_id: str, now: Moment) -> bool:
        """Whether a commit counts that comes on a new connection ahead of the heartbeat.

        With the heartbeat its client is told; what it commits before that it can not have meant.
        """
        known = [receipt for receipt in self.receipts if receipt.client_id == client_id]
        return not (any(receipt.is_open for receipt in known) if known else self._judges(now))

    def _moved(self, receipt: Receipt, queue_id: int, now: Moment) -> list[Action]:
        receipt.moved(queue_id, self.targets[queue_id])
        if receipt.connection is not None:
            self._at_target.add((receipt.connection, queue_id))
        actions = self._settle(receipt, now)
        return actions if self.is_broadcast else [*actions, *self._take_over(receipt, queue_id, now)]

    def _stranger_moved(self, client: Client | None, queue_id: int, now: Moment) -> list[Action]:
        """Somebody who was not told is at the target of a queue. Only a member can have taken it over."""
        if client is None:
            return []
        self._at_target.add((client.connection, queue_id))
        return self._take_over(client, queue_id, now)

    def _take_over(self, taker: Receipt | Client, queue_id: int, now: Moment) -> list[Action]:
        """A queue is read from its target by one, so that no other one is waited for there."""
        self._reached.add(queue_id)
        actions: list[Action] = []
        for other in self.receipts:
            if other is taker:
                continue
            other.seen.discard(queue_id)
            if other.owned is not None and queue_id in other.owned:
                other.owned.discard(queue_id)
                if not other.owned and other.is_open:
                    other.reason = f"its queues went to others, the last to {taker.client_id}"
                actions += self._settle(other, now)
        return actions

    def _elsewhere(self, receipt: Receipt, queue_id: int, offset: int, now: Moment) -> list[Action]:
        if queue_id in receipt.spared:
            return []
        if queue_id in receipt.stood and offset >= self.targets[queue_id]:
            # From where it stood it may have come there either way.
            receipt.seen.add(queue_id)
            return []
        receipt.seen.add(queue_id)
        if receipt.owned is not None:
            receipt.owned.add(queue_id)
        if receipt.state is not ReceiptState.TOLD or now.steady_ms - receipt.told_at_ms <= PATIENCE_MS:
            return []
        reason = f"it goes on at {offset} in queue {queue_id}, and not at {self.targets[queue_id]}"
        if self.is_broadcast and receipt.is_deaf_in_broadcasting:
            reason += (
                f"; RocketMQ's clients of its version, {receipt.version}, can not be moved in broadcasting"
                " mode: stop it, change its offsets.json, and start it again"
            )
        return self._fail(receipt, reason)

    def _settle(self, receipt: Receipt, now: Moment) -> list[Action]:
        required = self.observable if self.is_broadcast else receipt.owned
        has_moved = required is not None and required <= receipt.queues.keys()
        if not has_moved or receipt.state is ReceiptState.CONFIRMED or receipt.connection is None:
            return []
        is_awaited = receipt.says_itself and not self.is_server_side
        if is_awaited and now.steady_ms - receipt.told_at_ms <= PATIENCE_MS:
            return []
        return self._confirm(receipt, now)

    def _confirm(self, receipt: Receipt, now: Moment) -> list[Action]:
        receipt.state, receipt.confirmed_ms = ReceiptState.CONFIRMED, now.wall_ms
        if receipt.queues:
            receipt.reason = ""
        return [NoteReceipt(self, receipt)]

    def _fail(self, receipt: Receipt, reason: str) -> list[Action]:
        receipt.state, receipt.reason = ReceiptState.FAILED, reason
        return [NoteReceipt(self, receipt)]
