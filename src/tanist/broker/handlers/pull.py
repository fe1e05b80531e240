"""Pulls: PULL_MESSAGE and LITE_PULL_MESSAGE, and those that wait for a message to come.

checked  ->  read  ->  answered
               |
               +-- nothing there, and it may wait  ->  parked  ->  checked and read again: a message came
                                                               ->  the same, and answered: its time is over
                                                               ->  refused: the broker stops, or is not
                                                                   read any more
                                                               ->  to be asked again: it is not read any
                                                                   more, and relays what comes
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from tanist.broker.longpoll import ParkedPull, ParkedPulls
from tanist.broker.message_filter import MessageFilter, PropertyFilter
from tanist.broker.offsets import check_client_may_commit
from tanist.broker.pull_answers import answer_pull, code_of
from tanist.broker.pull_checks import check_pull, choose_filter
from tanist.broker.queue_look import queue_bounds
from tanist.broker.reading import Outcome, QueueRead, read_queue
from tanist.broker.resets import carrying as resets
from tanist.broker.resets.corrections import Place
from tanist.broker.resets.watch import OrderWatch
from tanist.broker.slave_consume.relay_rules import is_stock, pull_again
from tanist.broker.state import BrokerState
from tanist.clock import steady_ms
from tanist.errors import ResponseError
from tanist.model.subscription import SubscriptionData
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.frame import MAX_BODY_BYTES
from tanist.protocol.headers.pull import PullMessageRequest, PullSysFlag
from tanist.remoting import Connection, Handler
from tanist.remoting.replies import Pieces, frame_failure, is_expected

_log = logging.getLogger(__name__)

_COMMIT = int(PullSysFlag.COMMIT_OFFSET)
_SUSPEND = int(PullSysFlag.SUSPEND)

_MAX_SUSPEND_MS = 600_000
"""No client waits as long for an answer; one that asks for more is told earlier that nothing came."""
_TURN_S = 0.005
"""How long all pulls together look for messages by their properties in one turn of the event loop."""


class _Pull(msgspec.Struct, frozen=True, eq=False):
    """One pull on its way, with everything that was checked about it."""

    command: Command
    request: PullMessageRequest
    connection: Connection
    subscription: SubscriptionData
    is_wanted: MessageFilter | None


class PullHandler:
    """Answers pulls, and keeps those that wait."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._parked: ParkedPulls[_Pull] = ParkedPulls()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._slow: OrderedDict[ParkedPull[_Pull], None] = OrderedDict()
        self._turn_end_s: float | None = None
        self._is_closing = False

    def routes(self) -> dict[int, Handler]:
        return {RequestCode.PULL_MESSAGE: self.pull, RequestCode.LITE_PULL_MESSAGE: self.pull}

    def pull(self, command: Command, connection: Connection) -> Pieces | None:
        if self._is_closing:
            raise _stopping()
        request = command.header(PullMessageRequest)
        subscription = check_pull(self._state, request)
        pull = _Pull(
            command, request, connection, subscription, choose_filter(self._state, request, subscription)
        )
        watched = self._state.resets.watched
        if request.sys_flag & _COMMIT and request.consumer_offset >= 0 and self._takes_offsets:
            check_client_may_commit(request.consumer_group)
            if not watched or self._may_commit(pull):
                self._state.offsets.commit(
                    request.consumer_group, request.topic, request.queue_id, request.consumer_offset
                )
        if command.is_one_way:
            return None  # It would get no answer, now or later.
        if watched and (sent := self._send_elsewhere(pull)) is not None:
            return self._answer(pull, sent)
        found = self._read(pull, request.queue_offset)
        if not found.message_count or watched or self._state.corrections.watched:
            self._observe(pull, found)
        may_wait = not found.message_count and request.sys_flag & _SUSPEND and request.suspend_timeout_ms > 0
        if may_wait and code_of(found, request.queue_offset) is ResponseCode.PULL_NOT_FOUND:
            if not self._parked.has_room(connection, _text_chars(request)):
                raise ResponseError(ResponseCode.SYSTEM_BUSY, "[OVERLOAD] too many pulls wait for messages")
            # What is kept must not keep the bytes of the whole read in which the pull came.
            kept = msgspec.structs.replace(pull, command=command.without_content())
            self._park(kept, found.next_offset, self._now_ms() + self._patience_ms(request, found))
            return None
        return self._answer(pull, found)

    def on_indexed(self, topic: str, queue_id: int, max_offset: int) -> None:
        """A queue has grown: whoever waits there for what came is answered. Never raises.

        Who has to look at properties does so in turns, and stays parked until it has its own.
        """
        for parked in self._parked.behind(topic, queue_id, max_offset):
            if isinstance(parked.owner.is_wanted, PropertyFilter):
                self._slow[parked] = None
            elif self._parked.take(parked):
                self._resume(parked, may_wait=True)
        if self._slow:
            self._scan_end_s()

    def on_reset(self, watch: OrderWatch) -> None:
        """A group is being moved: its pulls that wait in these queues are told so now."""
        for queue_id in watch.targets:
            for parked in self._parked.waiting(watch.topic, queue_id):
                if parked.owner.request.consumer_group == watch.group and self._parked.take(parked):
                    self._resume(parked, may_wait=True)

    def is_awaiting(self) -> bool:
        """Whether some pull waits for a message."""
        return len(self._parked) > 0

    def on_lost(self, connection: Connection) -> None:
        """A connection was closed: its pulls wait no longer."""
        self._parked.drop_peer(connection)

    def close(self) -> None:
        """Refuse all that wait and all that come yet, because the broker stops.

        A refused client waits a little. One that got an answer would pull again at once, and a client of
        RocketMQ 4.9 whose pull is lost with its connection asks again only after half a minute.
        """
        self._is_closing = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.refuse_all(_stopping())

    def refuse_all(self, error: Exception, *, is_relayed: bool = False) -> None:
        """Answer all that wait with ``error``: what comes yet is judged anew.

        Where stock clients' pulls are relayed they are told to pull again instead, which they do at once.
        """
        self._slow.clear()
        for parked in self._parked.drain():
            pull = parked.owner
            if is_relayed and is_stock(pull.command.language):
                pull.connection.send(pull_again(pull.command, pull.request.queue_offset))
            elif (frame := frame_failure(pull.command, error)) is not None:
                pull.connection.send(frame)

    @property
    def _takes_offsets(self) -> bool:
        """Whether a pull may commit here.

        Not at a slave, as in RocketMQ 4.9: the offset is on its way from the master. One that is read instead
        of its master has the offsets.
        """
        return not self._state.settings.is_slave or self._state.read_right is not None

    def _resume(self, parked: ParkedPull[_Pull], *, may_wait: bool) -> None:
        """Go on with a pull that was parked: answer it, or park it again if what came is not for it.

        Nothing may escape: the pulls behind this one, and dispatch itself, are none of its business.
        """
        pull = parked.owner
        if not pull.connection.is_open:
            return
        try:
            self._resume_checked(parked, may_wait=may_wait)
        except Exception as error:
            if not is_expected(error):
                _log.exception("parked pull failed peer=%s topic=%s", pull.connection.peer, parked.topic)
            if (frame := frame_failure(pull.command, error)) is not None:
                pull.connection.send(frame)

    def _resume_checked(self, parked: ParkedPull[_Pull], *, may_wait: bool) -> None:
        pull, queue_offset = parked.owner, parked.queue_offset
        subscription = check_pull(self._state, pull.request)
        if subscription != pull.subscription:
            # What the old subscription passed over, the new one may want.
            pull = msgspec.structs.replace(
                pull,
                subscription=subscription,
                is_wanted=choose_filter(self._state, pull.request, subscription),
            )
            queue_offset = pull.request.queue_offset
        if self._state.resets.watched and (sent := self._send_elsewhere(pull)) is not None:
            pull.connection.send(self._answer(pull, sent))
            return
        found = self._read(pull, queue_offset)
        has_seen_all = (
            found.outcome in (Outcome.NO_MATCHED_MESSAGE, Outcome.OFFSET_OVERFLOW_ONE)
            and found.next_offset == found.max_offset
        )
        if may_wait and has_seen_all:
            self._park(pull, found.next_offset, parked.deadline_ms)
        else:
            pull.connection.send(self._answer(pull, found))

    def _may_commit(self, pull: _Pull) -> bool:
        offset = pull.request.consumer_offset
        return resets.may_commit(self._state, _visit(pull), offset, is_one_way=True)

    def _send_elsewhere(self, pull: _Pull) -> QueueRead | None:
        """The answer that sends a client to where its group was moved; None if it is answered as always."""
        request = pull.request
        target = resets.take_pending(self._state, _visit(pull), request.queue_offset)
        if target is None:
            return None
        low, high = queue_bounds(self._state.store, request.topic, request.queue_id)
        return QueueRead(Outcome.OFFSET_RESET, target, low, high, [])

    def _observe(self, pull: _Pull, found: QueueRead) -> None:
        """Look at a pull that found nothing, and at any where somebody is watched."""
        state, request, asked = self._state, pull.request, pull.request.queue_offset
        is_corrected = code_of(found, asked) is ResponseCode.PULL_OFFSET_MOVED
        if not (is_corrected or state.resets.watched or state.corrections.watched):
            return
        client = state.clients.member_at(request.consumer_group, pull.connection)
        name = pull.connection.peer if client is None else client.client_id
        place = Place(request.consumer_group, name, request.topic, request.queue_id)
        if is_corrected:
            state.corrections.on_corrected(place, asked, found.next_offset, state.clock.now_ms())
        else:
            state.corrections.on_legal(place)
        resets.on_pull(self._state, _visit(pull), asked=asked, next_offset=found.next_offset)

    def _read(self, pull: _Pull, queue_offset: int) -> QueueRead:
        request, settings = pull.request, self._state.settings
        found = read_queue(
            self._state.store,
            request.topic,
            request.queue_id,
            queue_offset,
            max_count=min(
                max(request.max_message_count, 1), settings.max_transfer_count_on_message_in_memory
            ),
            max_bytes=min(settings.max_transfer_bytes_on_message_in_memory, MAX_BODY_BYTES),
            is_wanted=pull.is_wanted,
            has_time=self._scan_timer() if isinstance(pull.is_wanted, PropertyFilter) else None,
        )
        is_kept = not found.message_count and settings.is_slave and queue_offset >= 0
        if is_kept and code_of(found, queue_offset) is ResponseCode.PULL_OFFSET_MOVED:
            # A slave may lack what its master has, old files or the newest messages. A consumer that it sent
            # elsewhere would miss messages, or get them again: it comes again, here or at the master.
            found = found._replace(outcome=Outcome.OFFSET_NOT_ON_SLAVE, next_offset=queue_offset)
        if found.max_offset:
            self._state.pull_progress.note(
                request.consumer_group, request.topic, request.queue_id, found.next_offset
            )
            self._state.delivered_twice.on_pulled(
                *(request.consumer_group, request.topic, request.queue_id),
                start=queue_offset,
                end=found.next_offset,
                message_count=found.message_count,
            )
        return found

    def _scan_timer(self) -> Callable[[], bool]:
        clock, end_s = self._state.clock, self._scan_end_s()
        return lambda: clock.monotonic_s() < end_s

    def _scan_end_s(self) -> float:
        """When the pulls of this turn have looked at properties for long enough; begins a turn if none is."""
        if self._turn_end_s is None:
            self._turn_end_s = self._state.clock.monotonic_s() + _TURN_S
            asyncio.get_running_loop().call_soon(self._next_turn)
        return self._turn_end_s

    def _next_turn(self) -> None:
        """Go on with those that look at properties, in the order in which messages came for them."""
        self._turn_end_s = None
        if not self._slow:
            return
        has_time = self._scan_timer()
        while self._slow and has_time():
            parked, _ = self._slow.popitem(last=False)
            if self._parked.take(parked):
                self._resume(parked, may_wait=True)

    def _answer(self, pull: _Pull, found: QueueRead) -> Pieces:
        return answer_pull(self._state, pull.command, pull.request, found)

    def _park(self, pull: _Pull, queue_offset: int, deadline_ms: int) -> None:
        request = pull.request
        self._parked.park(
            ParkedPull(
                topic=request.topic,
                queue_id=request.queue_id,
                queue_offset=queue_offset,
                deadline_ms=deadline_ms,
                peer=pull.connection,
                owner=pull,
                text_chars=_text_chars(request),
            )
        )
        self._set_timer()

    def _patience_ms(self, request: PullMessageRequest, found: QueueRead) -> int:
        settings = self._state.settings
        # Who lacks something at a slave is not kept from asking the master.
        is_long = settings.long_polling_enable and found.outcome is not Outcome.OFFSET_NOT_ON_SLAVE
        most_ms = _MAX_SUSPEND_MS if is_long else settings.short_polling_time_mills
        return min(request.suspend_timeout_ms, most_ms)

    def _now_ms(self) -> int:
        return steady_ms(self._state.clock)

    def _set_timer(self) -> None:
        """Wake up when the next parked pull has waited long enough; one timer serves all."""
        deadline_ms = self._parked.next_deadline_ms
        if deadline_ms is None or (self._timer is not None and self._timer_ms <= deadline_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        delay_s = max(0, deadline_ms - self._now_ms()) / 1000
        self._timer_ms = deadline_ms
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._expire)

    def _expire(self) -> None:
        """Answer those whose time is over, for a short time; the timer comes back at once for the rest."""
        self._timer = None
        now_ms, end_s = self._now_ms(), self._state.clock.monotonic_s() + _TURN_S
        while (parked := self._parked.expire(now_ms)) is not None:
            self._resume(parked, may_wait=False)
            if self._state.clock.monotonic_s() >= end_s:
                break
        self._set_timer()


def _stopping() -> ResponseError:
    return ResponseError(ResponseCode.SYSTEM_BUSY, "the broker stops; pull again when it is back")


def _visit(pull: _Pull) -> resets.Visit:
    request = pull.request
    return resets.Visit(request.consumer_group, request.topic, request.queue_id, pull.connection)


def _text_chars(request: PullMessageRequest) -> int:
    """How much text a parked pull keeps that is its sender's to choose, beside names that exist."""
    chars = len(request.subscription) if request.subscription else 0
    if request.expression_type or request.proxy_forward_client_id:
        chars += len(request.expression_type or "") + len(request.proxy_forward_client_id or "")
    return chars
