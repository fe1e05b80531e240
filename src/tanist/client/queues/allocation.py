"""Which queues of a topic a member of a consumer group takes.

Nobody hands queues out: every member computes the shares alone, from the same queues and the same
members, and takes its own. So all have to sort alike (``sort_queues``, ``sort_client_ids``)
and use the same strategy. All but Sticky give what RocketMQ's class of the same name gives on the same
input, so that members written in Java can be in the same group.

Pure. Who is not among the members takes nothing, and of no queues nobody takes any.
"""

import bisect
import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from tanist.client.errors import InvalidArgument
from tanist.model.java_order import java_order
from tanist.model.route import MessageQueue

_T = TypeVar("_T")


class AllocationStrategy(Protocol):
    """A way to share queues out.

    >>> queues = [MessageQueue(topic="T", broker_name="b", queue_id=n) for n in range(4)]
    >>> [queue.queue_id for queue in Averagely().allocate("G", "two", queues, ["one", "two"])]
    [2, 3]
    """

    @property
    def name(self) -> str:
        """How the strategy is called where it is shown. RocketMQ's names for its strategies."""
        ...

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """The queues that the member ``client_id`` takes.

        ``queues`` and ``client_ids`` are all there are, in Java's order.
        """
        ...


def sort_queues(queues: Iterable[MessageQueue]) -> list[MessageQueue]:
    """Queues sorted by topic, broker name and id, as Java's clients sort them."""
    return sorted(queues, key=_queue_order)


def sort_client_ids(client_ids: Iterable[str]) -> list[str]:
    """Members sorted as Java's clients sort them."""
    return sorted(client_ids, key=java_order)


@dataclass(frozen=True, slots=True)
class Averagely:
    """Neighbouring queues to one member, sizes within one. What clients do unless told otherwise.

    >>> queues = [MessageQueue(topic="T", broker_name="b", queue_id=n) for n in range(5)]
    >>> [queue.queue_id for queue in Averagely().allocate("G", "two", queues, ["one", "two"])]
    [3, 4]
    """

    name: str = field(default="AVG", init=False)

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        del group
        if client_id not in client_ids:
            return []
        index = client_ids.index(client_id)
        size, rest = divmod(len(queues), len(client_ids))
        start = index * size + min(index, rest)
        return [*queues[start : start + size + (index < rest)]]


@dataclass(frozen=True, slots=True)
class AveragelyByCircle:
    """One queue to each member in turn. A member then has queues of all brokers.

    >>> queues = [MessageQueue(topic="T", broker_name="b", queue_id=n) for n in range(5)]
    >>> [queue.queue_id for queue in AveragelyByCircle().allocate("G", "two", queues, ["one", "two"])]
    [1, 3]
    """

    name: str = field(default="AVG_BY_CIRCLE", init=False)

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        del group
        if client_id not in client_ids:
            return []
        return [*queues[client_ids.index(client_id) :: len(client_ids)]]


@dataclass(frozen=True, slots=True)
class ConsistentHash:
    """Members and queues as points on a ring; a queue goes to the next member. Sizes may differ widely.

    >>> queues = [MessageQueue(topic="T", broker_name="b", queue_id=n) for n in range(8)]
    >>> strategy = ConsistentHash(virtual_nodes=100)
    >>> [queue.queue_id for queue in strategy.allocate("G", "two", queues, ["one", "two"])]
    [1, 3, 5]
    """

    virtual_nodes: int = 10
    """How many points a member has."""
    name: str = field(default="CONSISTENT_HASH", init=False)

    def __post_init__(self) -> None:
        if self.virtual_nodes < 1:
            raise InvalidArgument(
                "virtual_nodes", self.virtual_nodes, "use 1 or more, or nobody would take a queue"
            )

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        del group
        if client_id not in client_ids:
            return []
        owners = self._ring(client_ids)
        points = sorted(owners)

        def is_mine(queue: MessageQueue) -> bool:
            index = bisect.bisect_left(points, _ring_point(_java_text(queue)))
            return owners[points[index % len(points)]] == client_id

        return [queue for queue in queues if is_mine(queue)]

    def _ring(self, client_ids: Sequence[str]) -> Mapping[int, str]:
        """The points of all members. On a point that two of them have it is the later one's."""
        owners: dict[int, str] = {}
        seen: set[str] = set()
        for client_id in client_ids:
            # A broker lists a member twice that has two connections: it then gets more points.
            first = [*owners.values()].count(client_id) if client_id in seen else 0
            seen.add(client_id)
            for number in range(first, first + self.virtual_nodes):
                owners[_ring_point(f"{client_id}-{number}")] = client_id
        return owners


@dataclass(frozen=True, slots=True)
class ByMachineRoom:
    """Only queues of brokers in some rooms: those named ``room@broker``. Nobody takes the others.

    >>> queues = [MessageQueue(topic="T", broker_name=f"{room}@b", queue_id=0) for room in ("east", "west")]
    >>> [queue.broker_name for queue in ByMachineRoom({"west"}).allocate("G", "one", queues, ["one"])]
    ['west@b']
    """

    rooms: Collection[str]
    name: str = field(default="MACHINE_ROOM", init=False)

    def __post_init__(self) -> None:
        # A text would do for a collection of its letters.
        if isinstance(self.rooms, str):
            raise InvalidArgument("rooms", self.rooms, f"give a collection of names: [{self.rooms!r}]")

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        del group
        if client_id not in client_ids:
            return []
        index, count = client_ids.index(client_id), len(client_ids)
        near = [queue for queue in queues if self._is_near(queue)]
        size = len(near) // count
        # The rest goes round after the equal shares, unlike Averagely's.
        return [*near[size * index : size * (index + 1)], *near[size * count :][index : index + 1]]

    def _is_near(self, queue: MessageQueue) -> bool:
        # As Java splits: what is empty at the end does not count.
        parts = queue.broker_name.rstrip("@").split("@")
        return len(parts) == 2 and parts[0] in self.rooms


