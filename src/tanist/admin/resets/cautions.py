"""What an operator should think of before a reset. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tanist.admin.resets.client_versions import ignores_broadcast_reset
from tanist.admin.resets.plan import PlannedQueue
from tanist.model.groups import ConsumeType, MessageModel
from tanist.protocol.bodies.client import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """The group as the brokers of the topic tell it."""

    connections: Mapping[str, Sequence[Connection]]
    """The clients by broker name; a broker at which the group is offline has none."""
    model: MessageModel | None = None
    models: frozenset[MessageModel] = frozenset()
    consume_type: ConsumeType | None = None
    is_orderly: bool = False
    subscribed: bool | None = None
    """Whether those who are online want the topic; None if nobody is."""
    retry_backlog: int = 0
    stock_brokers: tuple[str, ...] = ()
    """Brokers that know no orders, and so give no receipts."""


def group_cautions(facts: GroupFacts, queues: Sequence[PlannedQueue], group: str) -> list[str]:
    """What concerns the whole group."""
    found: list[str] = []
    online = sorted(name for name, clients in facts.connections.items() if clients)
    offline = sorted(name for name, clients in facts.connections.items() if not clients)
    if online and offline:
        found.append(
            f"the group is online at {', '.join(online)} and offline at {', '.join(offline)}: at these its "
            "offsets are changed on the broker alone"
        )
    if not online:
        found.append("nobody of the group is online: its offsets are changed on the brokers")
    if facts.subscribed is False:
        found.append("those of the group who are online do not subscribe to the topic")
    if len(facts.models) > 1:
        found.append("some clients of the group consume in broadcasting mode and others in clustering mode")
    if facts.is_orderly:
        found.append(
            "the group consumes in order: what is consumed again comes in order, behind what runs now"
        )
    if facts.consume_type is ConsumeType.ACTIVELY:
        found.append("clients that pull by themselves do not follow an order until they start anew")
    if facts.retry_backlog:
        found.append(
            f"{facts.retry_backlog} messages wait in the retry topic of {group}; a reset does not touch "
            "them, they are consumed as before"
        )
    if facts.stock_brokers and online:
        found.append(f"{', '.join(facts.stock_brokers)}: no Tanist broker, so no client's receipt can be had")
    return [*found, *_queue_cautions(queues, is_broadcast=facts.model is MessageModel.BROADCASTING)]


def client_cautions(connection: Connection, model: MessageModel | None) -> list[str]:
    """What concerns one client."""
    if model is MessageModel.BROADCASTING and ignores_broadcast_reset(
        connection.language, connection.version
    ):
        return ["can not move in broadcasting mode, it goes back to its file: use 4.9.8 or 5.2.0 and newer"]
    return []


def _queue_cautions(queues: Sequence[PlannedQueue], *, is_broadcast: bool) -> list[str]:
    found: list[str] = []
    unknown = [queue for queue in queues if queue.now is None]
    if unknown and not is_broadcast:
        found.append(f"in {len(unknown)} of {len(queues)} queues the group has no offset yet")
    if queues and all(queue.now == queue.target for queue in queues) and not is_broadcast:
        found.append("the group stands there already: nothing would change")
    return found
