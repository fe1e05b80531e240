"""Asks the master for its tables, by RocketMQ's requests: for slaves of whoever does not push them.

The first time 3 s after the broker became a slave, then every 10 s, and soon when the log tells of a topic
that is not in our table: topics, consumer offsets, delay offsets, groups. One that fails is told in the log
and the rest go on. Where the master is, is for the
registration to find out; while it does not know, there is nothing to ask.

While Tanist's own link brings the tables as they change (``tables_sink``), nobody is asked.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

from tanist.broker.state import BrokerState
from tanist.errors import ConfigError, MQError
from tanist.log import ToldFailures
from tanist.model.host import FAST_PORT_DISTANCE
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.sync import (
    ConsumerOffsetTable,
    DelayOffsetTable,
    SubscriptionGroupTable,
    TopicConfigTable,
)
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.response_errors import error_of
from tanist.remoting import RemotingClient

_log = logging.getLogger(__name__)

FIRST_S = 3.0
PERIOD_S = 10.0
LEAST_S = 1.0
"""So long is between the beginnings of two runs, however much there is to ask for."""
_TIMEOUT_S = 3.0


@dataclass(frozen=True, slots=True)
class _Step:
    """One table of a run."""

    name: str
    code: RequestCode
    take_over: Callable[[bytes], bool]
    """Whether it was another than ours."""
    start_save: Callable[[], Callable[[], None] | None]
    is_fast: bool = False
    """Whether it is asked for at the master's second port."""
    level: int = logging.DEBUG
    """How important a change is: offsets change all the time."""
    is_ours: Callable[[], bool] = lambda: False
    """Whether the master has no say in this table now."""


AskMaster = Callable[[str], Awaitable[None]]
"""Asks the master at an address for something, and raises what went wrong."""


async def _take_any(_master: str) -> None:
    pass


class MetadataSync:
    """The schedule of one broker, which has one only while it is a slave."""

    def __init__(
        self,
        state: BrokerState,
        client: RemotingClient,
        *,
        is_pushed: Callable[[], bool] = lambda: False,
        check_master: AskMaster = _take_any,
        owns_offsets: Callable[[], bool] = lambda: False,
    ) -> None:
        """``is_pushed`` tells whether a link brings the tables now.

        ``check_master`` raises ForeignLog if the tables of a master are not for our log. While
        ``owns_offsets``, consumer offsets are not taken over, nor topics and groups: see ``tables_sink``.
        """
        self._state = state
        self._client = client
        self._is_pushed = is_pushed
        self._check_master = check_master
        self._steps = _steps(state, owns_offsets)
        self._failures = ToldFailures()
        self._running = asyncio.Lock()
        self._schedule = _Schedule(RunTimes(state.clock.monotonic_s()))
        self._tasks: set[asyncio.Task[None]] = set()
        self._master: str | None = None
        self._got: set[str] = set()

    @property
    def missing(self) -> tuple[str, ...]:
        """The tables that no master has told since this broker became a slave."""
        return tuple(step.name for step in self._steps if step.name not in self._got)

    @property
    def master_address(self) -> str | None:
        """Whom to ask, ``host:port``; None while nobody knows."""
        return self._master

    def use_master(self, address: str | None) -> None:
        """Ask this broker from the next table on."""
        self._master = address or None

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """The broker is a slave from now on: forget an earlier master, and begin a new schedule."""
        self.stop()
        self._schedule = _Schedule(RunTimes(self._state.clock.monotonic_s()))
        self._got.clear()
        task = tasks.create_task(self._keep_asking(self._schedule))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        """The broker is no slave any more. A run that is under way ends by itself, and changes nothing."""
        self._schedule.is_over = True
        self._schedule.changed.set()
        self._master = None

    def hasten(self) -> None:
        """Something is missing that the master has: ask it soon."""
        self._schedule.times.hasten(self._state.clock.monotonic_s())
        self._schedule.changed.set()

    async def close(self) -> None:
        """The broker stops: end the schedule and what is under way."""
        self.stop()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def run_once(self) -> None:
        """Take all tables over that can be had now. What fails is told in the log."""
        async with self._running:
            if self._is_pushed() or not await self._try("anything", self._check_master):
                return
            for step in self._steps:
                await self._try(step.name, partial(self._sync, step))

    async def _keep_asking(self, schedule: "_Schedule") -> None:
        clock, times = self._state.clock, schedule.times
        while not schedule.is_over:
            schedule.changed.clear()
            try:
                async with asyncio.timeout(times.wait_s(clock.monotonic_s())):
                    await schedule.changed.wait()
            except TimeoutError:
                times.on_run(clock.monotonic_s())
                try:
                    await self.run_once()
                except Exception:
                    _log.exception("sync of metadata failed master=%s", self._master)

    async def _try(self, name: str, ask: AskMaster) -> bool:
        """Ask the master there is now, if there is one; whether that went well."""
        # One look: the master may change while the answer is on its way.
        master = self._master
        if master is None or master == self._state.settings.address:
            return False
        try:
            await ask(master)
        except Exception as error:
            if self._failures.is_news(name, f"{master} {error}"):
                _log.warning(
                    "slave has not got %s from master, %s reason=%s",
                    *(name, master, error),
                    exc_info=not isinstance(error, MQError | OSError),
                )
            return False
        if self._failures.is_over(name):
            _log.info("slave has got %s from master again, %s", name, master)
        return True

    async def _sync(self, step: _Step, master: str) -> None:
        address = fast_address(master) if step.is_fast else master
        body = await ask_for_table(self._client, address, step.code)
        if self._master != master or self._is_pushed() or step.is_ours():
            # It is not our master any more, or this broker has become one itself; or the link is there now,
            # and may have brought something newer; or what we have is newer.
            return
        self._got.add(step.name)
        if step.take_over(body):
            _log.log(step.level, "Update slave %s from master, %s", step.name, master)
        if finish := step.start_save():
            await asyncio.to_thread(finish)


