"""Sends: chooses a queue, asks its broker, and goes on to another one if that fails, within one deadline."""

import asyncio
import random
from collections.abc import Mapping, Sequence

from tanist.client.attempts import Attempts, is_of_the_broker, is_route_old
from tanist.client.errors import InvalidArgument, NoRoute
from tanist.client.faults import BrokerFaults
from tanist.client.in_flight import InFlight
from tanist.client.key_turns import KeyTurns
from tanist.client.message import Message, Receipt, SendStatus
from tanist.client.outgoing import Outgoing, OutgoingMaker
from tanist.client.publish_topics import DEFAULT_QUEUE_COUNT, PublishTopic, PublishTopics
from tanist.client.queue_choice import queue_of_key
from tanist.client.session import Session
from tanist.client.tracing import Tracer
from tanist.errors import MQError, RemotingError, ResponseError
from tanist.model.message import SysFlag
from tanist.model.offsets import QueueOffset
from tanist.model.property_names import TRAN_MSG
from tanist.model.route import MessageQueue
from tanist.model.topics import AUTO_CREATE_TOPIC
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.send import SendMessageResponse
from tanist.protocol.response_errors import TopicNotFound

_DEFAULT_QUEUES = str(DEFAULT_QUEUE_COUNT)
_PREPARED = int(SysFlag.PREPARED)
_NOTHING: Mapping[str, str] = {}
_STATUSES = {
    int(ResponseCode.SUCCESS): SendStatus.OK,
    int(ResponseCode.FLUSH_DISK_TIMEOUT): SendStatus.FLUSH_DISK_TIMEOUT,
    int(ResponseCode.FLUSH_SLAVE_TIMEOUT): SendStatus.FLUSH_SLAVE_TIMEOUT,
    int(ResponseCode.SLAVE_NOT_AVAILABLE): SendStatus.SLAVE_NOT_AVAILABLE,
}


