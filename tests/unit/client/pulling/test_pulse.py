import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tanist.client.pulling import pulse
from tanist.client.pulling.pulse import Pulse
from tanist.client.session.tasks import OwnedTasks
from tanist.errors import ConnectionLost, RequestTimeout
from tanist.model.route import MessageQueue
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tests.support.conditions import turns, until

QUEUE = MessageQueue(topic="T", broker_name="a", queue_id=3)


class Bench:
    """A pulse of brokers without sockets, which looks whenever it can."""

    def __init__(self) -> None:
        self.tasks = OwnedTasks()
        self.asked: list[str] = []
        self.given_up: list[str] = []
        self.silent: set[str] = set()
        self.lost: set[str] = set()
        wire: Any = self
        self.pulse = Pulse(wire, self.tasks, answer_s=3)

    async def exchange(self, address: str, command: Command, *, timeout_s: float) -> Command:
        assert (command.code, timeout_s) == (RequestCode.GET_MAX_OFFSET, 3)
        self.asked.append(address)
        if address in self.silent:
            raise RequestTimeout(address, command.code, timeout_s)
        if address in self.lost:
            raise ConnectionLost(address, "the peer closed it")
        return command.reply(ResponseCode.NO_PERMISSION)

    def give_up(self, address: str, reason: str) -> None:
        assert reason == "it has answered nothing for 3 s"
        self.given_up.append(address)


def play(scenario: Callable[[Bench], Coroutine[Any, Any, None]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "_LOOK_S", 0)

    async def with_bench() -> None:
        bench = Bench()
        try:
            await scenario(bench)
        finally:
            await bench.tasks.close()

    asyncio.run(with_bench())


def test_a_broker_that_answers_nothing_while_a_pull_waits_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(bench: Bench) -> None:
        bench.silent.add("m:1")
        for address in ("m:1", "m:2"):
            bench.pulse.begin(address, QUEUE)
        await until(lambda: bench.given_up == ["m:1"] and "m:2" in bench.asked)

    play(scenario, monkeypatch)


def test_a_broker_that_answers_anything_or_is_known_to_be_gone_is_not_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(bench: Bench) -> None:
        bench.lost.add("m:2")
        for address in ("m:1", "m:2"):
            bench.pulse.begin(address, QUEUE)
        await until(lambda: len(bench.asked) > 4)
        assert bench.given_up == []

    play(scenario, monkeypatch)


def test_a_broker_where_nobody_waits_or_that_was_just_heard_is_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(bench: Bench) -> None:
        for _ in range(2):
            bench.pulse.begin("m:1", QUEUE)
        for _ in range(50):
            bench.pulse.end("m:1")
            bench.pulse.begin("m:1", QUEUE)
            await asyncio.sleep(0)
        asked_while_heard = len(bench.asked)
        for _ in range(2):
            bench.pulse.end("m:1")
        await turns(10)
        asked = len(bench.asked)
        await turns(10)
        assert (asked_while_heard, len(bench.asked)) == (0, asked)

    play(scenario, monkeypatch)
