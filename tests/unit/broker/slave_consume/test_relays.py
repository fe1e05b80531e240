"""What stock consumers ask of a broker that is not read, and who answers."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tanist.broker.slave_consume import relay, relays
from tanist.errors import ResponseError
from tanist.model.groups import ConsumeFromWhere, ConsumeType, MessageModel
from tanist.model.reading import FULL, NONE
from tanist.model.subscription import subscribe
from tanist.protocol.bodies.client import ConsumerData, HeartbeatData
from tanist.protocol.codes import Language, RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.common import ConsumerGroupRequest
from tanist.protocol.headers.pull import PullMessageRequest
from tanist.protocol.headers.reading import ReadStandingRequest
from tests.support.conditions import turns, until
from tests.support.fake_connection import FakeConnection
from tests.support.read_rights import NOBODY_KNOWN, OTHER, OTHER_IS_READ, OWN, SLAVE_IS_READ
from tests.support.relayed import RelayingBroker

QUERY = RequestCode.QUERY_CONSUMER_OFFSET
COMMIT = RequestCode.UPDATE_CONSUMER_OFFSET
PULL = PullMessageRequest(
    consumer_group="billing",
    topic="Orders",
    queue_id=0,
    queue_offset=42,  # pyright: ignore[reportArgumentType]
    max_message_count=32,
    sys_flag=0,
    consumer_offset=0,  # pyright: ignore[reportArgumentType]
    suspend_timeout_ms=15_000,
    sub_version=1,
)
HEARTBEAT = HeartbeatData(
    client_id="10.0.0.9@1",
    consumer_data_set=[
        ConsumerData(
            group_name="billing",
            consume_type=ConsumeType.PASSIVELY,
            message_model=MessageModel.CLUSTERING,
            consume_from_where=ConsumeFromWhere.LAST_OFFSET,
            subscription_data_set=[subscribe("Orders", "*", sub_version=1)],
        )
    ],
)


def run(scenario: Callable[[RelayingBroker], Awaitable[None]]) -> None:
    async def with_broker() -> None:
        broker = RelayingBroker()
        try:
            await scenario(broker)
        finally:
            await broker.relays.close()

    asyncio.run(with_broker())


async def opened(broker: RelayingBroker) -> None:
    """Ask something, and have the other broker answer that it may be read."""
    assert broker.ask(COMMIT, is_one_way=True) is None
    await until(lambda: bool(broker.upstreams) and bool(broker.upstream.asked))
    broker.upstream.let_read(FULL)
    await until(lambda: COMMIT in [one.code for one in broker.upstream.take_sent()])


def test_the_other_broker_hears_that_a_broker_asks_then_the_heartbeat_and_then_all_that_waited() -> None:
    async def scenario(broker: RelayingBroker) -> None:
        broker.beat(HEARTBEAT)
        assert broker.ask(RequestCode.PULL_MESSAGE, PULL, opaque=5) is None
        assert broker.ask(QUERY, opaque=6) is None
        await until(lambda: bool(broker.upstreams) and bool(broker.upstream.asked))
        assert broker.upstream.target == OTHER
        question = broker.upstream.let_read(FULL)
        assert (question.relayed_for, question.known_reader) == (broker.client.peer, OWN)
        assert question.wait_ms > 0
        await until(lambda: len(broker.upstream.asked) == 3)
        assert broker.upstream.codes == [RequestCode.HEART_BEAT, RequestCode.PULL_MESSAGE, QUERY]
        assert broker.upstream.answer().language is Language.JAVA
        broker.upstream.answer(nextBeginOffset="43")
        broker.upstream.answer(ResponseCode.QUERY_NOT_FOUND)
        await turns()
        answers = [(one.code, one.opaque, one.ext) for one in broker.client.take_sent()]
        assert answers == [
            (ResponseCode.SUCCESS, 5, {"nextBeginOffset": "43"}),
            (ResponseCode.QUERY_NOT_FOUND, 6, {}),
        ]

    run(scenario)


@pytest.mark.parametrize("case", ["ours", "read here", "nobody known"])
def test_nothing_is_relayed_that_can_be_answered_here(case: str) -> None:
    async def scenario(broker: RelayingBroker) -> None:
        broker.right.found = {"read here": SLAVE_IS_READ, "nobody known": NOBODY_KNOWN}.get(
            case, OTHER_IS_READ
        )
        answer = broker.ask(QUERY, language=Language.PYTHON if case == "ours" else Language.JAVA)
        assert answer is not None
        assert answer.remark == "here"
        assert len(broker.relays) == 0

    run(scenario)


def test_what_comes_from_a_relay_is_never_relayed_again() -> None:
    async def scenario(broker: RelayingBroker) -> None:
        broker.ask(RequestCode.GET_READ_STANDING, ReadStandingRequest(relayed_for="10.0.0.7:1"))
        assert broker.relays.is_from_relay(broker.client)
        assert broker.ask(QUERY) is not None
        with pytest.raises(ResponseError, match="is not readable"):
            broker.beat(HEARTBEAT)
        assert len(broker.relays) == 0
        broker.relays.on_lost(broker.client)
        assert not broker.relays.is_from_relay(broker.client)

    run(scenario)


def test_a_heartbeat_alone_opens_no_relay_but_follows_one_that_is_used() -> None:
    async def scenario(broker: RelayingBroker) -> None:
        assert broker.beat(HEARTBEAT) is not None
        assert len(broker.relays) == 0
        await opened(broker)
        assert broker.beat(HEARTBEAT) is None
        # The one of before, and this one.
        assert broker.upstream.codes == [RequestCode.HEART_BEAT] * 2

    run(scenario)


def test_a_client_that_goes_by_its_new_route_is_relayed_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(broker: RelayingBroker) -> None:
        await opened(broker)
        monkeypatch.setattr(relays, "IDLE_S", -1.0)
        assert broker.beat(HEARTBEAT) is not None
        assert not broker.upstream.is_open
        assert len(broker.relays) == 0

    run(scenario)


@pytest.mark.parametrize("is_reachable", [True, False])
def test_what_waited_is_answered_here_when_the_other_broker_can_not_be_read(is_reachable: bool) -> None:
    async def scenario(broker: RelayingBroker) -> None:
        broker.is_reachable = is_reachable
        assert broker.ask(QUERY, opaque=5) is None
        if is_reachable:
            await until(lambda: bool(broker.upstreams) and bool(broker.upstream.asked))
            broker.upstream.let_read(NONE)
        await until(lambda: bool(broker.client.sent))
        (answer,) = broker.client.take_sent()
        assert (answer.opaque, answer.remark) == (5, "here")
        assert all(not upstream.is_open for upstream in broker.upstreams)
        # The next request tries again.
        assert broker.ask(QUERY) is None

    run(scenario)


def test_what_waited_is_answered_here_when_the_other_broker_makes_no_sense() -> None:
    async def scenario(broker: RelayingBroker) -> None:
        assert broker.ask(QUERY, opaque=5) is None
        await until(lambda: bool(broker.upstreams) and bool(broker.upstream.asked))
        broker.upstream.answer(permission="FULL", readTerm="first")
        await until(lambda: bool(broker.client.sent))
        (answer,) = broker.client.take_sent()
        assert (answer.opaque, answer.remark) == (5, "here")

    run(scenario)


def test_a_client_waits_only_so_long_for_the_other_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "OPEN_S", 0.01)

    async def scenario(broker: RelayingBroker) -> None:
        assert broker.ask(QUERY) is None
        await until(lambda: bool(broker.client.sent))
        assert broker.client.sent[0].remark == "here"
        assert not broker.upstream.is_open

    run(scenario)


def test_who_has_asked_for_too_much_meanwhile_is_answered_here() -> None:
    async def scenario(broker: RelayingBroker) -> None:
        assert broker.ask(QUERY) is None
        assert broker.ask(RequestCode.LOCK_BATCH_MQ, opaque=8, body=b"x" * (1 << 20)) is None
        (answer,) = broker.client.take_sent()
        assert (answer.opaque, answer.remark) == (8, "here")

    run(scenario)


def test_there_are_only_so_many_relays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relays, "MAX_RELAYS", 2)

    async def scenario(broker: RelayingBroker) -> None:
        others = [FakeConnection(), FakeConnection()]
        assert [broker.ask(QUERY, client=client) is None for client in (*others, broker.client)] == [
            True,
            True,
            False,
        ]
        broker.relays.on_lost(others[0])
        assert broker.ask(QUERY) is None

    run(scenario)


def test_when_this_broker_is_read_the_relays_end_and_nothing_stays_without_an_answer() -> None:
    async def scenario(broker: RelayingBroker) -> None:
        await opened(broker)
        broker.ask(RequestCode.PULL_MESSAGE, PULL, opaque=5)
        broker.ask(QUERY, opaque=6)
        waiting = FakeConnection()
        broker.ask(QUERY, opaque=7, client=waiting)
        broker.right.give(SLAVE_IS_READ)
        await turns()
        again, failed = broker.client.take_sent()
        assert (again.opaque, again.code) == (5, ResponseCode.PULL_RETRY_IMMEDIATELY)
        assert again.ext["nextBeginOffset"] == "42"
        assert (failed.opaque, failed.code) == (6, ResponseCode.SYSTEM_BUSY)
        assert [(one.opaque, one.remark) for one in waiting.take_sent()] == [(7, "here")]
        assert len(broker.relays) == 0

    run(scenario)


def test_a_client_whose_relay_is_lost_at_once_is_not_told_to_come_again_at_once() -> None:
    async def scenario(broker: RelayingBroker) -> None:
        await opened(broker)
        for _queue in range(2):
            broker.ask(RequestCode.PULL_MESSAGE, PULL)
        broker.upstream.close("lost")
        await turns()
        assert [one.code for one in broker.client.take_sent()] == [ResponseCode.SYSTEM_BUSY] * 2
        # The next one finds another way.
        broker.ask(RequestCode.PULL_MESSAGE, PULL)
        await until(lambda: len(broker.upstreams) == 2)

    run(scenario)


@pytest.mark.parametrize(
    ("short_s", "code"), [(0.0, ResponseCode.PULL_RETRY_IMMEDIATELY), (60.0, ResponseCode.SYSTEM_BUSY)]
)
def test_a_pull_that_the_other_broker_refuses_because_it_is_read_no_more_may_come_again(
    monkeypatch: pytest.MonkeyPatch, short_s: float, code: ResponseCode
) -> None:
    monkeypatch.setattr(relay, "SHORT_S", short_s)

    async def scenario(broker: RelayingBroker) -> None:
        await opened(broker)
        broker.ask(RequestCode.PULL_MESSAGE, PULL)
        broker.upstream.answer(ResponseCode.NO_PERMISSION, readerAddress=OWN, readTerm="3")
        await turns()
        assert [one.code for one in broker.client.take_sent()] == [code]
        assert not broker.upstream.is_open

    run(scenario)


def test_another_reader_gets_another_relay() -> None:
    async def scenario(broker: RelayingBroker) -> None:
        await opened(broker)
        first = broker.upstream
        broker.right.give(OTHER_IS_READ._replace(reader="10.0.0.3:10911"))
        assert broker.ask(QUERY) is None
        await until(lambda: len(broker.upstreams) == 2)
        assert broker.upstream.target == "10.0.0.3:10911"
        assert not first.is_open

    run(scenario)


def test_the_other_brokers_notices_and_questions_reach_the_client() -> None:
    async def scenario(broker: RelayingBroker) -> None:
        await opened(broker)
        handlers = broker.upstream.handlers
        header = ConsumerGroupRequest(consumer_group="billing")
        notice = RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
        handlers[notice](Command.request(notice, header, is_one_way=True), broker.upstream)
        assert [one.code for one in broker.client.take_sent()] == [notice]

    run(scenario)


def test_a_client_that_has_gone_is_relayed_no_more_and_what_it_asked_is_forgotten() -> None:
    async def scenario(broker: RelayingBroker) -> None:
        await opened(broker)
        waiting = FakeConnection()
        broker.ask(QUERY, client=waiting)
        waiting.close("gone")
        broker.relays.on_lost(waiting)
        broker.relays.on_lost(broker.client)
        assert not broker.upstreams[0].is_open
        assert len(broker.relays) == 0
        assert waiting.sent == []

    run(scenario)


def test_a_slow_broker_is_not_asked_for_more() -> None:
    async def scenario(broker: RelayingBroker) -> None:
        await opened(broker)
        broker.upstream.is_slow = True
        broker.ask(QUERY)
        assert [one.code for one in broker.client.take_sent()] == [ResponseCode.SYSTEM_BUSY]
        assert QUERY not in broker.upstream.codes

    run(scenario)
