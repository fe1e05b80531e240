"""Who of a broker's replicas is read, where a coordinator says so: refusals name the one, or all are asked.

``reader_search`` decides; here are its questions. Whoever is found is told of us before it is read, because
it can not serve a subscription that it has not heard of.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from tanist.client.session.heartbeats import Heartbeats
from tanist.client.session.reader_search import Question, ReaderSearch, Standing
from tanist.client.session.route_keeper import RouteKeeper
from tanist.client.session.tasks import OwnedTasks
from tanist.client.session.wire import Wire
from tanist.clock import Clock
from tanist.errors import MQError, RemoteProtocolError, RemotingError
from tanist.model.host import is_host_and_port
from tanist.model.reading import permission_of
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.reading import ReadStandingRequest, ReadStandingResponse
from tanist.protocol.response_errors import (
    BrokerBusy,
    BrokerLeaving,
    FlowControlled,
    NotReadable,
    RequestNotSupported,
)

_log = logging.getLogger(__name__)

_CONNECT_S = 1.0
_LATE_S = 3.0
"""How much later than told a question may be answered."""
_MOST_S = 60.0
"""How long a search lasts; who needs a reader by then begins anew."""
_APART_S = 0.5
"""Of two searches for the same broker the second begins no sooner after the end of the first."""
_REFUSED_S = 1.0
"""How long a broker that refused is not believed to be read, whoever says so: two may name each other."""


@dataclass(slots=True)
class _Run:
    """A search that goes on; it may have to wait before it begins."""

    has_asked_all: asyncio.Event
    search: ReaderSearch | None = None
    task: asyncio.Task[bool] | None = None


class Readers:
    """The readers of one client's brokers, which the table of its routes has in their masters' places."""

    def __init__(
        self,
        wire: Wire,
        routes: RouteKeeper,
        heartbeats: Heartbeats,
        tasks: OwnedTasks,
        *,
        clock: Clock,
    ) -> None:
        self._wire = wire
        self._routes = routes
        self._heartbeats = heartbeats
        self._tasks = tasks
        self._clock = clock
        self._runs: dict[str, _Run] = {}
        self._ended_s: dict[str, float] = {}
        self._refused_s: dict[str, float] = {}
        self._listeners: list[Callable[[str], None]] = []

    def on_reader(self, listener: Callable[[str], None]) -> None:
        """Have ``listener`` called with the name of each broker of which it is known again who is read."""
        self._listeners.append(listener)

    def is_sought(self, broker_name: str) -> bool:
        """Whether a search goes on that will tell as soon as one may be read."""
        run = self._runs.get(broker_name)
        return run is not None and run.search is not None and run.search.is_hopeful

    async def follow(self, broker_name: str, refused_by: str, refusal: NotReadable) -> None:
        """Go where a refusal says that reading is done; if it is no help, find out in the background."""
        self._refused_s[refused_by] = self._clock.monotonic_s()
        reader, table = refusal.reader_address, self._routes.table
        if (
            reader is None
            or refusal.term < table.term_of(broker_name)
            or self._is_doubtful(broker_name, reader)
        ):
            self.seek(broker_name)
            return
        await self._heartbeats.greet(reader)
        is_new = reader != table.master_of(broker_name)
        if table.believe_reader(broker_name, reader, term=refusal.term) and is_new:
            self._tell(broker_name, reader, refusal.term)

    def seek(self, broker_name: str) -> None:
        """The broker's reader is lost or refuses: find out who may be read, unless that goes on already."""
        if broker_name not in self._runs:
            run = _Run(asyncio.Event())
            run.task = self._tasks.start(self._run(broker_name, run), f"reader of {broker_name}")
            self._runs[broker_name] = run
            run.task.add_done_callback(lambda _: self._runs.pop(broker_name, None))

    async def found(self, broker_name: str, timeout_s: float) -> bool:
        """Wait until it is known who may be read, within the time; False as soon as nobody can tell."""
        self.seek(broker_name)
        run = self._runs[broker_name]
        assert run.task is not None
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await run.has_asked_all.wait()
                if run.search is not None and (run.search.is_hopeful or run.search.is_over):
                    await asyncio.wait([run.task])
        return run.task.done() and not run.task.cancelled() and run.task.result()

    def _is_doubtful(self, broker_name: str, reader: str) -> bool:
        """Whether a reader that somebody names has just refused itself, or can not be reached."""
        refused_s = self._refused_s.get(reader)
        if refused_s is not None and self._clock.monotonic_s() - refused_s < _REFUSED_S:
            return True
        run = self._runs.get(broker_name)
        return run is not None and run.search is not None and run.search.is_lost(reader)

    async def _run(self, broker_name: str, run: "_Run") -> bool:
        """One search; whether somebody was found."""
        ended_s = self._ended_s.get(broker_name)
        if ended_s is not None:
            await asyncio.sleep(ended_s + _APART_S - self._clock.monotonic_s())
        run.search = search = ReaderSearch(self._routes.table.addresses_of(broker_name))
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(_MOST_S):
                    await self._search(search, run.has_asked_all)
        finally:
            run.has_asked_all.set()
            self._ended_s[broker_name] = self._clock.monotonic_s()
        reader = search.found
        if reader is None:
            return False
        term = search.found_term
        await self._heartbeats.greet(reader)
        self._refused_s.pop(reader, None)
        self._routes.table.believe_reader(broker_name, reader, term=term, is_sure=True)
        self._tell(broker_name, reader, term)
        for address in search.standings:
            if address != reader:
                # It has let us go, and is told of us anew if it is read again.
                self._heartbeats.forget(address)
                self._wire.hang_up(address, "another replica is read")
        return True

    def _tell(self, broker_name: str, reader: str, term: int) -> None:
        _log.info("reader found broker=%s reader=%s term=%d", broker_name, reader, term)
        for listener in self._listeners:
            listener(broker_name)
        self._routes.wake()
        # They may say of which queues nobody could read, and be that old for half a minute.
        self._routes.suspect()

    async def _search(self, search: ReaderSearch, has_asked_all: asyncio.Event) -> None:
        asking: dict[asyncio.Task[Standing | MQError], tuple[Question, float]] = {}
        try:
            while not search.is_over:
                for question in search.next_questions(random.random()):  # noqa: S311
                    task = self._tasks.start(self._ask(question), f"may {question.address} be read")
                    asking[task] = question, self._clock.monotonic_s() + question.after_s
                done, _ = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    question, asked_s = asking.pop(task)
                    if not task.cancelled():
                        _take_in(search, question, task.result(), self._clock.monotonic_s() - asked_s)
                if search.has_asked_all:
                    has_asked_all.set()
        finally:
            for task in asking:
                task.cancel()
            if asking:
                await asyncio.wait(asking)

    async def _ask(self, question: Question) -> Standing | MQError:
        await asyncio.sleep(question.after_s)
        header = ReadStandingRequest(wait_ms=int(question.wait_s * 1000), known_reader=question.known_reader)
        request = Command.request(RequestCode.GET_READ_STANDING, header)
        timeout_s = question.wait_s + _LATE_S
        try:
            answer = await self._wire.ask(
                question.address, request, timeout_s=timeout_s, connect_s=min(_CONNECT_S, timeout_s)
            )
            return _standing_of(answer.header(ReadStandingResponse))
        except MQError as error:
            _log.debug("not told who is read broker=%s error=%s", question.address, error)
            return error


def _take_in(search: ReaderSearch, question: Question, answer: Standing | MQError, took_s: float) -> None:
    match answer:
        case Standing():
            search.on_standing(question, answer, took_s=took_s)
        case RemotingError() | BrokerLeaving() | BrokerBusy() | FlowControlled():
            search.on_lost(question.address)
        case _:
            # Another kind of broker, or one that does not let us ask.
            search.on_foreign(question.address)


def _standing_of(answer: ReadStandingResponse) -> Standing:
    """Raises RequestNotSupported without a coordinator, RemoteProtocolError if it makes no sense."""
    if not answer.is_coordinated:
        # A slave may say that it is read beside its master, whose place it must not have for that.
        raise RequestNotSupported(
            ResponseCode.REQUEST_CODE_NOT_SUPPORTED, "no coordinator says who of the group is read"
        )
    permission, reader = permission_of(answer.permission), answer.reader_address
    if permission is None:
        raise RemoteProtocolError(f"permission={answer.permission[:20]!r} is not FULL, WRITE, READ or NONE")
    is_known = reader is not None and is_host_and_port(reader)
    return Standing(permission, reader if is_known else None, answer.read_term)
