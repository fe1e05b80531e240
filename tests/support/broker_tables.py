"""The tables of a broker over a small store, for tests of what reads and changes them."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from tanist.broker.clients import ClientTable
from tanist.broker.consumer_group import Client, ClientConnection
from tanist.broker.delays.rules import DelayRules
from tanist.broker.delays.table import DelayTable
from tanist.broker.groups import GroupTable
from tanist.broker.late import LongAnswers
from tanist.broker.locks import QueueLocks
from tanist.broker.offsets import OffsetTable
from tanist.broker.operating.live_config import LiveConfig
from tanist.broker.operating.stats import Counters
from tanist.broker.placing import Placing
from tanist.broker.pull_progress import PullProgress
from tanist.broker.replication import Parts, Replication
from tanist.broker.settings import BrokerSettings
from tanist.broker.state import BrokerState
from tanist.broker.topics import TopicTable
from tanist.broker.writer import LogWriter
from tanist.clock import Clock
from tanist.errors import ResponseError
from tanist.ha.settings import HaSettings
from tanist.model.groups import ConsumeFromWhere, ConsumeType, MessageModel
from tanist.model.host import pack_host
from tanist.model.subscription import SubscriptionData
from tanist.protocol.bodies.client import ConsumerData, HeartbeatData
from tanist.protocol.bodies.sync import ConsumerOffsetTable, SubscriptionGroupTable, TopicConfigTable
from tanist.protocol.command import Command
from tanist.protocol.headers.base import Header
from tanist.remoting import Connection, Handler
from tanist.store.config_table import ConfigTable
from tanist.store.disk import Disk
from tanist.store.flush import Flusher
from tanist.store.scrub import Scrub
from tanist.store.upkeep import Upkeep
from tests.support.clocks import FakeClock
from tests.support.fake_connection import FakeConnection
from tests.support.messages import open_store

SETTINGS = BrokerSettings(broker_cluster_name="DefaultCluster", broker_name="broker-a")


def open_topics(
    root: Path, settings: BrokerSettings = SETTINGS, *, clock: Clock | None = None, disk: Disk | None = None
) -> TopicTable:
    file = ConfigTable(disk or Disk(), root, TopicConfigTable)
    return TopicTable.open(file, settings, clock or FakeClock())


def open_groups(
    root: Path, settings: BrokerSettings = SETTINGS, *, clock: Clock | None = None, disk: Disk | None = None
) -> GroupTable:
    file = ConfigTable(disk or Disk(), root, SubscriptionGroupTable)
    return GroupTable.open(file, settings, clock or FakeClock())


def open_offsets(root: Path, *, clock: Clock | None = None, disk: Disk | None = None) -> OffsetTable:
    return OffsetTable.open(ConfigTable(disk or Disk(), root, ConsumerOffsetTable), clock or FakeClock())


def open_state(root: Path, settings: BrokerSettings = SETTINGS, *, clock: Clock | None = None) -> BrokerState:
    """A broker's state without a writer: whoever needs messages appends them to the store."""
    clock = clock or FakeClock()
    store = open_store(root, clock=clock)
    return BrokerState(
        settings=settings,
        ha=HaSettings(),
        config=LiveConfig(settings, store.settings),
        store=store,
        topics=open_topics(root, settings, clock=clock),
        groups=open_groups(root, settings, clock=clock),
        offsets=open_offsets(root, clock=clock),
        clients=ClientTable(),
        locks=QueueLocks(),
        placing=Placing(delays=DelayRules.of(settings, store.settings.delay_levels)),
        delays=DelayTable.open(Disk(), root, settings, store, clock),
        writer=(writer := cast("LogWriter", None)),
        replication=Replication(
            Parts(settings, HaSettings(), None, store, writer, cast("Flusher", None), clock)
        ),
        counters=Counters(cluster=settings.broker_cluster_name, boot_ms=clock.now_ms()),
        upkeep=Upkeep(store, clock),
        scrub=Scrub(store, clock),
        pull_progress=PullProgress(),
        long_answers=LongAnswers(clock),
        clock=clock,
        store_host=pack_host("127.0.0.1", 10911),
        pid=1,
    )


def join(
    state: BrokerState,
    group: str,
    *wanted: SubscriptionData,
    client_id: str = "10.0.0.5@1",
    connection: ClientConnection | None = None,
    language: str = "JAVA",
    is_broadcast: bool = False,
) -> None:
    """Let a client join a group with a heartbeat that wants these topics."""
    consumer = ConsumerData(
        group_name=group,
        consume_type=ConsumeType.PASSIVELY,
        message_model=MessageModel.BROADCASTING if is_broadcast else MessageModel.CLUSTERING,
        consume_from_where=ConsumeFromWhere.LAST_OFFSET,
        subscription_data_set=list(wanted),
    )
    client = Client(connection or FakeConnection(), client_id, language, 479)
    heartbeat = HeartbeatData(client_id=client_id, consumer_data_set=[consumer])
    state.clients.on_heartbeat(client, heartbeat, now_ms=state.clock.now_ms())


class Asker:
    """Asks handlers as a connection does, and hands back what they answer."""

    def __init__(self, routes: Mapping[int, Handler]) -> None:
        self._routes = routes
        # These handlers only say who asked.
        self._connection = cast("Connection", SimpleNamespace(peer="127.0.0.1:5"))

    def ask(
        self,
        code: int,
        header: Header | None = None,
        *,
        ext: dict[str, str] | None = None,
        body: bytes = b"",
    ) -> Command:
        """The answer to one request. A refusal is the answer it becomes on the wire."""
        request = Command.request(code, header, ext=ext, body=body, opaque=7)
        try:
            answer = self._routes[code](request, self._connection)
        except ResponseError as refusal:
            return request.reply(refusal.code, remark=refusal.remark)
        assert isinstance(answer, Command)
        assert answer.is_response
        return answer
