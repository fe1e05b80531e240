"""One switch under load: a master is killed, its slave is read or not, and the master comes back.

Consumers have a backlog to read all the time, at a pace at which what they have read ahead lasts for less
than half a second. Once they have gone on they are slowed down, so that a backlog is left at the hand-back.
"""

import random
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from bench.fixed_pairs import TOPIC, Pair
from bench.lean_client import send_request
from bench.lean_sends import BODY_BYTES, LeanClient
from bench.replica_groups import wait_until
from bench.slave_reads import Delivery, Moments, Place, Seen, judge
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.headers.common import QueueOffsetResponse
from tanist.protocol.headers.offsets import (
    ConsumerOffsetResponse,
    GetMaxOffsetRequest,
    QueryConsumerOffsetRequest,
)
from tanist.protocol.headers.send import SendMessageResponse
from tests.support.rocketmq.scenario import ScenarioProcess
from tests.support.wire import Wire

LIMIT_S = 45.0
"""So long is waited for a consumer to go on."""
_QUEUES = range(2)
_BACKLOG = 45_000
_BATCH = 32
_WARM = 5_000
_HELD_MOST = 2_500
"""A stock consumer reads at most a thousand messages of each queue ahead, and one answer more."""
_AWAY_S = 32.0
"""So long the master is away at least: stock clients ask for routes every 30 s, and are to see the slave."""
_FAST_MS, _SLOW_MS, _LAST_MS = 4, 40, 1
_JITTER_S = 10.0
"""Kills are to fall anywhere between two times at which a stock client asks for routes."""
_LOAD_PAUSE_S = 0.005
_LOAD_AFTER_S = 1.0
_DRAIN_S = 90.0
_POLL_S = 0.05


class Reader:
    """A consumer of its own group in another process, and what it was given in this round."""

    def __init__(
        self, kind: str, process: ScenarioProcess, pair: Pair, *, is_restarted: bool = False
    ) -> None:
        """One that ``is_restarted`` ends after a kill and before a hand-back, and another one begins anew."""
        self.kind = kind
        self.is_restarted = is_restarted
        self.group = f"{kind}-{pair.name}".replace(" ", "-")
        self.known: set[Place] = set()
        """Where messages were that it was given in earlier rounds."""
        self.deliveries: list[Delivery] = []
        self._fresh: set[Place] = set()
        self._taken = 0
        self._process = process
        self._do("reader", nameServer=pair.name_server, group=self.group, topic=TOPIC, paceMs=_SLOW_MS)

    def begin_round(self) -> None:
        self.deliveries, self._fresh = [], set()
        self.set_pace(_SLOW_MS)

    def set_pace(self, pace_ms: int) -> None:
        """Have it take so long over each message."""
        self._do("reader-pace", paceMs=pace_ms)

    def end(self) -> int | None:
        """If it is such a one, end it; when it was over."""
        return self._do("reader-end") if self.is_restarted else None

    def begin(self) -> None:
        """If it was ended, begin another one."""
        if self.is_restarted:
            self._do("reader-begin")

    def fresh(self) -> set[Place]:
        """Where messages were that it was given for the first time in this round, up to now."""
        more = [Delivery(*one) for one in self._do("read", **{"from": self._taken})]
        self._taken += len(more)
        self.deliveries += more
        self._fresh.update(one.place for one in more if one.place not in self.known)
        return self._fresh

    def _do(self, step: str, **options: object) -> Any:
        return self._process.do(step, name=self.group, **options)


