"""Does what orders decide: tells clients, asks them, wakes their pulls, and writes the lines of log."""

import asyncio
import logging
from collections.abc import Sequence
from typing import NamedTuple

from tanist.broker.consumer_group import Client, ClientConnection
from tanist.broker.resets.actions import Action, AskStanding, NoteReceipt, TellClient, WakePulls
from tanist.broker.resets.moment import moment_of
from tanist.broker.resets.watch import Commit, FindMember, OrderWatch
from tanist.broker.state import BrokerState
from tanist.errors import MQError, RemotingError
from tanist.model.groups import ConsumeType, MessageModel
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.protocol.bodies import decode_java_json, encode_body
from tanist.protocol.bodies.reset import OffsetTable, ReceiptState, rows_of
from tanist.protocol.bodies.running import ConsumerStatus
from tanist.protocol.codes import Language, RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.frame import encode_command
from tanist.protocol.headers.common import TopicGroupRequest
from tanist.protocol.headers.reset import ResetOffsetRequest
from tanist.protocol.java_json import ObjectKeyed

_log = logging.getLogger(__name__)

ASK_PATIENCE_S = 5.0
"""How long a client may take to say where it stands, as in RocketMQ."""


def carry_out(state: BrokerState, actions: Sequence[Action]) -> None:
    """Note all of them, then do them."""
    if not actions:
        return
    state.resets.on_acted(actions, state.clock.now_ms())
    frames = _Frames(state)
    for action in actions:
        match action:
            case TellClient(client=client):
                client.connection.send(frames.order(action))
            case AskStanding(watch, client):
                _ask(state, watch, client)
            case WakePulls(watch):
                for wake in state.resets.wakers:
                    wake(watch)
            case NoteReceipt(watch, receipt):
                if receipt.state is ReceiptState.CONFIRMED:
                    _log.info(
                        "[reset-offset] reset offset success. topic=%s, group=%s, clientId=%s",
                        *(watch.topic, watch.group, receipt.client_id),
                    )
                else:
                    _log.warning(
                        "[reset-offset] reset offset failed. topic=%s, group=%s, clientId=%s, reason=%s",
                        *(watch.topic, watch.group, receipt.client_id, receipt.reason),
                    )


def on_members(state: BrokerState, client: Client, groups: Sequence[str]) -> None:
    """A heartbeat has come from a member of these groups."""
    if not _owns_offsets(state):
        return
    for name in groups:
        group = state.clients.find_group(name)
        if group is None:
            continue
        for watch in [*state.resets.watched_groups.get(name, ())]:
            actions = watch.on_member(
                client,
                moment_of(state.clock),
                is_broadcast=group.message_model is MessageModel.BROADCASTING,
                is_active=group.consume_type is ConsumeType.ACTIVELY,
            )
            carry_out(state, actions)


def on_left(state: BrokerState, connection: ClientConnection, group: str) -> None:
    """A connection is no member of a group any more."""
    for watch in state.resets.watched_groups.get(group, ()):
        if watch.on_left(connection):
            state.resets.touched(watch)


def on_lost(state: BrokerState, connection: ClientConnection) -> None:
    """A connection has ended, and may have been forgotten by its groups before."""
    for group in [*state.resets.watched_groups]:
        on_left(state, connection, group)


class Visit(NamedTuple):
    """Who does something in a queue of a group."""

    group: str
    topic: str
    queue_id: int
    connection: ClientConnection


def may_commit(
    state: BrokerState, visit: Visit, offset: int, *, is_one_way: bool, client_id: str | None = None
) -> bool:
    """Whether a commit counts in a group that is being moved."""
    commit = Commit(visit.connection, visit.queue_id, offset, is_one_way, client_id)
    counts = True
    for watch in _watches(state, visit):
        is_taken, actions = watch.may_commit(commit, moment_of(state.clock), _find_member(state, visit))
        counts &= is_taken
        carry_out(state, actions)
    return counts


def on_query(state: BrokerState, visit: Visit) -> None:
    """A client is told where its group stands."""
    for watch in _watches(state, visit):
        watch.on_query(visit.connection, visit.queue_id, _find_member(state, visit))


def on_pull(state: BrokerState, visit: Visit, *, asked: int, next_offset: int) -> None:
    """A client of a group that is being moved pulls."""
    for watch in _watches(state, visit):
        actions = watch.on_pull(
            visit.connection,
            visit.queue_id,
            asked,
            next_offset,
            now=moment_of(state.clock),
            find_member=_find_member(state, visit),
        )
        carry_out(state, actions)