@dataclass(frozen=True, slots=True)
class MachineRoomNearby:
    """Queues to the members in their broker's room; those of rooms without a member to all members.

    >>> def room(client_id: str) -> str:
    ...     return client_id.partition("@")[0]
    >>> strategy = MachineRoomNearby(Averagely(), lambda queue: room(queue.broker_name), room)
    >>> strategy.name
    'MACHINE_ROOM_NEARBY-AVG'
    >>> queues = [MessageQueue(topic="T", broker_name=f"{room}@b", queue_id=0) for room in ("east", "west")]
    >>> mine = strategy.allocate("G", "west@two", queues, ["east@one", "west@two"])
    >>> [queue.broker_name for queue in mine]
    ['west@b']
    """

    inner: AllocationStrategy
    """How queues are shared out among the members that may have them."""
    room_of_queue: Callable[[MessageQueue], str]
    room_of_client: Callable[[str], str]

    @property
    def name(self) -> str:
        return f"MACHINE_ROOM_NEARBY-{self.inner.name}"

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        if client_id not in client_ids:
            return []
        queues_by_room = _by_room("room_of_queue", queues, self.room_of_queue)
        clients_by_room = _by_room("room_of_client", client_ids, self.room_of_client)
        own_room = self.room_of_client(client_id)
        mine = self.inner.allocate(
            group, client_id, queues_by_room.pop(own_room, []), clients_by_room[own_room]
        )
        for room in sorted(queues_by_room, key=java_order):
            if room not in clients_by_room:
                mine += self.inner.allocate(group, client_id, queues_by_room[room], client_ids)
        return mine


@dataclass(frozen=True, slots=True)
class Sticky:
    """Sizes within one, and few queues move when a member comes or goes. All members must be Tanist's.

    A member knows who is there but not who had what, so this too is a function of members and queues
    alone. Each pair of them has a score, and the best pairs come first (rendezvous hashing) as long as
    the member has room. So what a change moves is what the scores of the changed member touch, and
    what that pushes on: in the mean 1.1 times what has to move in a group of four, 1.5 of eight. With
    Averagely it is 1.7 and 3.1 times.

    >>> queues = [MessageQueue(topic="T", broker_name="b", queue_id=n) for n in range(4)]
    >>> two = Sticky().allocate("G", "two", queues, ["one", "two"])
    >>> one_of_three = Sticky().allocate("G", "two", queues, ["one", "three", "two"])
    >>> set(one_of_three) <= set(two)
    True
    """

    name: str = field(default="STICKY", init=False)

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        if client_id not in client_ids:
            return []
        members = [*dict.fromkeys(client_ids)]
        size, larger = divmod(len(queues), len(members))
        room = dict.fromkeys(members, size)
        owners: dict[MessageQueue, str] = {}
        pairs = _scored_pairs(group, queues, members)
        for score in sorted(pairs):
            queue, member = pairs[score]
            if queue in owners:
                continue
            if room[member] > 0:
                owners[queue] = member
            elif room[member] == 0 and larger > 0:
                larger -= 1
                owners[queue] = member
            else:
                continue
            room[member] -= 1
        return [queue for queue in queues if owners[queue] == client_id]


def _queue_order(queue: MessageQueue) -> tuple[bytes, bytes, int]:
    return java_order(queue.topic), java_order(queue.broker_name), queue.queue_id


def _java_text(queue: MessageQueue) -> str:
    """What Java's ``MessageQueue.toString`` gives, which is what it hashes."""
    return f"MessageQueue [topic={queue.topic}, brokerName={queue.broker_name}, queueId={queue.queue_id}]"


def _ring_point(text: str) -> int:
    """The first 32 bits of the MD5 sum, as RocketMQ's ConsistentHashRouter takes them."""
    # Java too puts a question mark where half a character stands alone.
    digest = hashlib.md5(text.encode(errors="replace"), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "big")


def _scored_pairs(
    group: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
) -> Mapping[bytes, tuple[MessageQueue, str]]:
    """All pairs of a queue and a member by their scores, which are too long for two to be the same."""
    ends = [(client_id, client_id.encode(errors="surrogatepass")) for client_id in client_ids]
    pairs: dict[bytes, tuple[MessageQueue, str]] = {}
    for queue in queues:
        start = f"{group}\n{_java_text(queue)}\n".encode(errors="surrogatepass")
        for client_id, end in ends:
            pairs[hashlib.blake2b(start + end, digest_size=16).digest()] = queue, client_id
    return pairs


def _by_room(argument: str, things: Iterable[_T], room_of: Callable[[_T], str]) -> dict[str, list[_T]]:
    grouped: dict[str, list[_T]] = {}
    for thing in things:
        room = room_of(thing)
        if not room:
            raise InvalidArgument(argument, room, f"give a function that knows the room of {thing}")
        grouped.setdefault(room, []).append(thing)
    return grouped