class Sender:
    """Sends the messages of one producer group."""

    def __init__(
        self,
        session: Session,
        maker: OutgoingMaker,
        *,
        group: str,
        retries: int,
        tracer: Tracer | None = None,
    ) -> None:
        self._session = session
        self._wire = session.wire
        self._table = session.routes.table
        self._topics = PublishTopics(session.routes, session.tasks)
        self._maker = maker
        self._group = group
        self._retries = retries
        self._tracer = tracer
        self._timeout_s = session.settings.timeout_s
        self._faults = BrokerFaults()
        self._in_flight = InFlight()
        self._key_turns = KeyTurns()
        self._is_closed = False
        self._now_s = asyncio.get_running_loop().time

    async def send(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        extra: Mapping[str, str] = _NOTHING,
        sys_flag: int = 0,
        code: RequestCode = RequestCode.SEND_MESSAGE_V2,
        timeout_s: float | None = None,
        retries: int | None = None,
    ) -> Receipt:
        """Send one message, once there is room for it; the time counts from then on.

        ``extra`` are properties that the client itself adds.
        """
        outgoing = self._maker.make(message, extra=extra, sys_flag=sys_flag)
        receipt = await self._deliver(outgoing, code, queue=queue, timeout_s=timeout_s, retries=retries)
        if self._tracer is not None:
            is_half = TRAN_MSG in extra
            self._tracer.sent(message, receipt, started_ms=outgoing.born_timestamp_ms, is_half=is_half)
        return receipt

    async def send_batch(
        self,
        messages: Sequence[Message],
        *,
        queue: MessageQueue | None = None,
        extra: Mapping[str, str] = _NOTHING,
        timeout_s: float | None = None,
    ) -> Receipt:
        """Send messages of one topic to one queue, in one request."""
        outgoing = self._maker.make_batch(messages, extra=extra)
        receipt = await self._deliver(
            outgoing, RequestCode.SEND_BATCH_MESSAGE, queue=queue, timeout_s=timeout_s, retries=None
        )
        if self._tracer is not None:
            self._tracer.sent_batch(messages, receipt, started_ms=outgoing.born_timestamp_ms)
        return receipt

    async def send_oneway(
        self, message: Message, *, queue: MessageQueue | None = None, extra: Mapping[str, str] = _NOTHING
    ) -> None:
        """Send without an answer: it is not known whether a broker took it."""
        outgoing = self._maker.make(message, extra=extra, sys_flag=0)
        deadline_s = self._now_s() + self._timeout_s
        chosen = await self._choose(outgoing, queue, None, deadline_s=deadline_s)
        request = self._request(outgoing, RequestCode.SEND_MESSAGE_V2, chosen)
        try:
            await self._wire.post(self._address_of(chosen), request, timeout_s=self._timeout_s)
        except RemotingError:
            self._faults.on_failure(chosen.broker_name, now_s=self._now_s())
            self._session.routes.suspect()
            raise

    def close(self) -> None:
        """Let no further try begin, and end those that wait for their turn."""
        self._is_closed = True
        self._key_turns.close()
        self._in_flight.close()

    async def _deliver(
        self,
        outgoing: Outgoing,
        code: RequestCode,
        *,
        queue: MessageQueue | None,
        timeout_s: float | None,
        retries: int | None,
    ) -> Receipt:
        if outgoing.sharding_key is None:
            return await self._deliver_in_turn(outgoing, code, queue, timeout_s, retries)
        key = (outgoing.topic, outgoing.sharding_key)
        await self._key_turns.enter(key)
        try:
            return await self._deliver_in_turn(outgoing, code, queue, timeout_s, retries)
        finally:
            self._key_turns.leave(key)

    async def _deliver_in_turn(
        self,
        outgoing: Outgoing,
        code: RequestCode,
        queue: MessageQueue | None,
        timeout_s: float | None,
        retries: int | None,
    ) -> Receipt:
        size_bytes = len(outgoing.body)
        if not self._in_flight.enter_now(size_bytes):
            await self._in_flight.enter(size_bytes)
        try:
            return await self._try(
                outgoing,
                code,
                queue=queue,
                timeout_s=self._timeout_s if timeout_s is None else timeout_s,
                retries=self._retries if retries is None else retries,
            )
        finally:
            self._in_flight.leave(size_bytes)

    async def _try(
        self,
        outgoing: Outgoing,
        code: RequestCode,
        *,
        queue: MessageQueue | None,
        timeout_s: float,
        retries: int,
    ) -> Receipt:
        """Try until a broker has it, or the time or the tries are used up."""
        deadline_s = self._now_s() + timeout_s
        attempts: Attempts | None = None
        while True:
            chosen = await self._choose(outgoing, queue, attempts, deadline_s=deadline_s)
            began_s = self._now_s()
            try:
                answer = await self._wire.ask(
                    self._address_of(chosen),
                    self._request(outgoing, code, chosen),
                    timeout_s=deadline_s - began_s,
                    connect_s=(deadline_s - began_s) / (1 + (retries if attempts is None else attempts.left)),
                    accepted=_STATUSES,
                )
            except (RemotingError, ResponseError, NoRoute) as error:
                if attempts is None:
                    attempts = Attempts(
                        outgoing.topic,
                        retries=retries,
                        deadline_s=deadline_s,
                        # A second half would be asked about later, and be committed like the first.
                        may_store_twice=not outgoing.sys_flag & _PREPARED,
                    )
                self._on_failure(attempts, chosen, error, now_s=self._now_s())
                continue
            now_s = self._now_s()
            self._faults.on_answer(chosen.broker_name, latency_s=now_s - began_s, now_s=now_s)
            self._topics.on_stored(outgoing.topic)
            return _receipt(answer, outgoing, chosen)

    async def _choose(
        self,
        outgoing: Outgoing,
        queue: MessageQueue | None,
        attempts: Attempts | None,
        *,
        deadline_s: float,
    ) -> MessageQueue:
        """The queue of the next try. Where the last one failed we do not knock again at once."""
        now_s = self._now_s()
        topic = self._topics.get(outgoing.topic)
        if topic is None:
            topic = await self._find(outgoing.topic, attempts, timeout_s=deadline_s - now_s)
        if queue is not None:
            chosen = await self._check_queue(queue, topic, timeout_s=deadline_s - now_s)
        elif outgoing.sharding_key is not None:
            chosen = queue_of_key(topic.queues, outgoing.sharding_key)
        else:
            failed_broker = None if attempts is None else attempts.failed_broker
            chosen = topic.round.next(self._faults, now_s=now_s, failed_broker=failed_broker)
        if attempts is not None and chosen.broker_name == attempts.failed_broker:
            pause_s = attempts.next_pause_s(random.random())  # noqa: S311
            await asyncio.sleep(min(pause_s, deadline_s - now_s))
        return chosen

    async def _find(self, topic: str, attempts: Attempts | None, *, timeout_s: float) -> PublishTopic:
        try:
            async with asyncio.timeout(timeout_s):
                return await self._topics.find(topic)
        except TimeoutError:
            error = NoRoute(topic, f"no name server answers within {timeout_s:g} s")
            if attempts is None:
                raise error from None
            attempts.give_up("name servers", error)
        except (NoRoute, TopicNotFound) as error:
            if attempts is None:
                raise
            attempts.give_up("name servers", error)

    async def _check_queue(
        self, queue: MessageQueue, topic: PublishTopic, *, timeout_s: float
    ) -> MessageQueue:
        """The queue that the caller chose. The route may be too old to know it, so it is asked for again."""
        if queue not in topic.queues:
            topic = await self._find(queue.topic, None, timeout_s=timeout_s)
            if queue not in topic.queues:
                raise InvalidArgument("queue", queue, f"the topic has {len(topic.queues)} others")
        return queue

    def _address_of(self, queue: MessageQueue) -> str:
        address = self._table.master_of(queue.broker_name)
        if address is None:
            raise NoRoute(queue.topic, f"broker {queue.broker_name} has no master now")
        return address

    def _on_failure(self, attempts: Attempts, queue: MessageQueue, error: MQError, *, now_s: float) -> None:
        """Learn from a failure; raises what the caller is to know if it was the last one."""
        if self._is_closed:
            attempts.give_up(queue.broker_name, error)
        if is_of_the_broker(error):
            self._faults.on_failure(queue.broker_name, now_s=now_s)
        if is_route_old(error):
            self._session.routes.suspect()
        attempts.on_failure(queue.broker_name, error, now_s=now_s)

    def _request(self, outgoing: Outgoing, code: RequestCode, queue: MessageQueue) -> Command:
        # The wire names of SendMessageRequestV2. A header object would be written field by field into
        # the same dict, at several times the cost.
        ext = {
            "a": self._group,
            "b": outgoing.topic,
            "c": AUTO_CREATE_TOPIC,
            "d": _DEFAULT_QUEUES,
            "e": str(queue.queue_id),
            "f": str(outgoing.sys_flag),
            "g": str(outgoing.born_timestamp_ms),
            "h": str(outgoing.flag),
            "i": outgoing.properties,
            "j": "0",
            "k": "false",
            "m": "true" if outgoing.is_batch else "false",
            "n": queue.broker_name,
        }
        return Command(code, body=outgoing.body, ext_fields=ext)


def _receipt(answer: Command, outgoing: Outgoing, queue: MessageQueue) -> Receipt:
    """What the answer says. A broker that is asked to may have put the message into another queue."""
    header = answer.header(SendMessageResponse)
    if header.queue_id != queue.queue_id:
        queue = MessageQueue(topic=queue.topic, broker_name=queue.broker_name, queue_id=header.queue_id)
    return Receipt(
        message_id=outgoing.message_id,
        offset_id=header.msg_id,
        queue=queue,
        queue_offset=QueueOffset(header.queue_offset),
        status=_STATUSES[answer.code],
        transaction_id=header.transaction_id or None,
        region=header.region,
        is_traced=header.is_trace_on,
    )