def take_pending(state: BrokerState, visit: Visit, asked: int) -> int | None:
    """Where a pull is sent instead; None if it is answered as always."""
    for watch in _watches(state, visit):
        target = watch.take_pending(visit.connection, visit.queue_id, asked, moment_of(state.clock))
        if target is not None:
            state.resets.touched(watch)
            return target
    return None


def on_tick(state: BrokerState) -> None:
    """To be called every few seconds."""
    if _owns_offsets(state):
        carry_out(state, state.resets.on_tick(moment_of(state.clock)))


class _Frames:
    """The orders of one call as bytes, each made once: they go to all members alike."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._made: dict[tuple[str, bool, frozenset[int], frozenset[int]], bytes] = {}

    def order(self, told: TellClient) -> bytes:
        watch, is_list = told.watch, told.client.language == Language.CPP.name
        key = (watch.order_id, is_list, told.spared, told.moved)
        if key not in self._made:
            table = offset_table(self._state, watch, spared=told.spared, moved=told.moved)
            self._made[key] = _order_frame(watch, table, epoch=self._state.epoch, is_list=is_list)
        return self._made[key]


def _owns_offsets(state: BrokerState) -> bool:
    """Whether groups are moved by this broker. A slave knows its master's orders, and leaves them to it."""
    right = state.read_right
    return not state.settings.is_slave if right is None else right.is_readable


def _watches(state: BrokerState, visit: Visit) -> list[OrderWatch]:
    return [*state.resets.watched.get((visit.group, visit.topic), ())]


def _find_member(state: BrokerState, visit: Visit) -> FindMember:
    return lambda: state.clients.member_at(visit.group, visit.connection)


def offset_table(
    state: BrokerState,
    watch: OrderWatch,
    *,
    spared: frozenset[int] = frozenset(),
    moved: frozenset[int] = frozenset(),
) -> OffsetTable:
    """The targets of an order, without the queues ``moved``; in those ``spared`` where the group stands."""
    topic, broker_name = watch.topic, state.settings.broker_name
    stands = {queue_id: state.offsets.find(watch.group, topic, queue_id) for queue_id in spared}
    return OffsetTable(
        offset_table=ObjectKeyed(
            {
                MessageQueue(topic=topic, broker_name=broker_name, queue_id=queue_id): QueueOffset(
                    target if (stood := stands.get(queue_id)) is None else stood
                )
                for queue_id, target in watch.targets.items()
                if queue_id not in moved
            }
        )
    )


def _order_frame(watch: OrderWatch, table: OffsetTable, *, epoch: int, is_list: bool) -> bytes:
    """Clients written in C++ can not read the table that all others read, and get a list."""
    header = ResetOffsetRequest(
        topic=watch.topic,
        group=watch.group,
        timestamp_ms=watch.timestamp_ms,
        is_force=watch.is_forced,
        order_id=watch.order_id,
        applied_ms=watch.applied_ms,
        master_epoch=epoch or None,
    )
    return encode_command(
        Command.request(
            RequestCode.RESET_CONSUMER_CLIENT_OFFSET,
            header,
            body=encode_body(rows_of(table) if is_list else table),
            is_one_way=True,
        )
    )


def _ask(state: BrokerState, watch: OrderWatch, client: Client) -> None:
    """Ask where a client stands. What it does not answer is not known, and that is all."""
    header = TopicGroupRequest(topic=watch.topic, group=watch.group)
    question = Command.request(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, header)
    try:
        awaited = asyncio.ensure_future(client.connection.request(question, ASK_PATIENCE_S))
    except RemotingError:
        return

    def on_answer(done: asyncio.Future[Command]) -> None:
        if done.cancelled() or done.exception() is not None:
            return
        answer = done.result()
        if answer.code != ResponseCode.SUCCESS:
            return
        try:
            table = decode_java_json(answer.body, ConsumerStatus).queue_table
        except MQError:
            return
        name = state.settings.broker_name
        offsets = {
            queue.queue_id: int(offset)
            for queue, offset in table.items()
            if queue.broker_name == name and queue.topic == watch.topic
        }
        carry_out(state, watch.on_standing(client.connection, offsets, moment_of(state.clock)))
        state.resets.touched(watch)

    awaited.add_done_callback(on_answer)