class _Load(threading.Thread):
    """Sends to a master at a steady rate until the block ends, or the master."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self._address = address
        self._is_over = threading.Event()
        self.acknowledged: set[Place] = set()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self.join()

    def run(self) -> None:
        try:
            with Wire(self._address) as wire:
                while not self._is_over.wait(_LOAD_PAUSE_S):
                    for queue_id in _QUEUES:
                        answer = wire.ask(send_request(TOPIC, queue_id, bytes(BODY_BYTES)))
                        if answer.code == ResponseCode.SUCCESS:
                            where = answer.header(SendMessageResponse)
                            self.acknowledged.add((where.queue_id, where.queue_offset))
        except (OSError, AssertionError):
            return


def switch(pair: Pair, readers: Sequence[Reader], client: LeanClient) -> dict[str, Seen]:
    """Kill the master, and have it come back; what each kind of consumer saw."""
    pair.wait_in_step()
    for reader in readers:
        reader.begin_round()
    stored = _store_backlog(pair, client)
    with _Load(pair.master) as load:
        time.sleep(random.uniform(0, _JITTER_S))
        _warm_up(readers)
        committed = {reader.group: _committed(pair.master, reader.group) for reader in readers}
        killed_ns = time.monotonic_ns()
        pair.kill_master()
    counts = {reader: len(reader.fresh()) for reader in readers}
    if len(stored) - max(counts.values()) <= _HELD_MOST:
        raise RuntimeError("a consumer had read all there was when the master was killed")
    ended_ns: dict[str, int | None] = {}
    for reader in readers:
        ended_ns[reader.group] = reader.end()
        reader.begin()
    _wait_until_gone_on(counts, killed_ns)
    for reader in readers:
        reader.end()
    moments = Moments(killed_ns, time.monotonic_ns())
    pair.restart_master()
    pair.wait_in_step()
    for reader in readers:
        reader.begin()
    with _Load(pair.master) as more:
        time.sleep(_LOAD_AFTER_S)
    stored |= load.acknowledged | more.acknowledged
    _drain(readers, stored)
    return {
        reader.kind: judge(
            reader.known,
            reader.deliveries,
            moments,
            stored=stored,
            committed=committed[reader.group],
            held_most=_HELD_MOST,
            ended_ns=ended_ns[reader.group],
        )
        for reader in readers
    }


def _warm_up(readers: Sequence[Reader]) -> None:
    """Have all read fast, and long enough that they do so steadily.

    Whoever has just begun may be without queues for a while, in which the others would read all there is.
    """
    for reader in readers:
        _wait_for_fresh(reader, 1)
    wanted: dict[Reader, int] = {}
    for reader in readers:
        reader.set_pace(_FAST_MS)
        wanted[reader] = len(reader.fresh()) + _WARM
    for reader, count in wanted.items():
        _wait_for_fresh(reader, count)


def _wait_for_fresh(reader: Reader, count: int) -> None:
    wait_until(lambda: len(reader.fresh()) >= count, what=f"{reader.group} reads", poll_s=_POLL_S)


def _store_backlog(pair: Pair, client: LeanClient) -> set[Place]:
    starts = _queue_ends(pair.master)
    client.send(pair.master, connections=len(_QUEUES), most=_BACKLOG, batch=_BATCH, topic=TOPIC)
    ends = _queue_ends(pair.master)
    return {(queue_id, offset) for queue_id in _QUEUES for offset in range(starts[queue_id], ends[queue_id])}


def _queue_ends(address: str) -> list[int]:
    with Wire(address) as wire:
        return [
            wire.ask(
                Command.request(
                    RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequest(topic=TOPIC, queue_id=queue_id)
                )
            )
            .header(QueueOffsetResponse)
            .queue_offset
            for queue_id in _QUEUES
        ]


def _committed(address: str, group: str) -> Mapping[int, int]:
    """Up to where the group has acknowledged each queue, as this broker knows it."""

    def ask(wire: Wire, queue_id: int) -> int:
        request = QueryConsumerOffsetRequest(consumer_group=group, topic=TOPIC, queue_id=queue_id)
        answer = wire.ask(Command.request(RequestCode.QUERY_CONSUMER_OFFSET, request))
        is_known = answer.code == ResponseCode.SUCCESS
        return answer.header(ConsumerOffsetResponse).consumer_offset if is_known else 0

    with Wire(address) as wire:
        return {queue_id: ask(wire, queue_id) for queue_id in _QUEUES}


def _wait_until_gone_on(counts: Mapping[Reader, int], killed_ns: int) -> None:
    """Wait until all read more than they held, beyond what they had at the kill; slow each down that does.

    Even if all do the master stays away for a time.
    """
    left = dict(counts)
    deadline_ns = killed_ns + int(LIMIT_S * 1e9)
    while left and time.monotonic_ns() < deadline_ns:
        for reader, count in tuple(left.items()):
            if len(reader.fresh()) > count + _HELD_MOST:
                reader.set_pace(_SLOW_MS)
                del left[reader]
        time.sleep(_POLL_S)
    time.sleep(max(0.0, killed_ns / 1e9 + _AWAY_S - time.monotonic()))


def _drain(readers: Sequence[Reader], stored: set[Place]) -> None:
    """Have them read all that is left, for as long as that may take."""
    for reader in readers:
        reader.set_pace(_LAST_MS)
    deadline_s = time.monotonic() + _DRAIN_S
    while any(stored - reader.known - reader.fresh() for reader in readers):
        if time.monotonic() > deadline_s:
            return
        time.sleep(_POLL_S)
