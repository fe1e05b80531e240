"""Orders to move a group: RocketMQ's (222), ours (20007), decisions about them (20009), and receipts (20010).

What is ordered is decided and written down in ``broker/resets``; here it is asked, checked and answered.
"""

import logging
import re
import secrets
from collections.abc import Callable, Mapping

import msgspec

from tanist.broker.late import send_failure, send_late
from tanist.broker.offsets import check_client_may_commit
from tanist.broker.queue_look import queue_bounds
from tanist.broker.resets.carrying import carry_out, offset_table
from tanist.broker.resets.moment import moment_of
from tanist.broker.resets.order import GroupStanding, ResetOrder
from tanist.broker.resets.receipts import host_of
from tanist.broker.resets.table import Decision
from tanist.broker.resets.targets import END, check_has_offsets, check_targets, targets_at_time
from tanist.broker.state import BrokerState
from tanist.errors import ResponseError
from tanist.model.groups import ConsumeType, MessageModel
from tanist.model.names import shown
from tanist.model.offsets import QueueOffset
from tanist.model.topics import TopicConfig
from tanist.protocol.bodies import decode_java_json, encode_body
from tanist.protocol.bodies.reset import (
    QueueReceipts,
    QueueTarget,
    QueueTargets,
    ResetOrderView,
    ResetState,
)
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.reset import (
    ApplyResetRequest,
    DecideResetRequest,
    ResetOffsetRequest,
    ResetReceiptRequest,
)
from tanist.protocol.signature import ACCESS_KEY
from tanist.remoting import Connection, Handler

_log = logging.getLogger(__name__)

MAX_EXPIRY_MS = 30 * 86_400_000
DEFAULT_EXPIRY_MS = 86_400_000
_ORDER_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


def routes(state: BrokerState) -> dict[int, Handler]:
    handler = ResetHandler(state)
    return {
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: handler.reset_by_time,
        RequestCode.APPLY_RESET: handler.apply,
        RequestCode.DECIDE_RESET: handler.decide,
        RequestCode.RESET_RECEIPT: handler.receipt,
    }


