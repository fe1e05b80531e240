"""A plan: what a reset would do, queue by queue, and to whom. Pure.

It is made once and kept in a file; what is applied is what was looked at.
"""

from collections.abc import Iterable, Sequence

import msgspec

from tanist.admin.resets.aiming import Aimed, shown_queue
from tanist.admin.resets.targets import QueueName
from tanist.model.groups import MessageModel
from tanist.protocol.bodies.base import Body

PLAN_VERSION = 1
END = -1
"""What RocketMQ takes for the end of a queue where a time is expected."""
_FORCED = "-forced"


class PlannedQueue(Body, frozen=True, kw_only=True):
    """One queue: where the group stands, what there is, and where it is to go."""

    broker_name: str
    queue_id: int
    now: int | None = None
    """Its consumer offset when this was planned; None if it had none."""
    min_offset: int
    max_offset: int
    target: int
    oldest_ms: int | None = None
    stands: dict[str, int] = msgspec.field(default={})
    """Where each client of a broadcasting group stood."""
    warnings: list[str] = msgspec.field(default=[])

    @property
    def name(self) -> QueueName:
        return self.broker_name, self.queue_id

    @property
    def replayed(self) -> int:
        """So many messages are delivered again; of a broadcasting group to all its clients together."""
        return sum(max(0, place - self.target) for place in self._places)

    @property
    def skipped(self) -> int:
        """So many messages are never delivered, those not counted that are deleted already."""
        return sum(max(0, self.target - max(place, self.min_offset)) for place in self._places)

    @property
    def _places(self) -> Sequence[int]:
        if self.stands:
            return list(self.stands.values())
        return [self.now] if self.now is not None else []


class PlannedClient(Body, frozen=True, kw_only=True):
    """One client that would be told."""

    client_id: str
    address: str
    language: str
    version: str
    brokers: list[str] = msgspec.field(default=[])
    """Where it is connected."""
    warnings: list[str] = msgspec.field(default=[])


class Plan(Body, frozen=True, kw_only=True):
    """All of it."""

    plan_id: str
    created_ms: int
    created_by: str
    reason: str = ""
    name_server: str
    clusters: list[str]
    brokers: list[str]
    """The names of all brokers in the topic's route: by these and the clusters it knows where it belongs."""
    topic: str
    group: str
    model: MessageModel | None = None
    """None if nobody is online, and so nobody says how the group consumes."""
    target: str
    """What was asked for, in the operator's words."""
    at_ms: int | None = None
    """The time that the targets were found for, if each broker can find them by it again; -1 for the end."""
    is_forward_allowed: bool = True
    undoes: str | None = None
    queues: list[PlannedQueue] = msgspec.field(default=[])
    clients: list[PlannedClient] = msgspec.field(default=[])
    warnings: list[str] = msgspec.field(default=[])

    @property
    def replayed(self) -> int:
        return sum(queue.replayed for queue in self.queues)

    @property
    def skipped(self) -> int:
        return sum(queue.skipped for queue in self.queues)

    @property
    def is_broadcast(self) -> bool:
        return self.model is MessageModel.BROADCASTING

    def order_id(self, *, is_forced: bool) -> str:
        """The order is known by the plan. One that goes on where the group has moved is another order."""
        return self.plan_id + _FORCED if is_forced else self.plan_id

    @property
    def order_ids(self) -> tuple[str, str]:
        return self.order_id(is_forced=False), self.order_id(is_forced=True)

    def queues_of(self, broker_name: str) -> list[PlannedQueue]:
        return [queue for queue in self.queues if queue.broker_name == broker_name]

    @property
    def all_warnings(self) -> list[str]:
        """Those of the whole, of clients, and of queues; a warning that many queues share comes once."""
        by_text: dict[str, list[str]] = {}
        for queue in self.queues:
            for text in queue.warnings:
                by_text.setdefault(text, []).append(shown_queue(queue.name))
        of_queues = [f"{_shortened(names)}: {text}" for text, names in by_text.items()]
        of_clients = [f"{client.client_id}: {text}" for client in self.clients for text in client.warnings]
        return [*self.warnings, *of_clients, *of_queues]


def planned(aimed: Iterable[Aimed]) -> list[PlannedQueue]:
    return [
        PlannedQueue(
            broker_name=each.facts.queue.broker_name,
            queue_id=each.facts.queue.queue_id,
            now=each.facts.now,
            min_offset=each.facts.min_offset,
            max_offset=each.facts.max_offset,
            target=each.target,
            oldest_ms=each.facts.oldest_ms,
            stands=dict(each.facts.stands),
            warnings=list(each.warnings),
        )
        for each in aimed
    ]


def to_json(plan: Plan) -> dict[str, object]:
    """The plan with its sums, for scripts."""
    whole: dict[str, object] = msgspec.to_builtins(plan, str_keys=True)
    rows = [
        msgspec.to_builtins(queue, str_keys=True) | {"replayed": queue.replayed, "skipped": queue.skipped}
        for queue in plan.queues
    ]
    return whole | {
        "queues": rows,
        "replayed": plan.replayed,
        "skipped": plan.skipped,
        "allWarnings": plan.all_warnings,
    }


def _shortened(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more queues"
