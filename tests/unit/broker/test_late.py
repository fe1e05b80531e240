import asyncio
import logging
from collections.abc import Callable

import pytest

from tanist.broker.late import LongAnswers, Steps
from tanist.errors import ResponseError
from tanist.protocol.codes import ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.frame import MAX_FRAME_BYTES
from tests.support.clocks import FakeClock
from tests.support.fake_connection import FakeConnection

TURN_MS = 10
"""Longer than a turn may take: a step that lasts so long ends it."""


class Work:
    """Answers that take a few steps, each as long as a turn, and what was done in which order."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.answers = LongAnswers(self.clock)
        self.done: list[str] = []

    def steps(
        self, request: Command, name: str, count: int, *, finish: Callable[[], bytes] = lambda: b"made"
    ) -> Steps:
        for _ in range(count):
            self.done.append(name)
            self.clock.advance_ms(TURN_MS)
            yield
        return request.reply(body=finish())

    def begin(
        self,
        connection: FakeConnection,
        name: str = "a",
        count: int = 3,
        *,
        opaque: int = 7,
        finish: Callable[[], bytes] = lambda: b"made",
    ) -> Command | None:
        request = Command.request(208, opaque=opaque)
        steps = self.steps(request, name, count, finish=finish)
        return self.answers.make(request, connection, steps)


async def _turn(times: int) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


def test_what_is_made_in_one_turn_is_answered_at_once() -> None:
    work = Work()
    request = Command.request(208, opaque=7)

    def steps() -> Steps:
        for _ in range(100):
            yield
        return request.reply(body=b"made")

    answer = work.answers.make(request, FakeConnection(), steps())
    assert answer is not None
    assert answer.body == b"made"


def test_a_long_answer_is_made_turn_by_turn_and_sent_when_it_is_whole() -> None:
    async def scenario() -> None:
        work, connection = Work(), FakeConnection()
        assert work.begin(connection, count=3) is None
        assert work.done == ["a"]
        await _turn(1)
        assert work.done == ["a", "a"]
        assert connection.sent == []
        await _turn(2)
        (answer,) = connection.take_sent()
        assert (answer.opaque, answer.code, answer.body) == (7, ResponseCode.SUCCESS, b"made")

    asyncio.run(scenario())


def test_long_answers_take_turns() -> None:
    async def scenario() -> None:
        work, connection = Work(), FakeConnection()
        work.begin(connection, "a", 3, opaque=1)
        work.begin(connection, "b", 2, opaque=2)
        # Who comes while another one is at it queues up, however little it wants.
        assert work.done == ["a"]
        await _turn(8)
        assert work.done == ["a", "a", "b", "a", "b"]
        assert [answer.opaque for answer in connection.take_sent()] == [1, 2]
        # Those are done: the next one finds somebody to wake it up.
        work.begin(connection, "c", 2, opaque=3)
        await _turn(4)
        assert [answer.opaque for answer in connection.take_sent()] == [3]

    asyncio.run(scenario())


def test_nobody_works_for_who_has_gone_or_wants_no_answer() -> None:
    async def scenario() -> None:
        work, connection = Work(), FakeConnection()
        work.begin(connection)
        connection.close("it left")
        request = Command.request(208, is_one_way=True)
        assert work.answers.make(request, FakeConnection(), work.steps(request, "b", 3)) is None
        await _turn(5)
        assert work.done == ["a"]

    asyncio.run(scenario())


def test_too_many_long_answers_are_refused() -> None:
    async def scenario() -> None:
        work, connection = Work(), FakeConnection()
        for _ in range(64):
            work.begin(connection)
        with pytest.raises(ResponseError) as refused:
            work.begin(connection)
        assert refused.value.code == ResponseCode.SYSTEM_BUSY
        await _turn(300)
        assert len(connection.take_sent()) == 64

    asyncio.run(scenario())


def test_what_goes_wrong_later_is_answered_too(caplog: pytest.LogCaptureFixture) -> None:
    def refuse() -> bytes:
        raise ResponseError(ResponseCode.TOPIC_NOT_EXIST, "gone meanwhile")

    def fail() -> bytes:
        raise ZeroDivisionError

    async def scenario() -> None:
        work, connection = Work(), FakeConnection()
        work.begin(connection, opaque=1, finish=refuse)
        work.begin(connection, opaque=2, finish=fail)
        work.begin(connection, opaque=3, finish=lambda: bytes(MAX_FRAME_BYTES))
        work.begin(connection, opaque=4)
        await _turn(20)
        codes = {answer.opaque: answer.code for answer in connection.take_sent()}
        assert codes == {
            1: ResponseCode.TOPIC_NOT_EXIST,
            2: ResponseCode.SYSTEM_ERROR,
            3: ResponseCode.SYSTEM_ERROR,
            4: ResponseCode.SUCCESS,
        }

    with caplog.at_level(logging.ERROR):
        asyncio.run(scenario())
    assert "late answer failed" in caplog.text


def test_a_question_that_waits_keeps_no_more_of_its_request_than_an_answer_needs() -> None:
    async def scenario() -> None:
        work, connection = Work(), FakeConnection()
        request = Command.request(208, ext={"topic": "T" * 1000}, body=b"x" * 1000, opaque=7)
        steps = work.steps(request.without_content(), "a", 3)
        assert work.answers.make(request, connection, steps) is None
        (waiting,) = work.answers._unfinished
        assert (waiting.request.ext, bytes(waiting.request.body)) == ({}, b"")
        await _turn(5)
        (answer,) = connection.take_sent()
        assert answer.opaque == 7

    asyncio.run(scenario())