async def ask_for_table(client: RemotingClient, address: str, code: RequestCode) -> bytes:
    """The body of a master's answer. Raises ResponseError if it says no, or a RemotingError."""
    answer = await client.request(address, Command.request(code), timeout_s=_TIMEOUT_S)
    if answer.code != ResponseCode.SUCCESS:
        raise error_of(answer)
    return bytes(answer.body)


class RunTimes:
    """When the next run is due: at a fixed rate, and after a run that took too long at once. Pure."""

    def __init__(self, now_s: float) -> None:
        self._next_s = now_s + FIRST_S
        self._run_s = now_s - LEAST_S

    def wait_s(self, now_s: float) -> float:
        return max(0.0, self._next_s - now_s)

    def on_run(self, now_s: float) -> None:
        """A run begins. Those that were missed are not made up for."""
        self._run_s = now_s
        missed_count = (now_s - self._next_s) // PERIOD_S
        self._next_s = now_s + PERIOD_S if missed_count else self._next_s + PERIOD_S

    def hasten(self, now_s: float) -> None:
        """A run is wanted as soon as may be."""
        self._next_s = min(self._next_s, max(now_s, self._run_s + LEAST_S))


@dataclass(slots=True)
class _Schedule:
    """The runs of one time as a slave."""

    times: RunTimes
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    is_over: bool = False


def fast_address(address: str) -> str:
    """The second port of the broker at ``host:port``. Raises ConfigError if it is no such address."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ConfigError("masterAddress", address, "host:port")
    return f"{host}:{int(port) - FAST_PORT_DISTANCE}"


def _steps(state: BrokerState, owns_offsets: Callable[[], bool]) -> tuple[_Step, ...]:
    """In their order."""
    return (
        _Step(
            "topic config",
            RequestCode.GET_ALL_TOPIC_CONFIG,
            lambda body: state.topics.follow(decode_java_json(body, TopicConfigTable)),
            state.topics.start_save,
            is_fast=True,
            level=logging.INFO,
            is_ours=owns_offsets,
        ),
        _Step(
            "consumer offset",
            RequestCode.GET_ALL_CONSUMER_OFFSET,
            lambda body: state.offsets.follow(decode_java_json(body, ConsumerOffsetTable)),
            state.offsets.start_save,
            is_ours=owns_offsets,
        ),
        _Step(
            "delay offset",
            RequestCode.GET_ALL_DELAY_OFFSET,
            lambda body: state.delays.levels.follow(decode_java_json(body, DelayOffsetTable)),
            state.delays.start_save_levels,
        ),
        _Step(
            "subscription group",
            RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
            lambda body: state.groups.follow(decode_java_json(body, SubscriptionGroupTable)),
            state.groups.start_save,
            level=logging.INFO,
            is_ours=owns_offsets,
        ),
    )