class ResetHandler:
    """Answers what concerns orders to move groups."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    # RocketMQ's

    def reset_by_time(self, command: Command, connection: Connection) -> Command | None:
        """Move a group to a time, to the end, or in one queue to an offset."""
        request = command.header(ResetOffsetRequest)
        group, topic = request.group, request.topic
        config = self._check(group, topic)
        caller = self._who(command, connection, connection.peer)
        _log.info(
            "[reset-offset] reset offset started by %s. topic=%s, group=%s, timestamp=%d, isForce=%s",
            *(caller, topic, group, request.timestamp_ms, str(request.is_force).lower()),
        )
        targets = self._targets(request, config)
        now_ms = self._state.clock.now_ms()
        order = ResetOrder(
            ResetOrderView(
                order_id=f"{self._state.settings.broker_name}-{now_ms}-{secrets.token_hex(4)}",
                topic=topic,
                group=group,
                broker_name=self._state.settings.broker_name,
                state=self._first_state(),
                caller=caller,
                caller_address=connection.peer,
                reason=_stock_reason(request),
                is_forced=request.is_force,
                created_ms=now_ms,
                expires_ms=now_ms + DEFAULT_EXPIRY_MS,
                targets=targets,
            ),
            timestamp_ms=request.timestamp_ms,
            is_by_time=not _is_exact(request),
            queue_id=request.queue_id,
        )
        self._take(order)
        if order.is_waiting:
            raise ResponseError(
                ResponseCode.NO_PERMISSION,
                f"order {order.order_id} waits until somebody else approves it: resetNeedsApproval is true",
            )
        assert order.watch is not None
        is_offline = not order.watch.receipts
        remark = (
            f"group {group} has no member here: its offsets were changed on the broker"
            if is_offline
            else None
        )
        body = encode_body(offset_table(self._state, order.watch))
        return self._answer_when_safe(
            command, connection, order, lambda asked: asked.reply(body=body, remark=remark)
        )

    # Ours

    def apply(self, command: Command, connection: Connection) -> Command | None:
        request = command.header(ApplyResetRequest)
        targets = decode_java_json(command.body, QueueTargets).targets
        if not _ORDER_ID.fullmatch(request.order_id):
            raise _wrong(f"order id {shown(request.order_id)!r}; use 1 to 64 of A-Z a-z 0-9 _ . : -")
        if not 0 < request.expires_after_ms <= MAX_EXPIRY_MS:
            raise _wrong(f"expiresAfterMillis {request.expires_after_ms}; use 1 to {MAX_EXPIRY_MS}")
        now_ms = self._state.clock.now_ms()
        caller = self._who(command, connection, request.caller)
        order = ResetOrder(
            ResetOrderView(
                order_id=request.order_id,
                topic=request.topic,
                group=request.group,
                broker_name=self._state.settings.broker_name,
                state=self._first_state(),
                caller=shown(caller),
                caller_address=connection.peer,
                reason=shown(request.reason),
                undoes=None if request.undoes is None else shown(request.undoes),
                is_forced=request.is_forced,
                created_ms=now_ms,
                expires_ms=now_ms + request.expires_after_ms,
                targets=targets,
            )
        )
        known = self._state.resets.find(order.order_id)
        if known is None or not known.is_same(order.record):
            config = self._check(request.group, request.topic)
            self._check_targets(config, targets)
            _log.info(
                "[reset-offset] reset offset started by %s. topic=%s, group=%s, timestamp=%d, isForce=%s",
                *(caller, request.topic, request.group, END, str(request.is_forced).lower()),
            )
        taken = self._take(order)
        return self._answer_when_safe(command, connection, taken, _view_of(taken))

    def decide(self, command: Command, connection: Connection) -> Command | None:
        request = command.header(DecideResetRequest)
        decision = Decision(
            order_id=request.order_id,
            decider=shown(self._who(command, connection, request.decider)),
            address=connection.peer,
            is_approved=request.is_approved,
            reason=shown(request.reason),
        )
        if not decision.decider.strip():
            raise _wrong("a decision has to name who makes it")
        order = self._state.resets.decide(decision, self._state.clock.now_ms())
        if request.is_approved:
            self._apply_approved(order)
        return self._answer_when_safe(command, connection, order, _view_of(order))

    def receipt(self, command: Command, connection: Connection) -> Command:
        """A client of ours tells what it did, on the connection on which it is a member."""
        request = command.header(ResetReceiptRequest)
        client = self._state.clients.member_at(request.group, connection)
        if client is None or client.client_id != request.client_id:
            raise ResponseError(
                ResponseCode.NO_PERMISSION,
                f"client {shown(request.client_id)} is no member of group {shown(request.group)} on this "
                "connection: only a client itself says what it did",
            )
        order = self._state.resets.find(request.order_id)
        is_meant = order is not None and (order.record.group, order.record.topic) == (
            request.group,
            request.topic,
        )
        if order is None or order.watch is None or not is_meant:
            raise ResponseError(
                ResponseCode.QUERY_NOT_FOUND, f"order {shown(request.order_id)} is not known for this group"
            )
        self._check_giving(request, order)
        said = decode_java_json(command.body, QueueReceipts)
        if said.failure:
            said = msgspec.structs.replace(said, failure=shown(said.failure))
        carry_out(self._state, order.watch.on_receipt(client, said, moment_of(self._state.clock)))
        self._state.resets.touched(order.watch)
        return command.reply()

    # Within

    @staticmethod
    def _check_giving(receipt: ResetReceiptRequest, order: ResetOrder) -> None:
        """Who followed an order before a switch undid it may have gone on elsewhere since."""
        applied_ms = order.record.applied_ms
        if receipt.applied_ms not in (0, applied_ms):
            raise ResponseError(
                ResponseCode.QUERY_NOT_FOUND,
                f"order {shown(order.order_id)} was given again and applied at {applied_ms}: this receipt is "
                f"for the one that was applied at {receipt.applied_ms}",
            )

    def _answer_when_safe(
        self,
        command: Command,
        connection: Connection,
        order: ResetOrder,
        answer: Callable[[Command], Command],
    ) -> Command | None:
        """Nobody is told that an order is given, or is done, which a switch may take back.

        None if that is not known yet: the answer comes later then.
        """
        request, found = command.without_content(), list[ResponseError | None]()
        is_late = False

        def done(failure: ResponseError | None) -> None:
            if not is_late:
                found.append(failure)
            elif failure is None:
                send_late(request, connection, answer(request))
            else:
                send_failure(request, connection, _of_order(order, failure))

        self._state.table_safety.when_safe(done)
        if not found:
            is_late = True
            return None
        if found[0] is not None:
            raise _of_order(order, found[0])
        return answer(command)

    def _take(self, order: ResetOrder) -> ResetOrder:
        """Take an order in and, unless it waits or was there, apply it."""
        state, now = self._state, moment_of(self._state.clock)
        order.is_of_slave = state.settings.is_slave
        taken = state.resets.add(order, now.wall_ms)
        if taken is not order or order.is_waiting:
            return taken
        carry_out(state, state.resets.apply(order, self._standing(order), now))
        return order

    def _apply_approved(self, order: ResetOrder) -> None:
        state, record = self._state, order.record
        config = self._check(record.group, record.topic)
        if order.is_by_time:
            # A skip of the backlog goes to where that ends when it is executed.
            again = ResetOffsetRequest(
                topic=record.topic,
                group=record.group,
                timestamp_ms=order.timestamp_ms,
                is_force=record.is_forced,
                queue_id=order.queue_id,
            )
            state.resets.retarget(order, self._targets(again, config))
        else:
            self._check_targets(config, record.targets)
        carry_out(state, state.resets.apply(order, self._standing(order), moment_of(state.clock)))

    def _standing(self, order: ResetOrder) -> GroupStanding:
        state, group, topic = self._state, order.record.group, order.record.topic
        found, config = state.clients.find_group(group), state.topics.find(topic)
        offsets = state.offsets

        def move(targets: Mapping[int, int]) -> None:
            offsets.move(group, topic, {queue_id: QueueOffset(to) for queue_id, to in targets.items()})

        return GroupStanding(
            stands_at=lambda queue_id: offsets.find(group, topic, queue_id),
            move=move,
            members=[]
            if found is None
            else [
                (member.client, found.consume_type is ConsumeType.ACTIVELY)
                for member in found.members.values()
            ],
            is_broadcast=self._is_broadcast(group),
            # Who has offsets here has committed them, which is not done in broadcasting mode.
            is_model_known=found is not None or bool(offsets.queues(group, topic)),
            readable_count=0 if config is None else config.read_queue_count,
            is_server_side=state.settings.use_server_side_reset_offset,
            pulled_to=lambda queue_id: state.pull_progress.find(group, topic, queue_id),
        )

    def _targets(self, request: ResetOffsetRequest, config: TopicConfig) -> list[QueueTarget]:
        state, group, topic = self._state, request.group, request.topic
        if request.timestamp_ms < END:
            raise _wrong(
                f"timestamp {request.timestamp_ms}; use milliseconds since 1970, or {END} for the end"
            )
        queues = range(config.write_queue_count)
        if request.queue_id >= 0:
            if request.queue_id >= config.write_queue_count:
                raise _wrong(f"queue {request.queue_id}: {topic} has {config.write_queue_count} queues here")
            queues = range(request.queue_id, request.queue_id + 1)

        def stands_at(queue_id: int) -> int | None:
            return state.offsets.find(group, topic, queue_id)

        is_broadcast = self._is_broadcast(group)
        if _is_exact(request):
            assert request.queue_offset is not None
            before = stands_at(request.queue_id)
            expected = None if before is None else QueueOffset(before)
            exact = QueueTarget(
                queue_id=request.queue_id, expected_offset=expected, target=request.queue_offset
            )
            self._check_targets(config, [exact])
            return [exact]
        if not is_broadcast and not state.settings.use_server_side_reset_offset:
            check_has_offsets(group, topic, queues, stands_at)

        def offset_at(queue_id: int) -> int:
            if request.timestamp_ms == END:
                return queue_bounds(state.store, topic, queue_id)[1]
            return state.store.offset_at_time(topic, queue_id, request.timestamp_ms)

        return targets_at_time(
            queues,
            offset_at=offset_at,
            stands_at=stands_at,
            is_forced=request.is_force,
            is_broadcast=is_broadcast,
        )

    def _check(self, group: str, topic: str) -> TopicConfig:
        check_client_may_commit(group)
        config = self._state.topics.find(topic)
        if config is None:
            raise ResponseError(ResponseCode.TOPIC_NOT_EXIST, f"topic {shown(topic)} does not exist here")
        if self._state.groups.find(group) is None:
            raise ResponseError(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"group {shown(group)} does not exist here"
            )
        return config

    def _check_targets(self, config: TopicConfig, targets: list[QueueTarget]) -> None:
        store, topic = self._state.store, config.topic_name
        check_targets(
            targets,
            queue_count=max(config.read_queue_count, config.write_queue_count),
            bounds=lambda queue_id: queue_bounds(store, topic, queue_id),
        )

    def _is_broadcast(self, group: str) -> bool:
        found = self._state.clients.find_group(group)
        return found is not None and found.message_model is MessageModel.BROADCASTING

    def _first_state(self) -> ResetState:
        """Of an order that is to be applied this is only for the moment until it is."""
        needs_approval = self._state.settings.reset_needs_approval
        return ResetState.WAITING if needs_approval else ResetState.APPLIED

    def _who(self, command: Command, connection: Connection, said: str) -> str:
        """Whose request it is: where accounts are checked, whose account signed it.

        The guard leaves only such a key. Without one the caller's address is trusted, and all that is known.
        """
        if self._state.settings.acl_enable:
            return command.ext.get(ACCESS_KEY) or f"trusted address {host_of(connection.peer)}"
        return said


def _view_of(order: ResetOrder) -> Callable[[Command], Command]:
    return lambda request: request.reply(body=encode_body(order.view()))


def _of_order(order: ResetOrder, failure: ResponseError) -> ResponseError:
    state = order.record.state.value
    return ResponseError(failure.code, f"order {order.order_id} is {state} at this broker: {failure.remark}")


def _is_exact(request: ResetOffsetRequest) -> bool:
    """Whether one queue goes to an offset that is named."""
    return request.queue_id >= 0 and request.queue_offset is not None and request.queue_offset != END


def _stock_reason(request: ResetOffsetRequest) -> str:
    if request.queue_id >= 0:
        return f"reset of queue {request.queue_id}"
    return "skip of the backlog" if request.timestamp_ms == END else f"reset to {request.timestamp_ms}"


def _wrong(what: str) -> ResponseError:
    return ResponseError(ResponseCode.INVALID_PARAMETER, what)
