"""Sends in transactions: a message that nobody sees until the block around it has done its work.

    half stored --block ends--> commit --confirmed--> delivered
         |                        `----not confirmed--> the broker asks on_check
         `------block raises--> rollback, never delivered; lost, the broker asks on_check

A commit waits for the broker's answer, which Java's producers do not. It is tried again only while
surely nothing was done: RocketMQ's brokers deliver a message twice that is committed twice.
"""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from tanist.backoff import Backoff
from tanist.client.errors import CommitInDoubt, InvalidArgument, NoRoute, TransactionNotBegun
from tanist.client.message import Message, Receipt, SendStatus
from tanist.client.sending.sender import Sender
from tanist.client.session.session import Session
from tanist.client.tracing.trace_format import EndState
from tanist.client.tracing.tracer import Tracer
from tanist.client.transactions.check_backs import CheckBacks, OnCheck
from tanist.client.transactions.transaction_ends import Outcome, Question, answer_to, end_of
from tanist.errors import ConnectFailed, MQError, TooBusy
from tanist.model.message import SysFlag
from tanist.model.property_names import PGROUP, TRAN_MSG
from tanist.model.topics import SELF_TEST_TOPIC
from tanist.protocol.command import Command
from tanist.protocol.response_errors import BrokerBusy, BrokerLeaving, FlowControlled, NotMaster

_log = logging.getLogger(__name__)

_NOTHING_DONE = (*(ConnectFailed, TooBusy, NoRoute), *(BrokerBusy, BrokerLeaving, FlowControlled, NotMaster))
"""What says that a commit was not sent, or was refused before the broker looked at it."""
_PREPARED = int(SysFlag.PREPARED)


class Transactions:
    """The transactions of one producer. There are none without ``on_check``: the end of one may be lost."""

    def __init__(
        self,
        session: Session,
        sender: Sender,
        *,
        group: str,
        on_check: OnCheck | None,
        tracer: Tracer | None = None,
    ) -> None:
        self._session = session
        self._sender = sender
        self._group = group
        self._on_check = on_check
        self._tracer = tracer
        self._running: dict[str, Question | None] = {}
        self.check_backs = CheckBacks(
            session.wire,
            session.tasks,
            group=group,
            on_check=on_check,
            is_running=self._note_question,
            tracer=tracer,
        )

    def start(self) -> None:
        """Make ourselves known to all brokers, if we can answer their questions."""
        if self._on_check is not None:
            self._session.tasks.start(self._meet_brokers(), "brokers that may ask")

    def begin(self, message: Message) -> AbstractAsyncContextManager[Receipt]:
        """The block of a transaction. Raises InvalidArgument here, and the rest when the block is entered."""
        if self._on_check is None:
            raise InvalidArgument(
                "on_check",
                None,
                "give Producer an async function that tells a broker what became of a transaction whose end "
                "was lost",
            )
        for argument in ("delay_level", "delay_s", "deliver_at"):
            if (value := getattr(message, argument)) is not None:
                raise InvalidArgument(argument, value, "a message in a transaction can not be delayed")
        return self._run(message)

    @asynccontextmanager
    async def _run(self, message: Message) -> AsyncGenerator[Receipt]:
        receipt = await self._sender.send(
            message, extra={TRAN_MSG: "true", PGROUP: self._group}, sys_flag=_PREPARED
        )
        # Read before the block runs: what could not be ended must not begin.
        end_of(receipt, Outcome.COMMIT, group=self._group)
        if receipt.status is not SendStatus.OK:
            self._roll_back(receipt)
            raise TransactionNotBegun(message.topic, receipt.queue.broker_name, receipt.status)
        self._running[receipt.message_id] = None
        try:
            try:
                yield receipt
            except BaseException:
                self._roll_back(receipt)
                self._trace_end(message, receipt, EndState.ROLLBACK)
                raise
            await self._commit(receipt)
            self._trace_end(message, receipt, EndState.COMMIT)
        finally:
            del self._running[receipt.message_id]

    def _note_question(self, question: Question) -> bool:
        """Whether the block still runs that a broker asks about; if so it ends as the question says."""
        is_running = question.transaction_id in self._running
        if is_running:
            self._running[question.transaction_id] = question
        return is_running

    def _end(self, receipt: Receipt, outcome: Outcome) -> Command:
        """What ends the transaction now.

        If a broker has asked meanwhile it has a newer copy of the message. Were the first one ended then,
        as Java's producers do, RocketMQ would ask about the newer one again and deliver it, too.
        """
        question = self._running.get(receipt.message_id)
        if question is not None:
            return answer_to(question, outcome)
        return end_of(receipt, outcome, group=self._group)

    async def _commit(self, receipt: Receipt) -> None:
        """Commit, and go on when the broker says so. Raises CommitInDoubt if it does not."""
        loop, backoff = asyncio.get_running_loop(), Backoff()
        deadline_s = loop.time() + self._session.settings.timeout_s
        while True:
            commit = self._end(receipt, Outcome.COMMIT)
            left_s = max(0.0, deadline_s - loop.time())
            try:
                await self._session.wire.ask(self._master_of(receipt), commit, timeout_s=left_s)
                return
            except _NOTHING_DONE as error:
                pause_s = backoff.next_s(random.random())  # noqa: S311
                if loop.time() + pause_s >= deadline_s:
                    raise self._doubt(receipt, error) from error
            except MQError as error:
                raise self._doubt(receipt, error) from error
            self._session.routes.seek_master(receipt.queue.broker_name)
            await self._session.routes.changed(pause_s)

    def _roll_back(self, receipt: Receipt) -> None:
        """Roll back without waiting: an exception is on its way, and nobody wants the answer."""
        try:
            address = self._master_of(receipt)
        except NoRoute as error:
            _log.warning("rollback not sent transaction=%s error=%s", receipt.message_id, error)
            return
        self._session.wire.tell(address, self._end(receipt, Outcome.ROLLBACK))

    def _trace_end(self, message: Message, receipt: Receipt, state: EndState) -> None:
        if self._tracer is not None:
            self._tracer.ended(
                message,
                message_id=receipt.message_id,
                transaction_id=receipt.transaction_id or receipt.message_id,
                broker_name=receipt.queue.broker_name,
                state=state,
            )

    def _master_of(self, receipt: Receipt) -> str:
        queue = receipt.queue
        address = self._session.routes.table.master_of(queue.broker_name)
        if address is None:
            raise NoRoute(queue.topic, f"{queue.broker_name} has no master now")
        return address

    def _doubt(self, receipt: Receipt, error: MQError) -> CommitInDoubt:
        queue = receipt.queue
        return CommitInDoubt(queue.topic, receipt.message_id, queue.broker_name, str(error))

    async def _meet_brokers(self) -> None:
        """Find all brokers by a topic that each of them has.

        A producer that was started anew and sends nothing yet is asked what its predecessor left open.
        """
        backoff = Backoff(most_s=self._session.settings.route_poll_s)
        while True:
            try:
                await self._session.routes.find(SELF_TEST_TOPIC)
                return
            except MQError as error:
                _log.debug("no brokers found yet error=%s", error)
            await asyncio.sleep(backoff.next_s(random.random()))  # noqa: S311
