"""Who of a group is read: asked at once, and waited for."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from tanist.broker.handlers.standing import MAX_WAITING_PER_CONNECTION, StandingHandler
from tanist.broker.settings import BrokerRole, BrokerSettings
from tanist.broker.slave_consume.permitted import Permitted
from tanist.errors import ResponseError
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.reading import ReadStandingRequest, ReadStandingResponse
from tests.support.broker_tables import SETTINGS, open_state
from tests.support.conditions import until
from tests.support.fake_connection import FakeConnection
from tests.support.read_rights import (
    NOBODY_KNOWN,
    OTHER,
    OTHER_IS_READ,
    OWN,
    SLAVE_IS_READ,
    GivenRight,
)

SLAVE = msgspec.structs.replace(SETTINGS, broker_role=BrokerRole.SLAVE, broker_id=1)
LONG_MS = 10_000


class _Desk:
    def __init__(self, root: Path, settings: BrokerSettings, right: GivenRight | None) -> None:
        self.state = open_state(root, settings)
        self.state.read_right = right
        self.handler = StandingHandler(self.state)
        if right is not None:
            right.listeners.append(self.handler.on_permitted)
        self.connection = FakeConnection()

    def ask(self, wait_ms: int = 0, *, known_reader: str | None = None) -> ReadStandingResponse | None:
        header = ReadStandingRequest(wait_ms=wait_ms, known_reader=known_reader)
        request = Command.request(RequestCode.GET_READ_STANDING, header, opaque=9)
        answer = self.handler.routes()[request.code](request, self.connection)
        if answer is None:
            return None
        assert isinstance(answer, Command)
        return answer.header(ReadStandingResponse)

    def late(self) -> list[ReadStandingResponse]:
        return [answer.header(ReadStandingResponse) for answer in self.connection.take_sent()]


def run(
    root: Path,
    scenario: Callable[[_Desk], Awaitable[None]],
    right: GivenRight | None = None,
    *,
    settings: BrokerSettings = SETTINGS,
) -> None:
    async def with_desk() -> None:
        desk = _Desk(root, settings, right)
        try:
            await scenario(desk)
        finally:
            desk.handler.close()
            desk.state.store.close()

    asyncio.run(with_desk())


def test_a_broker_tells_what_it_may_do_and_who_is_read(tmp_path: Path) -> None:
    async def scenario(desk: _Desk) -> None:
        assert desk.ask() == ReadStandingResponse(
            permission="NONE",
            is_coordinated=True,
            reader_address=OTHER,
            read_term=2,
            reason="another one is read",
        )

    run(tmp_path, scenario, GivenRight(OTHER_IS_READ))


@pytest.mark.parametrize(
    ("settings", "permission"),
    [
        (SETTINGS, "FULL"),
        (msgspec.structs.replace(SETTINGS, broker_permission=2), "WRITE"),
        (SLAVE, "NONE"),
        (msgspec.structs.replace(SLAVE, slave_read_enable=True), "READ"),
    ],
)
def test_without_a_coordinator_the_settings_tell_and_nobody_waits(
    tmp_path: Path, settings: BrokerSettings, permission: str
) -> None:
    async def scenario(desk: _Desk) -> None:
        answer = desk.ask(LONG_MS)
        assert answer is not None
        assert (answer.permission, answer.is_coordinated) == (permission, False)
        assert answer.reader_address == (None if settings.is_slave else settings.address)

    run(tmp_path, scenario, settings=settings)


@pytest.mark.parametrize("found", [SLAVE_IS_READ, OTHER_IS_READ])
def test_whoever_waits_is_told_at_once_that_somebody_is_read(tmp_path: Path, found: Permitted) -> None:
    async def scenario(desk: _Desk) -> None:
        assert desk.ask(LONG_MS) is None
        right.give(NOBODY_KNOWN._replace(reason="still"))
        assert desk.late() == []
        right.give(found)
        (answer,) = desk.late()
        assert answer.reader_address == found.reader
        assert desk.ask(LONG_MS) == answer

    right = GivenRight(NOBODY_KNOWN)
    run(tmp_path, scenario, right)


def test_that_a_lost_broker_is_to_be_read_is_no_news(tmp_path: Path) -> None:
    async def scenario(desk: _Desk) -> None:
        assert desk.ask(LONG_MS, known_reader=OTHER) is None
        right.give(OTHER_IS_READ._replace(term=3))
        assert desk.late() == []
        right.give(SLAVE_IS_READ)
        (answer,) = desk.late()
        assert (answer.permission, answer.reader_address) == ("READ", OWN)

    right = GivenRight(OTHER_IS_READ)
    run(tmp_path, scenario, right)


def test_when_its_time_is_over_a_question_is_answered_as_things_are(tmp_path: Path) -> None:
    async def scenario(desk: _Desk) -> None:
        assert desk.ask(1) is None
        await until(lambda: len(desk.connection.sent) == 1)
        (answer,) = desk.late()
        assert (answer.permission, answer.reader_address) == ("NONE", None)

    run(tmp_path, scenario, GivenRight(NOBODY_KNOWN))


def test_nobody_is_left_waiting_when_the_broker_stops(tmp_path: Path) -> None:
    async def scenario(desk: _Desk) -> None:
        assert desk.ask(LONG_MS) is None
        desk.handler.close()
        assert len(desk.late()) == 1

    run(tmp_path, scenario, GivenRight(NOBODY_KNOWN))


def test_only_so_many_questions_wait_on_one_connection(tmp_path: Path) -> None:
    async def scenario(desk: _Desk) -> None:
        for _ in range(MAX_WAITING_PER_CONNECTION):
            assert desk.ask(LONG_MS) is None
        with pytest.raises(ResponseError) as refusal:
            desk.ask(LONG_MS)
        assert refusal.value.code == ResponseCode.SYSTEM_BUSY
        desk.handler.on_lost(desk.connection)
        assert desk.ask(LONG_MS) is None

    run(tmp_path, scenario, GivenRight(NOBODY_KNOWN))


@pytest.mark.parametrize("wait_ms", [-1, 10_001])
def test_a_time_out_of_bounds_is_refused(tmp_path: Path, wait_ms: int) -> None:
    async def scenario(desk: _Desk) -> None:
        with pytest.raises(ResponseError, match="waitMillis") as refusal:
            desk.ask(wait_ms)
        assert refusal.value.code == ResponseCode.INVALID_PARAMETER

    run(tmp_path, scenario)
