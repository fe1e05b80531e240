"""What the handlers of one broker share."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tanist.broker.clients import ClientTable
from tanist.broker.controlled.duty import Controlled
from tanist.broker.delays.table import DelayTable
from tanist.broker.groups import GroupTable
from tanist.broker.late import LongAnswers
from tanist.broker.locks import QueueLocks
from tanist.broker.offsets import OffsetTable
from tanist.broker.operating.live_config import LiveConfig
from tanist.broker.operating.stats import Counters
from tanist.broker.placing import Placing
from tanist.broker.pull_progress import PullProgress
from tanist.broker.replication import Replication
from tanist.broker.resets.corrections import Corrections
from tanist.broker.resets.table import OrderTable
from tanist.broker.settings import BrokerSettings
from tanist.broker.slave_consume.delivered_twice import DeliveredTwice
from tanist.broker.slave_consume.right import ReadRight
from tanist.broker.slave_consume.view import SlaveConsumeView
from tanist.broker.table_safety import TableSafety
from tanist.broker.topics import TopicTable
from tanist.broker.writer import LogWriter
from tanist.broker.writes.kept_writes import KeptWrites
from tanist.clock import Clock
from tanist.ha.settings import HaSettings
from tanist.store import MessageStore
from tanist.store.scrub import Scrub
from tanist.store.upkeep import Upkeep


@dataclass(slots=True)
class BrokerState:
    """One broker's tables, its store and its clock."""

    settings: BrokerSettings
    """As they are now: read them when they are needed, for some can be changed while the broker runs."""
    ha: HaSettings
    """With the real port once the broker serves. None of them can be changed while it runs."""
    config: LiveConfig
    store: MessageStore
    topics: TopicTable
    groups: GroupTable
    offsets: OffsetTable
    clients: ClientTable
    locks: QueueLocks
    placing: Placing
    delays: DelayTable
    writer: LogWriter
    replication: Replication
    counters: Counters
    upkeep: Upkeep
    scrub: Scrub
    pull_progress: PullProgress
    long_answers: LongAnswers
    clock: Clock
    store_host: bytes
    """This broker's address as its records carry it, packed."""
    pid: int
    epoch: int = 0
    """Under a controller: the reign of the role that this broker has."""
    rebuild: Callable[[], None] | None = None
    """Begins anew with an empty log, to be filled by the master. Only a slave does that."""
    rebuild_failure: str | None = None
    """Why that failed when it was last asked for."""
    is_route_old: bool = False
    """Whether name servers have yet to be told of another ``brokerPermission``."""

    resets: OrderTable = field(default_factory=OrderTable)
    """Orders to move groups, and what is watched for them."""
    table_safety: TableSafety = field(default_factory=TableSafety)
    """Whether a switch may still take back what these tables have become."""
    corrections: Corrections = field(default_factory=Corrections)
    """Consumers that ask for what their queues do not have."""
    controlled: Controlled | None = None
    """Its duty to the controllers, in controller mode."""
    read_right: ReadRight | None = None
    """Whether it may be read and written now, where a coordinator says who of the group is read."""
    slave_consume: SlaveConsumeView | None = None
    """What it shows of that, and lets operators do."""
    half_count: Callable[[], int] | None = None
    """How many transactions are open, once it has been a master."""
    delivered_twice: DeliveredTwice = field(default_factory=DeliveredTwice)
    """What groups got twice because another broker was read before."""
    writes: KeptWrites = field(default_factory=KeptWrites)
    """What the log has of writes that are made once."""

    def use_config(self) -> None:
        """Let the settings of ``config`` take effect. If the topics can not be saved, call it again."""
        if self.settings.broker_permission != self.config.broker.broker_permission:
            self.is_route_old = True
        self.settings = self.config.broker
        self.store.settings = self.config.store
        self.groups.use(self.settings)
        self.topics.use(self.settings)
        if self.is_route_old:
            # The route says what may be done with every topic, and name servers take only what is newer.
            self.topics.touch()
            self.is_route_old = False
