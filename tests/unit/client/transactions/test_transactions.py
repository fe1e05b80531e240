"""How a transaction's block begins and ends, whatever its broker says."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tanist.client.errors import CommitInDoubt, NoRoute, TransactionNotBegun
from tanist.client.message import Message, Receipt, SendStatus
from tanist.client.received import ReceivedMessage
from tanist.client.session.tasks import OwnedTasks
from tanist.client.transactions.transaction_ends import Outcome
from tanist.client.transactions.transactions import Transactions
from tanist.errors import ConnectFailed, ConnectionLost, MQError, RemoteProtocolError, RequestTimeout
from tanist.model.host import pack_host
from tanist.model.message import SysFlag
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.protocol import Command
from tanist.protocol.message_id import encode_offset_id
from tanist.protocol.response_errors import (
    BrokerBusy,
    BrokerFailed,
    BrokerLeaving,
    FlowControlled,
    IllegalOperation,
    NotMaster,
)
from tests.support.conditions import until
from tests.support.fake_connection import FakeConnection
from tests.support.questions import question

ADDRESS = "10.0.0.7:10911"
ORDER = Message("Orders", b"paid")
REFUSED = ConnectFailed(ADDRESS, "refused")


async def commit_all(_: ReceivedMessage) -> Outcome:
    return Outcome.COMMIT


class FakeSender:
    """Stores every message as it is told to."""

    def __init__(self, *, status: SendStatus = SendStatus.OK, offset_id: str | None = None) -> None:
        self._status = status
        self._offset_id = offset_id or encode_offset_id(pack_host("10.0.0.7", 10911), 4096)
        self.sent: list[dict[str, Any]] = []

    async def send(self, message: Message, **options: Any) -> Receipt:
        self.sent.append({"message": message, **options})
        return Receipt(
            message_id="unique-1",
            offset_id=self._offset_id,
            queue=MessageQueue(topic=message.topic, broker_name="broker-a", queue_id=3),
            queue_offset=QueueOffset(17),
            status=self._status,
        )


class FakeWire:
    """Keeps what a broker is asked and told. It answers with these errors in turn, and then with success."""

    def __init__(self, *failures: MQError) -> None:
        self._failures = list(failures)
        self.asked: list[Command] = []
        self.told: list[Command] = []

    async def ask(self, address: str, command: Command, *, timeout_s: float) -> Command:
        assert address == ADDRESS
        assert timeout_s >= 0
        self.asked.append(command)
        if self._failures:
            raise self._failures.pop(0)
        return command.reply()

    def tell(self, address: str, command: Command) -> None:
        assert address == ADDRESS
        self.told.append(command)

    def answer_later(self, connection: FakeConnection, command: Command) -> None:
        connection.send(command)


def transactions(
    sender: FakeSender, wire: FakeWire, *, master: str | None = ADDRESS, timeout_s: float = 5.0
) -> Transactions:
    session: Any = SimpleNamespace(
        wire=wire,
        tasks=OwnedTasks(),
        settings=SimpleNamespace(timeout_s=timeout_s),
        routes=SimpleNamespace(
            table=SimpleNamespace(master_of={"broker-a": master}.get),
            seek_master=list[str]().append,
            changed=asyncio.sleep,
        ),
    )
    given: Any = sender
    return Transactions(session, given, group="P", on_check=commit_all)


def outcomes(commands: list[Command]) -> list[int]:
    return [int(command.ext["commitOrRollback"]) for command in commands]


COMMIT, ROLLBACK = Outcome.COMMIT.value, Outcome.ROLLBACK.value


def test_a_half_says_that_it_is_one_and_whose() -> None:
    async def scenario() -> None:
        sender, wire = FakeSender(), FakeWire()
        async with transactions(sender, wire).begin(ORDER):
            assert wire.asked == []
        assert sender.sent == [
            {
                "message": ORDER,
                "extra": {"TRAN_MSG": "true", "PGROUP": "P"},
                "sys_flag": int(SysFlag.PREPARED),
            }
        ]
        assert outcomes(wire.asked) == [COMMIT]
        assert wire.told == []

    asyncio.run(scenario())


@pytest.mark.parametrize("status", [status for status in SendStatus if status is not SendStatus.OK])
def test_a_half_that_is_not_safe_is_rolled_back_and_its_block_does_not_run(status: SendStatus) -> None:
    async def scenario() -> None:
        wire = FakeWire()
        with pytest.raises(TransactionNotBegun, match=status.value) as failed:
            async with transactions(FakeSender(status=status), wire).begin(ORDER):
                pytest.fail("the block ran")
        assert (failed.value.topic, failed.value.broker_name) == ("Orders", "broker-a")
        assert outcomes(wire.told) == [ROLLBACK]
        assert wire.asked == []

    asyncio.run(scenario())


def test_a_half_whose_place_is_not_known_begins_nothing() -> None:
    async def scenario() -> None:
        with pytest.raises(RemoteProtocolError):
            async with transactions(FakeSender(offset_id="nowhere"), FakeWire()).begin(ORDER):
                pytest.fail("the block ran")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "error",
    [
        ConnectFailed(ADDRESS, "refused"),
        BrokerBusy(2, "later"),
        NotMaster(11, "a slave", master_address=None),
        BrokerLeaving(1500, "go away"),
        FlowControlled(215, "later"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_commit_that_surely_did_nothing_is_tried_again(error: MQError) -> None:
    async def scenario() -> None:
        wire = FakeWire(error, error)
        async with transactions(FakeSender(), wire).begin(ORDER):
            pass
        assert outcomes(wire.asked) == [COMMIT] * 3

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "error",
    [
        RequestTimeout(ADDRESS, 37, 3.0),
        ConnectionLost(ADDRESS, "reset"),
        BrokerFailed(1, "no such half"),
        IllegalOperation(604, "wait for the check"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_commit_that_may_have_arrived_is_not_repeated(error: MQError) -> None:
    async def scenario() -> None:
        wire = FakeWire(error)
        with pytest.raises(CommitInDoubt, match="will ask on_check") as doubt:
            async with transactions(FakeSender(), wire).begin(ORDER):
                pass
        assert doubt.value.__cause__ is error
        assert doubt.value.transaction_id == "unique-1"
        assert (outcomes(wire.asked), wire.told) == ([COMMIT], [])

    asyncio.run(scenario())


def test_a_commit_is_given_up_when_its_time_is_over() -> None:
    async def scenario() -> None:
        with pytest.raises(CommitInDoubt) as doubt:
            async with transactions(FakeSender(), FakeWire(*[REFUSED] * 99), timeout_s=0.3).begin(ORDER):
                pass
        assert doubt.value.__cause__ is REFUSED

    asyncio.run(scenario())


def test_a_broker_without_a_master_leaves_a_commit_in_doubt_and_spoils_no_error_of_the_block() -> None:
    async def scenario() -> None:
        with pytest.raises(CommitInDoubt) as doubt:
            async with transactions(FakeSender(), FakeWire(), master=None, timeout_s=0.1).begin(ORDER):
                pass
        assert isinstance(doubt.value.__cause__, NoRoute)
        with pytest.raises(ZeroDivisionError):
            async with transactions(FakeSender(), FakeWire(), master=None).begin(ORDER):
                raise ZeroDivisionError

    asyncio.run(scenario())


@pytest.mark.parametrize("is_failing", [False, True])
def test_a_block_that_a_broker_asks_about_ends_the_copy_that_was_asked_about(is_failing: bool) -> None:
    async def scenario() -> None:
        wire, connection = FakeWire(), FakeConnection()
        blocks = transactions(FakeSender(), wire)

        async def transact() -> None:
            async with blocks.begin(ORDER):
                for log_offset in (8192, 12288):
                    asked = question(queue_offset=20, log_offset=log_offset)
                    blocks.check_backs.handle(asked, connection)
                if is_failing:
                    raise ZeroDivisionError

        if is_failing:
            with pytest.raises(ZeroDivisionError):
                await transact()
        else:
            await transact()
        assert outcomes(connection.sent) == [Outcome.UNKNOWN.value] * 2
        (end,) = wire.told if is_failing else wire.asked
        assert outcomes([end]) == [ROLLBACK if is_failing else COMMIT]
        assert (end.ext["commitLogOffset"], end.ext["tranStateTableOffset"]) == ("12288", "20")
        assert end.ext["fromTransactionCheck"] == "true"

    asyncio.run(scenario())


def test_a_question_after_the_block_goes_to_on_check() -> None:
    async def scenario() -> None:
        connection = FakeConnection()
        blocks = transactions(FakeSender(), FakeWire(RequestTimeout(ADDRESS, 37, 3.0)))
        with pytest.raises(CommitInDoubt):
            async with blocks.begin(ORDER):
                pass
        blocks.check_backs.handle(question(), connection)
        await until(lambda: bool(connection.sent))
        assert outcomes(connection.sent) == [COMMIT]

    asyncio.run(scenario())
