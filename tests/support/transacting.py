"""A broker's transactions on a clock that the test moves, without sockets."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from tanist.broker.consumer_group import Client
from tanist.broker.settings import BrokerSettings
from tanist.broker.state import BrokerState
from tanist.broker.transactions.keeper import TransactionKeeper
from tanist.errors import ResponseError
from tanist.model.groups import TRANSACTION_GROUP
from tanist.model.message import Appended, Message, SysFlag
from tanist.model.offsets import QueueOffset
from tanist.model.property_names import PGROUP, TRAN_MSG, UNIQ_KEY
from tanist.model.topics import HALF_OP_TOPIC, HALF_TOPIC
from tanist.protocol.bodies.client import HeartbeatData, ProducerData
from tanist.protocol.codes import RequestCode
from tanist.protocol.headers.transaction import CheckTransactionStateRequest, EndTransactionRequest
from tanist.protocol.properties import encode_properties
from tanist.store import StoreSettings
from tests.support.broker_tables import SETTINGS, open_offsets
from tests.support.clocks import FakeClock
from tests.support.fake_connection import FakeConnection
from tests.support.messages import SMALL, bodies
from tests.support.working_broker import WorkingBroker, working_broker

T = "TopicA"
GROUP = "producers"
COMMIT, ROLLBACK = SysFlag.COMMIT, SysFlag.ROLLBACK


class Transacting:
    """What a test does with transactions, and what it sees of them."""

    def __init__(self, broker: WorkingBroker, root: Path, clock: FakeClock) -> None:
        self.broker = broker
        self.clock = clock
        self._root = root
        self._count = 0
        self.keeper = self._open_keeper()

    @property
    def state(self) -> BrokerState:
        return self.broker.state

    def prepare(
        self, body: bytes = b"body", *, group: str = GROUP, is_indexed: bool = True, **properties: str
    ) -> Appended:
        """Store a half as a send does."""
        self._count += 1
        named = {TRAN_MSG: "true", PGROUP: group, UNIQ_KEY: f"id-{self._count}", **properties}
        message = Message(
            topic=T,
            queue_id=1,
            body=body,
            properties=encode_properties({name: value for name, value in named.items() if value}),
            born_timestamp_ms=self.clock.now_ms(),
        )
        appended = self.state.writer.append(self.state.placing.place(message, self.clock.now_ms()))
        if is_indexed:
            self.state.store.dispatch()
        return appended

    def end(
        self,
        half: Appended | CheckTransactionStateRequest,
        outcome: SysFlag = COMMIT,
        *,
        group: str = GROUP,
        queue_offset: int | None = None,
    ) -> int:
        """End a transaction as its producer does, or as it answers when it was asked; the refusal's code."""
        is_asked = isinstance(half, CheckTransactionStateRequest)
        found_offset = half.half_queue_offset if is_asked else half.queue_offset
        request = EndTransactionRequest(
            producer_group=group,
            half_queue_offset=QueueOffset(found_offset if queue_offset is None else queue_offset),
            half_log_offset=half.half_log_offset if is_asked else half.log_offset,
            outcome=int(outcome),
            msg_id="id",
            is_from_check=is_asked,
        )
        try:
            self.keeper.end(request, outcome)
        except ResponseError as refusal:
            return refusal.code
        finally:
            self.state.store.dispatch()
        return 0

    def pass_ms(self, elapsed_ms: int) -> int | None:
        """Let time pass, and let the broker do what is due then."""
        self.clock.advance_ms(elapsed_ms)
        return self.turn()

    def turn(self) -> int | None:
        delay_ms = self.keeper.turn()
        self.state.store.dispatch()
        return delay_ms

    def connect(self, peer: str = "10.0.0.5:40112", *, group: str = GROUP) -> FakeConnection:
        """Let a producer say that it is there."""
        connection = FakeConnection(peer)
        client = Client(connection, f"{peer}@1", "JAVA", 479)
        heartbeat = HeartbeatData(
            client_id=client.client_id, producer_data_set=[ProducerData(group_name=group)]
        )
        self.state.clients.on_heartbeat(client, heartbeat, now_ms=self.clock.now_ms())
        return connection

    def visible(self, topic: str = T, queue_id: int = 1) -> list[bytes]:
        return bodies(self.state.store, topic, queue_id)

    def noted(self) -> list[bytes]:
        return bodies(self.state.store, HALF_OP_TOPIC)

    def progress(self) -> tuple[int | None, int | None]:
        """The offsets that RocketMQ would go on from."""
        offsets = self.state.offsets
        return offsets.find(TRANSACTION_GROUP, HALF_TOPIC, 0), offsets.find(
            TRANSACTION_GROUP, HALF_OP_TOPIC, 0
        )

    def restart_after_kill(self) -> None:
        """Go on as the next process does: with the log, and with the offsets that were saved."""
        self.state.offsets = open_offsets(self._root, clock=self.clock)
        self.keeper = self._open_keeper()
        self.turn()

    def _open_keeper(self) -> TransactionKeeper:
        keeper = TransactionKeeper(self.state)
        keeper.open()
        return keeper


def asked(connection: FakeConnection) -> list[CheckTransactionStateRequest]:
    """What a producer was asked since the last call."""
    sent = connection.take_sent()
    assert all(command.code == RequestCode.CHECK_TRANSACTION_STATE and command.is_one_way for command in sent)
    return [command.header(CheckTransactionStateRequest) for command in sent]


@asynccontextmanager
async def transacting(
    root: Path, settings: BrokerSettings = SETTINGS, store_settings: StoreSettings = SMALL
) -> AsyncGenerator[Transacting]:
    clock = FakeClock()
    async with working_broker(root, settings, store_settings=store_settings, clock=clock) as broker:
        yield Transacting(broker, root, clock)


def run(
    root: Path,
    scenario: Callable[[Transacting], Awaitable[None]],
    *,
    settings: BrokerSettings = SETTINGS,
    store_settings: StoreSettings = SMALL,
) -> None:
    async def play() -> None:
        async with transacting(root, settings, store_settings) as transactions:
            await scenario(transactions)

    asyncio.run(play())
