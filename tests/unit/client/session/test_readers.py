import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tanist.client.session.readers import Readers
from tanist.client.session.routes import RouteTable
from tanist.client.session.tasks import OwnedTasks
from tanist.clock import SystemClock
from tanist.errors import ConnectFailed
from tanist.model.route import BrokerData, TopicRouteData
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.reading import ReadStandingRequest, ReadStandingResponse
from tanist.protocol.response_errors import NotReadable
from tests.support.conditions import turns, until

NAME, MASTER, SLAVE = "a", "10.0.0.7:10911", "10.0.0.8:10911"


class Bench:
    """Readers without sockets: it is their wire, their routes and their heartbeats."""

    def __init__(self) -> None:
        self.table = RouteTable()
        broker = BrokerData(cluster="C", broker_name=NAME, broker_addrs={0: MASTER, 1: SLAVE})
        self.table.put("T", TopicRouteData(broker_datas=[broker]))
        self.asked: list[tuple[str, ReadStandingRequest]] = []
        self.answers: dict[str, ReadStandingResponse] = {}
        """What brokers say to a question that does not wait; others are not there."""
        self.greeted: list[str] = []
        self.hung_up: list[str] = []
        self.forgotten: list[str] = []
        self.woken: deque[str | None] = deque()
        self.suspicions = 0
        self.tasks = OwnedTasks()
        this: Any = self
        self.readers = Readers(this, this, this, self.tasks, clock=SystemClock())
        self.found: list[str] = []
        self.readers.on_reader(self.found.append)

    async def ask(self, address: str, command: Command, *, timeout_s: float, connect_s: float) -> Command:
        assert command.code == RequestCode.GET_READ_STANDING
        question = command.header(ReadStandingRequest)
        self.asked.append((address, question))
        if address not in self.answers:
            raise ConnectFailed(address, "refused")
        if question.wait_ms:
            await asyncio.sleep(question.wait_ms / 1000)
        return command.reply(header=self.answers[address])

    async def greet(self, address: str) -> bool:
        self.greeted.append(address)
        return True

    def forget(self, address: str) -> None:
        self.forgotten.append(address)

    def hang_up(self, address: str, reason: str) -> None:
        self.hung_up.append(address)

    def wake(self) -> None:
        self.woken.append(self.table.master_of(NAME))

    def suspect(self) -> None:
        self.suspicions += 1

    def answer(self, address: str, permission: str, reader: str | None, *, coordinated: bool = True) -> None:
        self.answers[address] = ReadStandingResponse(
            permission=permission, is_coordinated=coordinated, reader_address=reader, read_term=3
        )


def play(scenario: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    async def with_bench() -> None:
        bench = Bench()
        try:
            await scenario(bench)
        finally:
            await bench.tasks.close()

    asyncio.run(with_bench())


def refusal(reader: str | None, term: int = 3) -> NotReadable:
    return NotReadable("not readable", reader_address=reader, term=term)


def test_a_reader_that_a_refusal_names_is_greeted_and_has_the_masters_place() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.readers.follow(NAME, MASTER, refusal(SLAVE))
        assert bench.greeted == [SLAVE]
        assert bench.table.master_of(NAME) == SLAVE
        assert bench.found == [NAME]
        # Those who go on see it.
        assert list(bench.woken) == [SLAVE]
        # The routes may be of a time when nobody could read, and are asked for again.
        assert bench.suspicions == 1
        assert not bench.asked

    play(scenario)


def test_a_refusal_that_is_older_than_what_is_known_is_checked_and_not_believed() -> None:
    async def scenario(bench: Bench) -> None:
        bench.answer(SLAVE, "READ", SLAVE)
        await bench.readers.follow(NAME, MASTER, refusal(SLAVE, term=3))
        await bench.readers.follow(NAME, SLAVE, refusal(MASTER, term=2))
        assert bench.table.master_of(NAME) == SLAVE
        await until(lambda: len(bench.found) == 2)
        assert bench.table.master_of(NAME) == SLAVE

    play(scenario)


def test_two_that_name_each_other_are_not_believed_in_turn() -> None:
    async def scenario(bench: Bench) -> None:
        bench.answer(MASTER, "NONE", SLAVE)
        bench.answer(SLAVE, "NONE", MASTER)
        await bench.readers.follow(NAME, MASTER, refusal(SLAVE))
        for _ in range(20):
            await bench.readers.follow(NAME, SLAVE, refusal(MASTER))
            await bench.readers.follow(NAME, MASTER, refusal(SLAVE))
        await turns(100)
        assert bench.found == [NAME]
        assert [question.wait_ms for _, question in bench.asked] == [0, 0, 10_000, 10_000]
        assert {question.known_reader for _, question in bench.asked} == {None, SLAVE, MASTER}

    play(scenario)


def test_who_is_found_is_greeted_before_it_is_read_and_the_others_are_left() -> None:
    async def scenario(bench: Bench) -> None:
        bench.answer(MASTER, "NONE", SLAVE)
        bench.answer(SLAVE, "READ", SLAVE)
        assert await bench.readers.found(NAME, 10)
        assert (bench.greeted, bench.hung_up) == ([SLAVE], [MASTER])
        # They have let us go, and are told of us anew if they are read again.
        assert bench.forgotten == [MASTER]
        assert bench.table.master_of(NAME) == SLAVE
        assert bench.table.term_of(NAME) == 3

    play(scenario)


@pytest.mark.parametrize(
    ("permission", "coordinated"), [("READ", False), ("SOME", True)], ids=["no coordinator", "nonsense"]
)
def test_an_answer_without_a_coordinator_or_without_sense_makes_nobody_the_reader(
    permission: str, coordinated: bool
) -> None:
    async def scenario(bench: Bench) -> None:
        bench.answer(SLAVE, permission, SLAVE, coordinated=coordinated)
        assert not await bench.readers.found(NAME, 10)
        assert bench.table.master_of(NAME) == MASTER
        assert not bench.readers.is_sought(NAME)
        await until(lambda: len(bench.asked) == 2)

    play(scenario)


def test_if_nobody_is_there_nobody_is_waited_for() -> None:
    async def scenario(bench: Bench) -> None:
        assert not await bench.readers.found(NAME, 60)
        assert not bench.readers.is_sought(NAME)
        # It goes on in the background: one of them may come back.
        bench.answer(MASTER, "FULL", MASTER)
        await until(lambda: bench.found == [NAME])

    play(scenario)


def test_many_who_seek_share_one_search_and_the_next_one_comes_later() -> None:
    async def scenario(bench: Bench) -> None:
        bench.answer(MASTER, "FULL", MASTER)
        for _ in range(10):
            bench.readers.seek(NAME)
        await until(lambda: bench.found == [NAME])
        asked = len(bench.asked)
        assert asked == 2
        await turns()
        bench.readers.seek(NAME)
        await turns()
        assert len(bench.asked) == asked
        await until(lambda: bench.found == [NAME, NAME])

    play(scenario)
