"""Both brokers of a group around the real orders: their handlers, tables and chores. Pulls are played."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import msgspec

from tanist.broker.clients import ClientTable
from tanist.broker.handlers import clients as client_handlers
from tanist.broker.offsets import OffsetTable
from tanist.broker.resets import carrying
from tanist.broker.resets.corrections import Place as Reader
from tanist.broker.resets.order_file import decode_order, encode_order
from tanist.broker.settings import BrokerRole, BrokerSettings
from tanist.broker.slave_role import without_writes
from tanist.broker.state import BrokerState
from tanist.broker.table_safety import Copies
from tanist.errors import ResponseError
from tanist.ha.replicas import Dialect, Replica, ReplicaTable
from tanist.model.message import Message
from tanist.model.offsets import QueueOffset
from tanist.protocol.bodies.sync import ConsumerOffsetTable
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.ha_link import AckKind
from tanist.protocol.headers.pull import PullMessageRequest, PullMessageResponse
from tanist.protocol.record import encode_record
from tanist.sim.clockwork import Process
from tanist.sim.loop import PlayedClock
from tanist.sim.reset.around import BROKER, Around
from tanist.sim.reset.links import End, Place
from tanist.sim.reset.rules import Spot
from tanist.sim.reset.tables import (
    Groups,
    PlayedDisk,
    PlayedOffsetFile,
    PlayedOrderFile,
    PlayedState,
    Queues,
    Topics,
)

_SAVE_OFFSETS_S = 5.0
_SAVE_ORDERS_S = 1.0
_SCAN_S = 10.0
_FEED_S = 0.02
_SLAVE_TIMEOUT_S = 2.0
_STORE_HOST = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"


@dataclass(slots=True)
class _Parked:
    """A pull that waits."""

    command: Command
    end: End
    offset: int


class PlayedBroker:
    """One broker through all its lives; its files outlive it."""

    def __init__(self, around: Around, name: str, offsets: ConsumerOffsetTable) -> None:
        self.around = around
        self.place = Place(Process(name))
        self.place.on_command = self._on_command
        self.place.on_lost = self._on_lost
        self.disk = PlayedDisk()
        self.clock = PlayedClock(around.clockwork)
        self.is_master = False
        self.slave: PlayedBroker | None = None
        """Who is fed, while this one is master."""
        self.is_in_step = False
        """Whether it may be elected: it has had all that there was when it came, and hears what follows."""
        self._replicas = ReplicaTable(fallbehind_max_bytes=1)
        self._offset_file = PlayedOffsetFile(self.disk, offsets)
        self._order_file = PlayedOrderFile(self.disk)
        self._parked: dict[tuple[str, int], list[_Parked]] = {}
        self._due: dict[str, None] = {}
        self._fed_number = 0

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def state(self) -> BrokerState:
        return cast("BrokerState", self._state)

    def start(self, *, is_master: bool) -> None:
        around, machines = self.around, self.around.machines
        self.place.begin(around.clockwork)
        self.is_master, self.is_in_step = is_master, False
        self._parked.clear()
        self._due.clear()
        offsets = OffsetTable.open(cast("Any", self._offset_file), self.clock)
        resets = machines.order_table(self._order_file)
        machines.set_unsaved(resets, offsets)
        self._state = PlayedState(
            BrokerSettings(broker_name=BROKER),
            ClientTable(),
            offsets,
            resets,
            self.clock,
            Topics(),
            Groups(),
            Queues(around),
        )
        self._state.table_safety.askers.append(self._ask_slave)
        offsets.watchers.append(self._on_offsets)
        resets.watchers.append(self._on_orders)
        handled: Any = (
            machines.offset_handler(self.state),
            machines.client_handler(self.state),
            machines.reset_handler(self.state),
        )
        offset, client, self._reset_handler = handled
        self._as_master: Mapping[int, Any] = {
            RequestCode.QUERY_CONSUMER_OFFSET: offset.query,
            RequestCode.UPDATE_CONSUMER_OFFSET: offset.update,
            RequestCode.GET_MAX_OFFSET: offset.get_max,
            RequestCode.GET_MIN_OFFSET: offset.get_min,
            RequestCode.HEART_BEAT: client.heartbeat,
            RequestCode.UNREGISTER_CLIENT: client.unregister,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: client.list_members,
            RequestCode.LOCK_BATCH_MQ: client.lock_queues,
            RequestCode.UNLOCK_BATCH_MQ: client.unlock_queues,
            RequestCode.APPLY_RESET: self._apply,
            RequestCode.RESET_RECEIPT: self._reset_handler.receipt,
            RequestCode.PULL_MESSAGE: self._pull,
        }
        self._use_role()
        self._every(_SAVE_OFFSETS_S, self._save_offsets)
        self._every(_SAVE_ORDERS_S, self._save_orders)
        self._every(_SCAN_S, self._scan)

    def become(self, *, is_master: bool) -> None:
        """Take another role, in this life."""
        if is_master != self.is_master:
            self.is_master = is_master
            if is_master:
                self._save_offsets()
                self._save_orders()
            self._use_role()

    def feed_all(self, slave: "PlayedBroker") -> None:
        """A slave follows from now on: it is told all there is, and then what changes."""
        self.slave = slave
        self._fed_number += 1
        self._due.clear()
        slave.is_in_step = False
        self._replicas.join(
            Replica(slave.name, Dialect.TANIST, 1, True, 0, 0, AckKind.RECEIVED, self.clock.now_ms())
        )
        state, line_up = self._state, self._tell_slave
        table = state.offsets.table()
        orders = [encode_order(order.saved(has_queues=False)) for order in state.resets.orders()]
        line_up(lambda: slave.state.offsets.follow(table))
        line_up(lambda: slave.follow_orders(orders, (), is_whole=True))
        self._ask_slave(state.table_safety.asked)

    def follow_orders(self, orders: list[bytes], gone: tuple[str, ...], *, is_whole: bool = False) -> None:
        known, is_ours = [decode_order(order) for order in orders], self.is_master
        self.state.resets.follow(known, gone, is_ours=is_ours, is_whole=is_whole)

    def on_grown(self, topic: str, queue_id: int) -> None:
        """A queue has another message: whoever waits for it is answered."""
        if self.place.process.is_awake:
            for parked in self._parked.pop((topic, queue_id), []):
                self._resume(parked)

    # Chores

    def _every(self, period_s: float, do: Callable[[], None]) -> None:
        process, life = self.place.process, self.place.process.life

        def again() -> None:
            do()
            self.around.clockwork.after(period_s, again, process=process, life=life)

        self.around.clockwork.after(period_s, again, process=process, life=life)

    def _save_offsets(self) -> None:
        finish, moved = self._state.offsets.start_save(), self._state.resets.unsaved()
        if finish is not None and not self.disk.is_full:
            finish()
            self._state.resets.offsets_saved(moved)

    def _save_orders(self) -> None:
        if not self.disk.is_full:
            self._state.resets.save()

    def _scan(self) -> None:
        client_handlers.on_tick(self.state)
        carrying.on_tick(self.state)
        self._state.corrections.on_tick(self.clock.now_ms())

    def _use_role(self) -> None:
        slave_handlers = without_writes(self._as_master, self._find_master, lambda: False)
        self._handlers: Mapping[int, Any] = self._as_master if self.is_master else slave_handlers
        role = BrokerRole.SYNC_MASTER if self.is_master else BrokerRole.SLAVE
        state = self._state
        copies = Copies(self._replicas, lambda: 1, _SLAVE_TIMEOUT_S) if self.is_master else None
        state.table_safety.use(copies)
        state.epoch = self.around.reign
        state.settings = msgspec.structs.replace(
            state.settings, broker_role=role, broker_id=0 if self.is_master else 1
        )

    def _find_master(self) -> str:
        return self.around.addresses[0]

    # What a slave is told

    def _on_offsets(self, keys: Any) -> None:
        for key in keys:
            topic, _, group = key.partition("@")
            for queue_id, offset in self._state.offsets.queues_at(key).items():
                self.around.rules.on_stands(Spot(group, topic, queue_id), offset)
        self._is_due("offsets", keys)

    def _on_orders(self, order_ids: Any) -> None:
        self._is_due("orders", order_ids)

    def _is_due(self, table: str, names: Any) -> None:
        if not self.is_master or self.slave is None:
            return
        is_first = not self._due
        self._due.update(dict.fromkeys(f"{table} {name}" for name in names))
        if is_first:
            self.around.clockwork.after(_FEED_S, self._feed, process=self.place.process)

    def _feed(self) -> None:
        """Tell what changed as it is now, table by table in the order in which they changed."""
        slave, state = self.slave, self._state
        due, self._due = [*self._due], {}
        if slave is None or not due or not self.is_master:
            return
        keys = [name for each in due if (name := each.removeprefix("offsets ")) != each]
        ids = [name for each in due if (name := each.removeprefix("orders ")) != each]
        changes = {key: state.offsets.queues_at(key) for key in keys}
        version = state.offsets.data_version
        found = [order for each in ids if (order := state.resets.find(each)) is not None]
        orders = [encode_order(order.saved(has_queues=False)) for order in found]
        gone = tuple(each for each in ids if state.resets.find(each) is None)

        def tell_offsets() -> None:
            self._tell_slave(lambda: slave.state.offsets.follow_keys({**changes}, version))

        def tell_orders() -> None:
            self._tell_slave(lambda: slave.follow_orders(orders, gone))

        told = [tell for tell, names in ((tell_offsets, keys), (tell_orders, ids)) if names]
        for tell in told if due[0].startswith("offsets") else reversed(told):
            tell()

    def _ask_slave(self, number: int) -> None:
        """Whether it has taken over all that it is told before."""
        self._feed()
        slave, fed_number, back = self.slave, self._fed_number, self.around.back_line
        if slave is None:
            return
        (replica,) = self._replicas

        def hear() -> None:
            if self.is_master and self._fed_number == fed_number:
                slave.is_in_step, replica.tables_held = True, max(replica.tables_held, number)
                self.place.run(self._state.table_safety.on_held)

        def answer() -> None:
            self.around.cables.say((slave.name, self.name), self.place.process, hear, line=back)

        self._tell_slave(answer)

    def _tell_slave(self, do: Callable[[], object]) -> None:
        slave, number = self.slave, self._fed_number
        assert slave is not None
        reign = self.around.reign

        def hear() -> None:
            if self.around.reign == reign and self._fed_number == number and not slave.is_master:
                do()

        way = (self.name, slave.name)
        self.around.cables.say(way, slave.place.process, hear, line=self.around.feed_line)

    # What members ask

    def _on_command(self, end: End, command: Command) -> None:
        if command.code not in self._handlers:
            end.send(command.reply(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark="not played"))
            return
        try:
            answer = self._handlers[command.code](command, end)
        except ResponseError as error:
            answer = command.reply(error.code, remark=error.remark, ext=error.ext)
        around = self.around
        is_lost = around.answer_loss > 0.0 and around.chance.random() < around.answer_loss
        if answer is not None and not command.is_one_way and not is_lost:
            end.send(answer)

    def _on_lost(self, end: End) -> None:
        for waiting in self._parked.values():
            waiting[:] = [parked for parked in waiting if parked.end is not end]
        client_handlers.on_lost(self.state, cast("Any", end))

    def _apply(self, command: Command, end: End) -> Command | None:
        """An operator's order, and what it moved."""
        state = self._state
        known, before = len(state.resets.orders()), state.offsets.table().offset_table
        try:
            return self._reset_handler.apply(command, cast("Any", end))
        finally:
            self._tell_rules(known, before)

    def _tell_rules(self, known: int, before: Mapping[str, Mapping[int, int]]) -> None:
        state = self._state
        if len(state.resets.orders()) > known:
            order = state.resets.orders()[-1].record
            self.around.rules.on_applied(
                order.order_id,
                order.group,
                order.topic,
                {wanted.queue_id: wanted.target for wanted in order.targets},
                before=before,
                after=state.offsets.table().offset_table,
            )

    def _pull(self, command: Command, end: End) -> Command | None:
        """As the pull handler does, of messages that all are wanted."""
        request = command.header(PullMessageRequest)
        self._state.clients.subscription(
            request.consumer_group, request.topic, sub_version=request.sub_version, is_broadcast_allowed=True
        )
        return self._look(_Parked(command, end, request.queue_offset), may_wait=request.suspend_timeout_ms)

    def _look(self, parked: _Parked, *, may_wait: int) -> Command | None:
        command, asked = parked.command, parked.offset
        request, state = command.header(PullMessageRequest), self.state
        end = self.around.end_of(request.topic, request.queue_id)
        client = state.clients.member_at(request.consumer_group, cast("Any", parked.end))
        place = Reader(
            request.consumer_group,
            parked.end.peer if client is None else client.client_id,
            request.topic,
            request.queue_id,
        )
        if 0 <= asked <= end:
            upto = min(end, asked + request.max_message_count)
            code = ResponseCode.SUCCESS if upto > asked else ResponseCode.PULL_NOT_FOUND
            state.corrections.on_legal(place)
        else:
            upto, code = min(max(asked, 0), end), ResponseCode.PULL_OFFSET_MOVED
            state.corrections.on_corrected(place, asked, upto, self.clock.now_ms())
        state.pull_progress.note(request.consumer_group, request.topic, request.queue_id, upto)
        carrying.on_pull(state, _visit(request, parked.end), asked=asked, next_offset=upto)
        if code == ResponseCode.PULL_NOT_FOUND and may_wait:
            self._park(parked, request, may_wait)
            return None
        return self._answer(command, request, code, upto)

    def _park(self, parked: _Parked, request: PullMessageRequest, wait_ms: int) -> None:
        waiting = self._parked.setdefault((request.topic, request.queue_id), [])
        waiting.append(parked)

        def expire() -> None:
            now_waiting = self._parked.get((request.topic, request.queue_id), [])
            if parked in now_waiting:
                now_waiting.remove(parked)
                self._resume(parked)

        self.around.clockwork.after(wait_ms / 1000, expire, process=self.place.process)

    def _resume(self, parked: _Parked) -> None:
        answer = self._look(parked, may_wait=0)
        assert answer is not None
        parked.end.send(answer)

    def _answer(self, command: Command, request: PullMessageRequest, code: int, next_offset: int) -> Command:
        end = self.around.end_of(request.topic, request.queue_id)
        header = PullMessageResponse(
            suggested_broker_id=0,
            next_begin_offset=QueueOffset(next_offset),
            min_offset=QueueOffset(0),
            max_offset=QueueOffset(end),
        )
        body = b""
        if code == ResponseCode.SUCCESS:
            body = b"".join(_records(request.topic, request.queue_id, request.queue_offset, next_offset))
        return command.reply(code, header, body=body)


def _visit(request: PullMessageRequest, end: End) -> carrying.Visit:
    return carrying.Visit(request.consumer_group, request.topic, request.queue_id, cast("Any", end))


def _records(topic: str, queue_id: int, start: int, end: int) -> Iterator[bytes]:
    return (_record(topic, queue_id, offset) for offset in range(start, end))


@lru_cache(maxsize=4096)
def _record(topic: str, queue_id: int, queue_offset: int) -> bytes:
    return encode_record(
        Message(topic=topic, queue_id=queue_id, body=b"m"),
        queue_offset=queue_offset,
        log_offset=0,
        store_timestamp_ms=0,
        store_host=_STORE_HOST,
    )
