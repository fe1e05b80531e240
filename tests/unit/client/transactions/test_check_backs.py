"""Questions about transactions, and who answers them how."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tanist.client.received import ReceivedMessage
from tanist.client.session.tasks import OwnedTasks
from tanist.client.session.wire import Wire
from tanist.client.settings import Credentials, make_settings
from tanist.client.transactions import check_backs
from tanist.client.transactions.check_backs import MAX_AT_ONCE, CheckBacks, OnCheck
from tanist.client.transactions.transaction_ends import Outcome, Question
from tests.support.conditions import turns, until
from tests.support.fake_connection import FakeConnection
from tests.support.questions import question

GROUP = "P"


@asynccontextmanager
async def asked_of(
    on_check: OnCheck | None,
    *,
    is_running: Callable[[Question], bool] = lambda _: False,
    credentials: Credentials | None = None,
) -> AsyncGenerator[tuple[CheckBacks, FakeConnection]]:
    """The check-backs of one producer, and the connection on which a broker asks."""
    tasks = OwnedTasks()
    settings = make_settings(
        namesrv="127.0.0.1:1", credentials=credentials, tls=None, timeout_s=3, instance=None
    )
    wire = Wire(settings, {}, on_connect=lambda _: None, on_disconnect=lambda _: None)
    try:
        yield (
            CheckBacks(wire, tasks, group=GROUP, on_check=on_check, is_running=is_running),
            FakeConnection(),
        )
    finally:
        await tasks.close()
        await wire.close()


def outcomes(connection: FakeConnection) -> dict[str, int]:
    """The outcomes that the broker was told, by transaction."""
    return {command.ext["transactionId"]: int(command.ext["commitOrRollback"]) for command in connection.sent}


@pytest.mark.parametrize("outcome", Outcome)
def test_a_broker_is_told_what_on_check_says(outcome: Outcome) -> None:
    async def scenario() -> None:
        seen: list[ReceivedMessage] = []

        async def on_check(message: ReceivedMessage) -> Outcome:
            seen.append(message)
            return outcome

        async with asked_of(on_check) as (checks, connection):
            assert checks.handle(question(b"paid"), connection) is None
            await until(lambda: bool(connection.sent))
        assert [message.body for message in seen] == [b"paid"]
        assert outcomes(connection) == {"unique-1": outcome.value}
        assert connection.sent[0].is_one_way

    asyncio.run(scenario())


def test_an_answer_is_signed_where_there_are_credentials() -> None:
    async def scenario() -> None:
        async def on_check(_: ReceivedMessage) -> Outcome:
            return Outcome.COMMIT

        credentials = Credentials("reader", "secret")
        async with asked_of(on_check, credentials=credentials) as (checks, connection):
            checks.handle(question(), connection)
            await until(lambda: bool(connection.sent))
        assert connection.sent[0].ext["AccessKey"] == "reader"
        assert connection.sent[0].ext["Signature"]

    asyncio.run(scenario())


def test_nobody_is_asked_while_the_block_of_the_transaction_runs() -> None:
    async def scenario() -> None:
        async def on_check(_: ReceivedMessage) -> Outcome:
            raise AssertionError

        async with asked_of(on_check, is_running=lambda asked: asked.transaction_id == "unique-1") as (
            checks,
            connection,
        ):
            checks.handle(question(), connection)
            assert outcomes(connection) == {"unique-1": Outcome.UNKNOWN.value}

    asyncio.run(scenario())


@pytest.mark.parametrize("returned", [None, "COMMIT", 8, True])
def test_whatever_is_no_outcome_is_unknown(returned: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async def on_check(_: ReceivedMessage) -> Outcome:
            return returned

        async with asked_of(on_check) as (checks, connection):
            checks.handle(question(), connection)
            await until(lambda: bool(connection.sent))
        assert outcomes(connection) == {"unique-1": Outcome.UNKNOWN.value}

    asyncio.run(scenario())
    assert "on_check returned no Outcome transaction=unique-1" in caplog.text


def test_an_on_check_that_fails_does_not_know(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async def on_check(_: ReceivedMessage) -> Outcome:
            raise OSError("no database")

        async with asked_of(on_check) as (checks, connection):
            checks.handle(question(), connection)
            await until(lambda: bool(connection.sent))
        assert outcomes(connection) == {"unique-1": Outcome.UNKNOWN.value}

    asyncio.run(scenario())
    assert "on_check failed transaction=unique-1" in caplog.text
    assert "no database" in caplog.text


def test_an_on_check_that_takes_too_long_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_backs, "MAX_CHECK_S", 0.01)

    async def scenario() -> None:
        async def on_check(_: ReceivedMessage) -> Outcome:
            await asyncio.Event().wait()
            raise AssertionError

        async with asked_of(on_check) as (checks, connection):
            checks.handle(question(), connection)
            await until(lambda: bool(connection.sent))
        assert outcomes(connection) == {"unique-1": Outcome.UNKNOWN.value}

    asyncio.run(scenario())


def test_a_producer_without_on_check_or_of_another_group_says_nothing() -> None:
    async def scenario() -> None:
        async with asked_of(None) as (checks, connection):
            checks.handle(question(), connection)
            await turns()
            assert not connection.sent

        async def on_check(_: ReceivedMessage) -> Outcome:
            raise AssertionError

        async with asked_of(on_check) as (checks, connection):
            checks.handle(question(group="another"), connection)
            await turns()
            assert not connection.sent

    asyncio.run(scenario())


def test_few_are_checked_at_once_and_all_in_the_end() -> None:
    async def scenario() -> None:
        running, most = 0, 0
        is_free = asyncio.Event()

        async def on_check(_: ReceivedMessage) -> Outcome:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await is_free.wait()
            running -= 1
            return Outcome.COMMIT

        async with asked_of(on_check) as (checks, connection):
            for n in range(3 * MAX_AT_ONCE):
                checks.handle(question(unique_id=f"unique-{n}"), connection)
            await until(lambda: running == MAX_AT_ONCE)
            await turns()
            is_free.set()
            await until(lambda: len(connection.sent) == 3 * MAX_AT_ONCE)
        assert most == MAX_AT_ONCE
        assert len(outcomes(connection)) == 3 * MAX_AT_ONCE

    asyncio.run(scenario())


def test_a_transaction_is_checked_once_at_a_time_and_again_when_asked_again() -> None:
    async def scenario() -> None:
        count = 0
        is_free = asyncio.Event()

        async def on_check(_: ReceivedMessage) -> Outcome:
            nonlocal count
            count += 1
            await is_free.wait()
            return Outcome.UNKNOWN

        async with asked_of(on_check) as (checks, connection):
            checks.handle(question(), connection)
            checks.handle(question(), connection)
            await turns()
            assert count == 1
            is_free.set()
            await until(lambda: len(connection.sent) == 1)
            await turns()
            checks.handle(question(), connection)
            await until(lambda: len(connection.sent) == 2)
            assert count == 2

    asyncio.run(scenario())


def test_questions_beyond_the_bound_are_dropped(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(check_backs, "MAX_WAITING", 2)

    async def scenario() -> None:
        asked: list[str] = []

        async def on_check(message: ReceivedMessage) -> Outcome:
            asked.append(message.message_id)
            await asyncio.Event().wait()
            raise AssertionError

        async with asked_of(on_check) as (checks, connection):
            for n in range(3):
                checks.handle(question(unique_id=f"unique-{n}"), connection)
            await until(lambda: len(asked) == 2)
            await turns()
            assert asked == ["unique-0", "unique-1"]

    asyncio.run(scenario())
    assert "question about a transaction dropped transaction=unique-2" in caplog.text
