"""What a message costs a broker, counted and not timed: bytecodes and calls of its thread.

A real broker serves real sockets on uvloop, in this thread; another thread gives it a fixed amount of work,
each request once the last one is answered. What is counted is the same on a busy machine and on an idle one,
but for a broker's chores, which run by the clock: of several rounds the cheapest counts. It depends on the
Python that runs, and on whether C takes the sends, so a baseline is named after both; there are some for
CPython 3.11 alone, and elsewhere nothing is compared. What happens within C is not seen.

With C a batch and a pull cost a few bytecodes more than without, because each pays for the turn of the lane
that read it and had to hand it on: some 400 for a batch and 240 for a pull, whatever is in it.

``python -m bench.cost`` prints the counts beside the baseline; ``--write`` makes them the baseline.
"""

import asyncio
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias
from unittest.mock import patch

import msgspec
import uvloop

from bench.lean_client import send_request
from tanist.broker import lane, quick_send
from tanist.protocol import Command, ResponseCode
from tanist.protocol.headers.pull import PullMessageResponse
from tanist.testing import EmbeddedBroker
from tests.support.requests import pull_request
from tests.support.wire import Wire

BASELINE = Path(__file__).with_name("cost_baseline.json")
C, PYTHON = "sends in C", "sends in Python"
_MOST_GROWTH = 1.10
_TOPIC = "Cost"
_BODY = bytes(range(256)) * 4
_BATCH = 64
_PULLED = 32
_ROUNDS = 4
_SETTINGS = {"mappedFileSizeCommitLog": str(256 << 20)}


class Cost(msgspec.Struct, frozen=True):
    """Of one message."""

    bytecodes: float
    calls: float
    """Of functions, in Python and, where Python calls them, in C."""

    def growth(self, recorded: "Cost") -> list[str]:
        """What is more than it may be beside the recorded cost, in words."""
        figures = (
            ("bytecodes", self.bytecodes, recorded.bytecodes),
            ("calls", self.calls, recorded.calls),
        )
        return [
            f"{now:.1f} {what} a message, recorded {then:.1f}"
            for what, now, then in figures
            if now > then * _MOST_GROWTH
        ]


Costs: TypeAlias = dict[str, Cost]
"""By the name of the path."""


@dataclass(frozen=True)
class _Work:
    """A hot path: what a client does once, for how many messages, and how often in a round."""

    name: str
    do: Callable[[Wire], None]
    messages: int
    times: int


def _send(wire: Wire) -> None:
    _expect_success(wire.ask(send_request(_TOPIC, 0, _BODY)))


def _send_batch(wire: Wire) -> None:
    _expect_success(wire.ask(send_request(_TOPIC, 0, _BODY, batch=_BATCH)))


def _pull(wire: Wire) -> None:
    answer = wire.ask(pull_request(0, topic=_TOPIC))
    _expect_success(answer)
    assert answer.header(PullMessageResponse).next_begin_offset == _PULLED, "not all was found"


def _expect_success(answer: Command) -> None:
    assert answer.code == ResponseCode.SUCCESS, answer.remark


_WORKS = (
    _Work("send, one at a time", _send, 1, 500),
    _Work(f"batch of {_BATCH}", _send_batch, _BATCH, 100),
    _Work(f"pull of {_PULLED}", _pull, _PULLED, 300),
)


class _Counter:
    """Counts what the thread does that calls ``start``, until ``stop``."""

    def __init__(self) -> None:
        self.bytecodes = self.calls = 0

    def start(self) -> None:
        sys.settrace(self._trace)
        sys.setprofile(self._profile)

    def stop(self) -> None:
        sys.setprofile(None)
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, _argument: Any) -> Any:
        frame.f_trace_lines = False
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.bytecodes += 1
        return self._trace

    def _profile(self, _frame: FrameType, event: str, _argument: Any) -> None:
        if event in ("call", "c_call"):
            self.calls += 1


def engines() -> list[str]:
    """Who can take sends here."""
    return [C, PYTHON] if lane.engine is not None and quick_send.native is not None else [PYTHON]


def baseline_name(engine: str) -> str:
    version = ".".join(platform.python_version_tuple()[:2])
    return f"{platform.python_implementation()} {version}, {engine}"


def read_baseline() -> dict[str, Costs]:
    return msgspec.json.decode(BASELINE.read_bytes(), type=dict[str, Costs]) if BASELINE.exists() else {}


def measure(engine: str) -> Costs:
    """The cost of each path. Raises AssertionError if a broker did not do the work."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if engine == C:
            return runner.run(_measure())
        with patch.object(lane, "engine", None), patch.object(quick_send, "native", None):
            return runner.run(_measure())


def cheapest(first: Costs, second: Costs) -> Costs:
    """Of each path the least that was counted: chance only adds."""
    return {
        path: Cost(min(cost.bytecodes, second[path].bytecodes), min(cost.calls, second[path].calls))
        for path, cost in first.items()
    }


async def _measure() -> Costs:
    async with EmbeddedBroker(topics={_TOPIC: 1}, settings=_SETTINGS) as broker:
        return {work.name: await _cost(work, broker.address) for work in _WORKS}


async def _cost(work: _Work, address: str) -> Cost:
    # The first round is a rehearsal: whatever is learnt or made once is then there.
    rounds = [await _round(work, address) for _ in range(1 + _ROUNDS)][1:]
    return Cost(min(one.bytecodes for one in rounds), min(one.calls for one in rounds))


async def _round(work: _Work, address: str) -> Cost:
    counter = _Counter()
    wire = await asyncio.to_thread(Wire, address)

    def drive() -> None:
        for _ in range(work.times):
            work.do(wire)

    # A connection costs more than a message: the first request has the broker know it.
    await asyncio.to_thread(work.do, wire)
    counter.start()
    try:
        await asyncio.to_thread(drive)
    finally:
        counter.stop()
        wire.close()
    messages = work.messages * work.times
    return Cost(counter.bytecodes / messages, counter.calls / messages)


def main(arguments: list[str]) -> int:
    baseline = read_baseline()
    for engine in engines():
        name = baseline_name(engine)
        recorded = baseline.get(name, {})
        baseline[name] = seen = cheapest(measure(engine), measure(engine))
        for path, cost in seen.items():
            then = recorded.get(path)
            beside = f", recorded {then.bytecodes:.1f} and {then.calls:.1f}" if then else ""
            print(f"{name}: {path}: {cost.bytecodes:.1f} bytecodes, {cost.calls:.1f} calls a message{beside}")
    if "--write" in arguments:
        BASELINE.write_bytes(msgspec.json.format(msgspec.json.encode(baseline, order="sorted")) + b"\n")
        print(f"{os.path.relpath(BASELINE)} is written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
