"""Groups and topics for tests of who takes which queues."""

from collections.abc import Sequence

from tanist.client.queues.allocation import (
    AllocationStrategy,
    Averagely,
    AveragelyByCircle,
    ByMachineRoom,
    ConsistentHash,
    MachineRoomNearby,
    Sticky,
    sort_client_ids,
    sort_queues,
)
from tanist.model.route import MessageQueue

ROOMS = ("", "east", "west", "süd", "\U0001f600", "\uff5e")


def queues_of(count: int, *, brokers: Sequence[str] = ("broker-a",), topic: str = "T") -> list[MessageQueue]:
    """This many queues, spread over the brokers, in the order in which clients have them."""
    return sort_queues(
        MessageQueue(topic=topic, broker_name=brokers[n % len(brokers)], queue_id=n // len(brokers))
        for n in range(count)
    )


def room_of(name: str) -> str:
    """The room of ``room@name``, and one for all the others."""
    return name.partition("@")[0] or "nowhere"


def nearby(inner: AllocationStrategy) -> MachineRoomNearby:
    return MachineRoomNearby(inner, lambda queue: room_of(queue.broker_name), room_of)


COMPLETE = (
    Averagely(),
    AveragelyByCircle(),
    ConsistentHash(),
    ConsistentHash(virtual_nodes=1),
    Sticky(),
    nearby(Averagely()),
    nearby(AveragelyByCircle()),
    nearby(Sticky()),
)
"""The strategies that leave no queue to nobody."""
EVEN = (Averagely(), AveragelyByCircle(), Sticky())
"""Those whose shares differ by one at most."""
ALL = (*COMPLETE, ByMachineRoom({"east", "süd"}))


def shares(
    strategy: AllocationStrategy, queues: Sequence[MessageQueue], client_ids: Sequence[str], group: str = "G"
) -> dict[str, list[MessageQueue]]:
    """What each member takes, which each computes for itself."""
    queues, client_ids = sort_queues(queues), sort_client_ids(client_ids)
    return {
        client_id: strategy.allocate(group, client_id, queues, client_ids)
        for client_id in dict.fromkeys(client_ids)
    }


def owners(
    strategy: AllocationStrategy, queues: Sequence[MessageQueue], client_ids: Sequence[str]
) -> dict[MessageQueue, str]:
    """Who has each queue."""
    return {
        queue: client_id
        for client_id, share in shares(strategy, queues, client_ids).items()
        for queue in share
    }
