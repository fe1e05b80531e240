"""A fetch goes to the one replica that may be read: to another at once, and back to the master."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tanist.client.errors import NoRoute, ReplicaBehind
from tanist.client.pulling.fetched import Fetched
from tanist.client.pulling.fetching import Fetcher
from tanist.client.session.session import Session
from tanist.errors import ConnectionLost, RemoteProtocolError, ResponseError
from tanist.model.subscription import subscribe
from tanist.protocol.codes import ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.pull import PullSysFlag
from tanist.protocol.response_errors import BrokerBusy, NoPermission, SubscriptionUnknown
from tanist.remoting import Connection
from tests.support.received import QUEUE, at, records
from tests.support.remoting import in_time
from tests.support.replicas import (
    Replicas,
    found,
    hanging_up,
    moved,
    refusing,
    replicas_of,
    suggesting,
)
from tests.support.requests import GROUP
from tests.support.sessions import open_session

EVERYTHING = subscribe(QUEUE.topic, "*", sub_version=7)
COMMIT = PullSysFlag.COMMIT_OFFSET
Scenario = Callable[[Replicas, "Reading"], Awaitable[None]]


class Reading:
    """Fetches one message after the other."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.fetcher = Fetcher(session, GROUP)
        self.offset = at(0)

    async def fetch(self) -> Fetched:
        fetched = await in_time(
            self.fetcher.fetch(
                QUEUE, self.offset, subscription=EVERYTHING, suspend_s=8.0, consumer_offset=self.offset
            )
        )
        self.offset = fetched.next_offset
        return fetched

    async def replica(self) -> int:
        """Which replica the next fetch was answered by."""
        return (await self.fetch()).broker_id

    async def hear_of(self, replicas: Replicas, *broker_ids: int) -> None:
        """Let the route change."""
        replicas.named = set(broker_ids)
        await self.session.routes.ask(QUEUE.topic)


def read(scenario: Scenario, *, count: int = 2) -> None:
    async def run() -> None:
        async with replicas_of(count) as replicas, open_session(replicas.namesrv) as session:
            await scenario(replicas, Reading(session))

    asyncio.run(run())


def test_the_master_is_read_and_told_how_far_the_group_is() -> None:
    async def scenario(replicas: Replicas, reading: Reading) -> None:
        assert [await reading.replica() for _ in range(3)] == [0, 0, 0]
        assert replicas.pull_counts == [3, 0]
        pull = replicas[0].pulls[2]
        assert pull.sys_flag == COMMIT | PullSysFlag.SUSPEND
        assert (pull.queue_offset, pull.consumer_offset) == (2, 2)
        assert (pull.sub_version, pull.subscription, pull.expression_type) == (7, None, "TAG")
        assert (pull.suspend_timeout_ms, pull.max_message_count) == (8000, 32)

    read(scenario)


def test_a_suggestion_is_followed_and_a_slave_is_not_told_offsets() -> None:
    async def scenario(replicas: Replicas, reading: Reading) -> None:
        replicas[0].reply = suggesting(1)
        assert [await reading.replica() for _ in range(3)] == [0, 1, 0]
        assert replicas[1].pulls[0].sys_flag == PullSysFlag.SUSPEND
        assert replicas[0].pulls[0].suspend_timeout_ms == 8000
        # So that the master is read soon after it is back.
        assert replicas[1].pulls[0].suspend_timeout_ms == 5000

    read(scenario)


def test_a_refusal_that_names_a_replica_is_followed_at_once_there_and_back() -> None:
    async def scenario(replicas: Replicas, reading: Reading) -> None:
        replicas[0].reply = refusing(suggested=1)
        replicas[1].reply = suggesting(1)
        assert [await reading.replica() for _ in range(3)] == [1, 1, 1]
        assert replicas.pull_counts == [1, 3]
        replicas[0].reply, replicas[1].reply = suggesting(0), refusing(suggested=0)
        assert [await reading.replica() for _ in range(3)] == [0, 0, 0]
        assert replicas.pull_counts == [4, 4]

    read(scenario)


@pytest.mark.parametrize("code", [ResponseCode.SYSTEM_ERROR, ResponseCode.SUBSCRIPTION_NOT_EXIST])
def test_whatever_the_code_a_refusal_that_names_a_replica_is_followed(code: ResponseCode) -> None:
    async def scenario(replicas: Replicas, reading: Reading) -> None:
        replicas[0].reply = refusing(code, suggested=1)
        assert await reading.replica() == 1

    read(scenario)


def test_replicas_that_name_each_other_are_asked_once_each() -> None:
    async def scenario(replicas: Replicas, reading: Reading) -> None:
        replicas[0].reply = refusing(suggested=1)
        replicas[1].reply = refusing(suggested=0)
        with pytest.raises(NoPermission, match="not here"):
            await reading.fetch()
        assert replicas.pull_counts == [1, 1]

    read(scenario)


def test_a_master_that_stops_is_passed_over_for_its_slave_at_once() -> None:
    async def scenario(replicas: Replicas, reading: Reading) -> None:
        assert await reading.replica() == 0
        await replicas.stop(0)
        assert [await reading.replica() for _ in range(3)] == [1, 1, 1]
        assert reading.offset == 4

    read(scenario)


