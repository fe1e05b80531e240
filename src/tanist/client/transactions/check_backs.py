"""Answers brokers that ask what became of a transaction, because its end never came.

A broker asks any member of the group that began it, and again and again, but not for ever: after some
questions it gives the message up. So a question that cannot be taken now waits, and few are dropped.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from tanist.client.received import ReceivedMessage
from tanist.client.session.tasks import OwnedTasks
from tanist.client.session.wire import Wire
from tanist.client.tracing.trace_format import EndState
from tanist.client.tracing.tracer import Tracer
from tanist.client.transactions.transaction_ends import Outcome, Question, answer_to, read_question
from tanist.protocol.command import Command
from tanist.remoting import Connection

_log = logging.getLogger(__name__)

OnCheck: TypeAlias = Callable[[ReceivedMessage], Awaitable[Outcome]]
"""Given the message of a transaction, tells what became of it."""

MAX_AT_ONCE = 16
MAX_WAITING = 2000
"""As many as RocketMQ's producers keep. The broker asks again what is dropped."""
MAX_CHECK_S = 30.0
"""Whoever takes longer to tell what became of a transaction does not know it now."""


class CheckBacks:
    """The questions to one producer, each transaction once at a time."""

    def __init__(
        self,
        wire: Wire,
        tasks: OwnedTasks,
        *,
        group: str,
        on_check: OnCheck | None,
        is_running: Callable[[Question], bool],
        tracer: Tracer | None = None,
    ) -> None:
        """``is_running`` tells whether the block of the transaction runs right now in this very producer."""
        self._wire = wire
        self._tasks = tasks
        self._group = group
        self._on_check = on_check
        self._is_running = is_running
        self._tracer = tracer
        self._turns = asyncio.Semaphore(MAX_AT_ONCE)
        self._asked: set[str] = set()

    def handle(self, command: Command, connection: Connection) -> None:
        """Take a broker's question. It is answered later, as the end of the transaction."""
        question = read_question(command)
        transaction_id = question.transaction_id
        if self._on_check is None or question.group != self._group:
            _log.debug("nobody here to ask group=%s transaction=%s", question.group, transaction_id)
        elif self._is_running(question):
            # Nobody can know the outcome yet. Whoever looked for traces of it now would find none, and
            # roll back what is about to be committed.
            self._answer(question, Outcome.UNKNOWN, connection)
        elif transaction_id in self._asked:
            _log.debug("transaction is being checked already transaction=%s", transaction_id)
        elif len(self._asked) >= MAX_WAITING:
            _log.warning("question about a transaction dropped transaction=%s", transaction_id)
        else:
            self._asked.add(transaction_id)
            work = self._check(self._on_check, question, connection)
            task = self._tasks.start(work, f"check of transaction {transaction_id}")
            task.add_done_callback(lambda _: self._asked.discard(transaction_id))

    async def _check(self, on_check: OnCheck, question: Question, connection: Connection) -> None:
        async with self._turns:
            outcome = await _ask(on_check, question)
        self._answer(question, outcome, connection)

    def _answer(self, question: Question, outcome: Outcome, connection: Connection) -> None:
        _log.debug(
            "transaction checked transaction=%s outcome=%s broker=%s",
            *(question.transaction_id, outcome.name, connection.peer),
        )
        self._wire.answer_later(connection, answer_to(question, outcome))
        if self._tracer is not None:
            self._tracer.ended(
                question.message,
                message_id=question.message.message_id,
                transaction_id=question.transaction_id,
                broker_name=question.asked.broker_name or "",
                state=EndState[outcome.name],
                is_from_check=True,
            )


async def _ask(on_check: OnCheck, question: Question) -> Outcome:
    """What the program says; UNKNOWN if it fails, so that it is asked again."""
    try:
        async with asyncio.timeout(MAX_CHECK_S):
            outcome: Any = await on_check(question.message)
    except Exception:
        _log.exception("on_check failed transaction=%s", question.transaction_id)
        return Outcome.UNKNOWN
    if not isinstance(outcome, Outcome):
        _log.error(
            "on_check returned no Outcome transaction=%s returned=%.200r", question.transaction_id, outcome
        )
        return Outcome.UNKNOWN
    return outcome
