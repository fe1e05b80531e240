"""What a broker has of itself: its files, which outlive it, and as much of its state as orders need."""

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from tanist.broker.clients import ClientTable
from tanist.broker.locks import QueueLocks
from tanist.broker.offsets import OffsetTable
from tanist.broker.pull_progress import PullProgress
from tanist.broker.resets.corrections import Corrections
from tanist.broker.resets.order_file import OrderFile, SavedOrders, decode_order
from tanist.broker.resets.table import OrderTable
from tanist.broker.settings import BrokerSettings
from tanist.broker.table_safety import TableSafety
from tanist.errors import DiskFull
from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.offsets import QueueOffset
from tanist.model.topics import TopicConfig
from tanist.sim.loop import PlayedClock
from tanist.sim.reset.around import QUEUES, Around

_TableT = TypeVar("_TableT")


class PlayedDisk:
    """Whether there is room on it."""

    is_full = False

    def check(self) -> None:
        if self.is_full:
            raise DiskFull("the disk", 1)


class PlayedOffsetFile(Generic[_TableT]):
    """The file of offsets: what was saved last. What is changed after it was read is not changed in it."""

    def __init__(self, disk: PlayedDisk, empty: _TableT) -> None:
        self._disk = disk
        self._kept = deepcopy(empty)

    def load(self) -> _TableT:
        return deepcopy(self._kept)

    def save(self, table: _TableT) -> None:
        self._disk.check()
        self._kept = deepcopy(table)


class PlayedOrderFile(OrderFile):
    """The file of orders, as bytes. The log beside it is nobody's business here."""

    def __init__(self, disk: PlayedDisk) -> None:
        self._disk = disk
        self._version = 0
        self._kept: list[bytes] = []

    def load(self) -> SavedOrders:
        return SavedOrders(version=self._version, orders=[decode_order(order) for order in self._kept])

    def save(self, number: int, version: int, orders: Any, audit: Any) -> None:  # noqa: ARG002
        self._disk.check()
        self._version, self._kept = version, [*orders]


@dataclass(slots=True)
class PlayedState:
    """As much of a broker's state as orders, offsets and clients have to do with."""

    settings: BrokerSettings
    clients: ClientTable
    offsets: OffsetTable
    resets: OrderTable
    clock: PlayedClock
    topics: Any
    groups: Any
    store: Any
    epoch: int = 0
    read_right: None = None
    locks: QueueLocks = field(default_factory=QueueLocks)
    pull_progress: PullProgress = field(default_factory=PullProgress)
    corrections: Corrections = field(default_factory=Corrections)
    table_safety: TableSafety = field(default_factory=TableSafety)


@dataclass(frozen=True, slots=True)
class Topics:
    """All topics have the same queues."""

    @staticmethod
    def find(name: str) -> TopicConfig:
        return TopicConfig(topic_name=name, read_queue_count=QUEUES, write_queue_count=QUEUES)

    @staticmethod
    def add_several(_topics: object, **_bounds: int) -> None:
        """None is missing."""


@dataclass(frozen=True, slots=True)
class Groups:
    """All groups are there."""

    @staticmethod
    def find(name: str) -> SubscriptionGroupConfig:
        return SubscriptionGroupConfig(group_name=name)

    @staticmethod
    def ensure_several(_groups: object, **_bounds: int) -> dict[str, SubscriptionGroupConfig]:
        return {}


class Queues:
    """The log of the group, which both brokers have: how long each queue is. Also the store's ``queues``."""

    def __init__(self, around: Around) -> None:
        self._around = around
        self.queues = self

    def find(self, topic: str, queue_id: int) -> Any:
        return _Bounds(QueueOffset(0), QueueOffset(self._around.end_of(topic, queue_id)))


@dataclass(frozen=True, slots=True)
class _Bounds:
    min_offset: QueueOffset
    max_offset: QueueOffset