def test_a_pull_whose_connection_is_lost_is_answered_by_the_next_replica() -> None:
    async def scenario(replicas: Replicas, reading: Reading) -> None:
        replicas[0].reply = hanging_up
        assert await reading.replica() == 1
        # Although the slave suggests its master: that one rests for a moment.
        assert await reading.replica() == 1
        assert replicas.pull_counts == [1, 2]

    read(scenario)


def test_without_a_master_in_the_route_a_slave_is_read_until_it_is_back() -> None:
    async def scenario(replicas: Replicas, reading: Reading) -> None:
        await reading.hear_of(replicas, 1)
        replicas[1].reply = suggesting(1)
        assert [await reading.replica() for _ in range(2)] == [1, 1]
        await reading.hear_of(replicas, 0, 1)
        assert [await reading.replica() for _ in range(2)] == [0, 0]
        assert replicas.pull_counts == [2, 2]

    read(scenario)


def test_a_slave_that_has_less_than_was_read_does_not_send_the_group_back() -> None:
    async def scenario(replicas: Replicas, reading: Reading) -> None:
        reading.offset = at(100)
        replicas[0].reply = hanging_up
        replicas[1].reply = lambda pull, _connection: moved(pull, 90)
        with pytest.raises(ReplicaBehind, match=r"before 100"):
            await reading.fetch()
        replicas[0].reply = suggesting(0)
        fetched = await reading.fetch()
        assert (fetched.broker_id, fetched.next_offset) == (0, 101)

    read(scenario)


def test_a_slave_that_has_lost_its_first_messages_sends_the_group_on() -> None:
    async def scenario(replicas: Replicas, reading: Reading) -> None:
        await reading.hear_of(replicas, 1)
        replicas[1].reply = lambda pull, _connection: moved(pull, 50)
        assert (await reading.fetch()).next_offset == 50

    read(scenario)


def test_a_refusal_that_its_slaves_would_share_is_raised_and_the_master_stays() -> None:
    async def scenario(replicas: Replicas, reading: Reading) -> None:
        replicas[0].reply = refusing(ResponseCode.SUBSCRIPTION_NOT_EXIST)
        with pytest.raises(SubscriptionUnknown):
            await reading.fetch()
        replicas[0].reply = suggesting(0)
        assert await reading.replica() == 0
        assert replicas.pull_counts == [2, 0]

    read(scenario)


@pytest.mark.parametrize(
    ("code", "error"), [(ResponseCode.NO_PERMISSION, NoPermission), (ResponseCode.SYSTEM_BUSY, BrokerBusy)]
)
def test_the_only_replica_is_asked_again_although_it_refused(
    code: ResponseCode, error: type[ResponseError]
) -> None:
    async def scenario(replicas: Replicas, reading: Reading) -> None:
        replicas[0].reply = refusing(code)
        for _ in range(2):
            with pytest.raises(error):
                await reading.fetch()
        replicas[0].reply = suggesting(0)
        assert await reading.replica() == 0

    read(scenario, count=1)


def test_if_all_replicas_are_lost_the_last_error_is_raised_and_all_are_tried_again() -> None:
    async def scenario(replicas: Replicas, reading: Reading) -> None:
        replicas[0].reply = replicas[1].reply = hanging_up
        with pytest.raises(ConnectionLost):
            await reading.fetch()
        replicas[1].reply = suggesting(0)
        assert await reading.replica() == 1
        assert replicas.pull_counts[0] <= 2

    read(scenario)


def test_a_broker_that_the_route_does_not_name_is_told_so() -> None:
    async def scenario(replicas: Replicas, reading: Reading) -> None:
        await reading.hear_of(replicas)
        with pytest.raises(NoRoute, match="no replica of broker broker-a"):
            await reading.fetch()

    read(scenario)


def test_an_answer_that_can_not_be_read_is_raised_and_not_passed_over() -> None:
    async def scenario(replicas: Replicas, reading: Reading) -> None:
        def spoilt(pull: Command, _connection: Connection) -> Command:
            answer = found(pull)
            answer.body = records([0])[:-1]
            return answer

        replicas[0].reply = spoilt
        with pytest.raises(RemoteProtocolError):
            await reading.fetch()
        assert replicas.pull_counts == [1, 0]

    read(scenario)


def test_a_fetch_that_is_cancelled_leaves_the_choice_as_it_was() -> None:
    async def scenario(replicas: Replicas, reading: Reading) -> None:
        replicas[0].reply = lambda _pull, _connection: None
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await reading.fetch()
        replicas[0].reply = suggesting(0)
        assert await reading.replica() == 0

    read(scenario)


def test_a_queue_that_was_forgotten_is_read_from_its_master_again() -> None:
    async def scenario(replicas: Replicas, reading: Reading) -> None:
        replicas[0].reply = suggesting(1)
        replicas[1].reply = suggesting(1)
        assert [await reading.replica() for _ in range(2)] == [0, 1]
        reading.fetcher.forget(QUEUE)
        assert await reading.replica() == 0

    read(scenario)
