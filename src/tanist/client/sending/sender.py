"""Sends: chooses a queue, asks its broker, and goes on to another one if that fails, within one deadline."""

import asyncio
import random
from collections.abc import Collection, Mapping, Sequence

from tanist.client.errors import ClientClosed, InvalidArgument, NoRoute
from tanist.client.message import Message, Receipt
from tanist.client.sending.attempts import Attempts, is_master_gone, is_of_the_broker, is_route_old
from tanist.client.sending.faults import BrokerFaults
from tanist.client.sending.in_flight import InFlight
from tanist.client.sending.key_turns import KeyTurns
from tanist.client.sending.outgoing import Outgoing, OutgoingMaker
from tanist.client.sending.publish_topics import PublishTopic, PublishTopics
from tanist.client.sending.queue_choice import queue_of_key
from tanist.client.sending.send_request import STATUSES, make_request, read_receipt
from tanist.client.session.session import Session
from tanist.client.tracing.tracer import Tracer
from tanist.errors import MQError, RemotingError, RequestTimeout, ResponseError
from tanist.model.message import SysFlag
from tanist.model.property_names import TRAN_MSG
from tanist.model.route import MessageQueue
from tanist.protocol.codes import RequestCode
from tanist.protocol.response_errors import NotMaster, TopicNotFound

