"""What the handlers of one broker share."""

from dataclasses import dataclass

from tanist.broker.clients import ClientTable
from tanist.broker.delay_table import DelayTable
from tanist.broker.groups import GroupTable
from tanist.broker.late import LongAnswers
from tanist.broker.locks import QueueLocks
from tanist.broker.offsets import OffsetTable
from tanist.broker.placing import Placing
from tanist.broker.pull_progress import PullProgress
from tanist.broker.settings import BrokerSettings
from tanist.broker.topics import TopicTable
from tanist.broker.writer import LogWriter
from tanist.clock import Clock
from tanist.store import MessageStore


@dataclass(slots=True)
class BrokerState:
    """One broker's tables, its store and its clock."""

    settings: BrokerSettings
    store: MessageStore
    topics: TopicTable
    groups: GroupTable
    offsets: OffsetTable
    clients: ClientTable
    locks: QueueLocks
    placing: Placing
    delays: DelayTable
    writer: LogWriter
    pull_progress: PullProgress
    long_answers: LongAnswers
    clock: Clock
    store_host: bytes
    """This broker's address as its records carry it, packed."""
    pid: int
