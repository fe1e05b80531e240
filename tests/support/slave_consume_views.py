"""A broker's part in slave consumption, as a test says that it is."""

from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from typing import Any

from msgspec.structs import replace

from tanist.errors import ConnectFailed, ResponseError
from tanist.model.reading import FULL, READ, Assigned, GroupRole, ReadRecord
from tanist.model.route import BrokerData, ClusterInfo
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.slave_consume import (
    AdoptedView,
    ChecksView,
    Condition,
    LedgerEntry,
    LedgerEvent,
    RegistrySessionView,
    SlaveConsumeLedger,
    SlaveConsumeStatus,
)
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.slave_consume import EndSlaveConsumeRequest, GetSlaveConsumeLedgerRequest

GROUP, MASTER, SLAVE = "broker-a", "10.0.0.1:10911", "10.0.0.2:10911"
BROKERS = [
    Assigned(address=MASTER, role=GroupRole.MASTER, broker_id=0, permission=FULL),
    Assigned(address=SLAVE, role=GroupRole.SLAVE, broker_id=1, permission=READ),
]
HELD = RegistrySessionView(state="connected", held_for_ms=3_000)
READ_FROM_MASTER = ReadRecord(group=GROUP, term=2, second=SLAVE, since_ms=1_700_000_000_000)
READ_FROM_SLAVE = ReadRecord(
    group=GROUP, term=3, reader=SLAVE, second=SLAVE, since_ms=1_700_000_000_000, reason="the master is gone"
)


_SERVING_MASTER = SlaveConsumeStatus(
    group=GROUP,
    address=MASTER,
    role=GroupRole.MASTER,
    state="serving",
    permission="FULL",
    configured_permission="FULL",
    reason="the master is read",
    record=READ_FROM_MASTER,
    is_linked=True,
    registry=HELD,
    brokers=BROKERS,
    adopted=AdoptedView(term=2, round=1),
)
_WAITING_MASTER = replace(
    _SERVING_MASTER,
    state="waiting for its slave",
    permission="NONE",
    reason=f"the group is in slave consumption, term 3: {SLAVE} is read",
    record=READ_FROM_SLAVE,
    is_linked=False,
    duplicates_if_ended={"orders": 7, "bills": 30},
)
_FOLLOWING_SLAVE = replace(
    _SERVING_MASTER,
    address=SLAVE,
    role=GroupRole.SLAVE,
    state="following",
    permission="NONE",
    configured_permission="READ",
    reason="it is a slave, and its group is not read from it",
    adopted=None,
    checks=ChecksView(
        needed=3,
        count=1,
        conditions=[
            Condition("registry reached", True, "yes"),
            Condition("link to the master down", False, "up"),
        ],
    ),
)
_READING_SLAVE = replace(
    _FOLLOWING_SLAVE,
    state="reading",
    permission="READ",
    reason="the group is in slave consumption",
    record=READ_FROM_SLAVE,
    is_linked=False,
)
_SWITCH = LedgerEntry(
    at_ms=1_700_000_000_000,
    event=LedgerEvent.SWITCH,
    group=GROUP,
    term=3,
    broker=SLAVE,
    reason="the master is gone",
    conditions=[Condition("link to the master down", True, "down")],
    offsets={"TopicA@orders": {0: 90}},
    duplicates={"orders": 7},
    duplicates_at_most=7,
)


def serving_master(**other: Any) -> SlaveConsumeStatus:
    """A master that serves; ``other`` is what differs, and so in the next."""
    return replace(_SERVING_MASTER, **other)


def waiting_master(**other: Any) -> SlaveConsumeStatus:
    """A master whose slave is read, and away."""
    return replace(_WAITING_MASTER, **other)


def following_slave(**other: Any) -> SlaveConsumeStatus:
    return replace(_FOLLOWING_SLAVE, **other)


def reading_slave(**other: Any) -> SlaveConsumeStatus:
    return replace(_READING_SLAVE, **other)


def switch_entry(**other: Any) -> LedgerEntry:
    return replace(_SWITCH, **other)


class PlayedView:
    """Answers what it is given, and keeps what it was asked to do."""

    def __init__(
        self, status: SlaveConsumeStatus, *entries: LedgerEntry, refusal: ResponseError | None = None
    ) -> None:
        self.told = status
        self.event_counts = Counter(entry.event for entry in entries)
        self._entries = list(entries)
        self._refusal = refusal
        self.ended: list[tuple[str, bool]] = []
        self.work: list[Callable[[], Awaitable[None]]] = []

    def status(self) -> SlaveConsumeStatus:
        return self.told

    def duplicates_if_ended(self) -> Generator[None, None, dict[str, int] | None]:
        yield
        return self.told.duplicates_if_ended

    def ledger(self, count: int) -> SlaveConsumeLedger:
        return SlaveConsumeLedger(entries=self._entries[-count:])

    async def end(self, reason: str, *, is_forced: bool) -> str:
        if self._refusal is not None:
            raise self._refusal
        self.ended.append((reason, is_forced))
        return "slave consumption 3 is ended"

    def soon(self, work: Callable[[], Awaitable[None]]) -> None:
        self.work.append(work)


class PlayedWire:
    """Brokers, by address, and a name server that knows some of them, as an operator reaches them."""

    def __init__(self, *views: PlayedView, route: ClusterInfo | None = None) -> None:
        self.views = {view.told.address: view for view in views}
        self._route = route or ClusterInfo()

    async def ask(self, address: str, command: Command, *, timeout_s: float | None = None) -> Command:
        del timeout_s
        if command.code == RequestCode.GET_BROKER_CLUSTER_INFO:
            return command.reply(body=encode_body(self._route))
        if (view := self.views.get(address)) is None:
            raise ConnectFailed(address, "nobody is there")
        match command.code:
            case RequestCode.GET_SLAVE_CONSUME_STATUS:
                return command.reply(body=encode_body(view.status()))
            case RequestCode.GET_SLAVE_CONSUME_LEDGER:
                count = command.header(GetSlaveConsumeLedgerRequest).count
                return command.reply(body=encode_body(view.ledger(count)))
            case RequestCode.END_SLAVE_CONSUME:
                request = command.header(EndSlaveConsumeRequest)
                assert (request.broker_name, request.term) == (view.told.group, view.told.term)
                done = await view.end(request.reason, is_forced=request.is_forced)
                return command.reply(body=done.encode())
            case _:
                raise ResponseError(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, "not supported")

    async def close(self) -> None:
        """Nothing is open."""


def route_of(*addresses: str, cluster: str = "pairs") -> ClusterInfo:
    """What a name server tells of the group if these are its brokers, the master first."""
    data = BrokerData(cluster=cluster, broker_name=GROUP, broker_addrs=dict(enumerate(addresses)))
    return ClusterInfo(broker_addr_table={GROUP: data}, cluster_addr_table={cluster: frozenset({GROUP})})