_LONG_WORK_BYTES = 256 << 10
_PREPARED = int(SysFlag.PREPARED)
_NOTHING: Mapping[str, str] = {}


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
        self._routes = session.routes
        self._table = session.routes.table
        self._topics = PublishTopics(session.routes, session.tasks)
        self._maker = maker
        self._group = group
        self._retries = retries
        self._tracer = tracer
        self._timeout_s = session.settings.timeout_s
        self._faults = BrokerFaults()
        self._silent: dict[str, str] = {}
        """By broker, the address of a master that let a send wait in vain, until it answers one."""
        session.routes.on_master(self._on_master)
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
        if outgoing.sharding_key is None:
            await self._post(outgoing, queue)
            return
        async with self._key_turns.turn((outgoing.topic, outgoing.sharding_key)):
            await self._post(outgoing, queue)

    def close(self) -> None:
        """Let no further try begin, and end those that wait for their turn."""
        self._is_closed = True
        self._key_turns.close()
        self._in_flight.close()
        self._routes.wake()

    async def _post(self, outgoing: Outgoing, queue: MessageQueue | None) -> None:
        if self._maker.is_to_compress(outgoing):
            outgoing = await self._compress(outgoing)
        deadline_s = self._now_s() + self._timeout_s
        chosen = await self._choose(outgoing, queue, None, deadline_s=deadline_s)
        request = make_request(self._group, outgoing, RequestCode.SEND_MESSAGE_V2, chosen)
        try:
            await self._wire.post(self._address_of(chosen), request, timeout_s=deadline_s - self._now_s())
        except RemotingError:
            self._faults.on_failure(chosen.broker_name, now_s=self._now_s())
            self._routes.seek_master(chosen.broker_name)
            raise

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
        async with self._key_turns.turn((outgoing.topic, outgoing.sharding_key)):
            return await self._deliver_in_turn(outgoing, code, queue, timeout_s, retries)

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
            if self._maker.is_to_compress(outgoing):
                outgoing = await self._compress(outgoing)
            return await self._try(
                outgoing,
                code,
                queue=queue,
                timeout_s=self._timeout_s if timeout_s is None else timeout_s,
                retries=self._retries if retries is None else retries,
            )
        finally:
            self._in_flight.leave(size_bytes)

    async def _compress(self, outgoing: Outgoing) -> Outgoing:
        if len(outgoing.body) < _LONG_WORK_BYTES:
            return self._maker.compress(outgoing)
        # It takes many milliseconds, in which nothing else would go on.
        return await asyncio.to_thread(self._maker.compress, outgoing)

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
            if outgoing.sharding_key is not None:
                queue = chosen  # It stays so for all tries, also if the route changes meanwhile.
            began_s = self._now_s()
            address = self._table.master_of(chosen.broker_name)
            try:
                answer = await self._wire.ask(
                    self._address_of(chosen),
                    make_request(self._group, outgoing, code, chosen),
                    timeout_s=deadline_s - began_s,
                    connect_s=(deadline_s - began_s) / (1 + (retries if attempts is None else attempts.left)),
                    accepted=STATUSES,
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
                self._on_failure(attempts, chosen, error, address=address)
                continue
            now_s = self._now_s()
            self._faults.on_answer(chosen.broker_name, latency_s=now_s - began_s, now_s=now_s)
            if self._silent:
                self._silent.pop(chosen.broker_name, None)
            self._topics.on_stored(outgoing.topic)
            return read_receipt(answer, outgoing, chosen)

    async def _choose(
        self,
        outgoing: Outgoing,
        queue: MessageQueue | None,
        attempts: Attempts | None,
        *,
        deadline_s: float,
    ) -> MessageQueue:
        """The queue of the next try. Where one failed we do not knock again at once."""
        now_s = self._now_s()
        topic = self._topics.get(outgoing.topic)
        if topic is None:
            topic = await self._find(outgoing.topic, attempts, deadline_s=deadline_s)
        if queue is not None:
            chosen = await self._check_queue(queue, topic, attempts, deadline_s=deadline_s)
        elif outgoing.sharding_key is not None:
            chosen = queue_of_key(topic.queues, outgoing.sharding_key)
        else:
            failed_broker = None if attempts is None else attempts.failed_broker
            chosen = topic.round.next(self._faults, now_s=now_s, failed_broker=failed_broker)
        address = self._table.master_of(chosen.broker_name)
        if attempts is not None and attempts.needs_pause(chosen.broker_name, address):
            pause_s = attempts.next_pause_s(random.random())  # noqa: S311
            if self._now_s() + pause_s >= deadline_s:
                attempts.end()
            # It may have another master sooner than that.
            await self._routes.changed(pause_s)
        return chosen

    async def _find(self, topic: str, attempts: Attempts | None, *, deadline_s: float) -> PublishTopic:
        """The topic's queues, once one of its brokers takes messages."""
        while True:
            timeout_s = deadline_s - self._now_s()
            error: MQError
            try:
                async with asyncio.timeout(timeout_s):
                    return await self._topics.find(topic)
            except TimeoutError:
                error = NoRoute(topic, f"no name server answers within {timeout_s:g} s")
            except (TopicNotFound, ClientClosed) as failure:
                error = failure
            except NoRoute as failure:
                error = failure
                route = self._table.get(topic)
                if route is not None and await self._is_master_found(route.masterless, deadline_s):
                    continue
            if attempts is None:
                raise error
            attempts.give_up("name servers", error)

    async def _check_queue(
        self, queue: MessageQueue, topic: PublishTopic, attempts: Attempts | None, *, deadline_s: float
    ) -> MessageQueue:
        """The queue that was chosen. The route may be too old to know it, so it is asked for again."""
        if queue not in topic.queues:
            topic = await self._find(queue.topic, attempts, deadline_s=deadline_s)
        while queue not in topic.queues:
            route = self._table.get(queue.topic)
            masterless = route.masterless & {queue.broker_name} if route is not None else frozenset[str]()
            if not await self._is_master_found(masterless, deadline_s):
                break
            topic = await self._find(queue.topic, attempts, deadline_s=deadline_s)
        if queue in topic.queues:
            return queue
        gone = NoRoute(queue.topic, f"there is no queue of it at broker {queue.broker_name} now")
        if attempts is not None:
            attempts.give_up(queue.broker_name, gone)
        if queue.broker_name not in topic.broker_names:
            raise gone
        raise InvalidArgument("queue", queue, f"the topic has {len(topic.queues)} others")

    async def _is_master_found(self, broker_names: Collection[str], deadline_s: float) -> bool:
        """Wait for news of brokers that have no master; False if there are none, or none in time."""
        left_s = deadline_s - self._now_s()
        if not broker_names or left_s <= 0 or self._is_closed:
            return False
        for broker_name in broker_names:
            self._routes.seek_master(broker_name)
        return await self._routes.changed(left_s) and not self._is_closed

    def _on_master(self, broker_name: str) -> None:
        """A broker has another master: what waits at one that is silent is tried again, there."""
        self._faults.forget(broker_name)
        silent = self._silent.pop(broker_name, None)
        if silent is not None and silent != self._table.master_of(broker_name):
            self._wire.give_up(silent, "it is silent, and another replica is master")

    def _address_of(self, queue: MessageQueue) -> str:
        address = self._table.master_of(queue.broker_name)
        if address is None:
            raise NoRoute(queue.topic, f"broker {queue.broker_name} has no master now")
        return address

    def _on_failure(
        self, attempts: Attempts, queue: MessageQueue, error: MQError, *, address: str | None
    ) -> None:
        """Learn from a failure; raises what the caller is to know if it was the last one."""
        now_s = self._now_s()
        if self._is_closed:
            attempts.give_up(queue.broker_name, error)
        if is_of_the_broker(error):
            self._faults.on_failure(queue.broker_name, now_s=now_s)
        if isinstance(error, RequestTimeout) and address is not None:
            self._silent[queue.broker_name] = address
        if isinstance(error, NotMaster) and error.master_address is not None:
            self._routes.believe(queue.broker_name, error.master_address)
        if is_master_gone(error):
            self._routes.seek_master(queue.broker_name)
        elif is_route_old(error):
            self._routes.suspect()
        attempts.on_failure(queue.broker_name, error, now_s=now_s, address=address)
