import asyncio
import gc
import itertools
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tanist.broker import longpoll, memory
from tanist.broker.consumer_group import Client
from tanist.broker.handlers import pull as pull_module
from tanist.broker.handlers.pull import PullHandler
from tanist.broker.longpoll import ParkedPulls
from tanist.broker.settings import BrokerRole, BrokerSettings
from tanist.broker.slave_consume.permitted import Permitted
from tanist.broker.sql import compiler
from tanist.broker.sql.nodes import Node
from tanist.broker.sql.parser import parse
from tanist.errors import ResponseError
from tanist.model.groups import (
    TRANSACTION_GROUP,
    ConsumeFromWhere,
    ConsumeType,
    MessageModel,
    SubscriptionGroupConfig,
)
from tanist.model.subscription import SQL92, SubscriptionData, subscribe
from tanist.model.topics import TopicConfig, retry_topic
from tanist.protocol.bodies.client import ConsumerData, HeartbeatData
from tanist.protocol.codes import FLAG_ONE_WAY, HeaderEncoding, Language, RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.frame import FrameDecoder, encode_command
from tanist.protocol.headers.pull import PullMessageRequest, PullMessageResponse
from tanist.protocol.record import decode_record
from tests.support.broker_tables import SETTINGS, join
from tests.support.clocks import FakeClock
from tests.support.conditions import turns, until
from tests.support.fake_connection import FakeConnection, decode_answer
from tests.support.messages import TOPIC, make_message
from tests.support.read_rights import (
    MASTER_IS_READ,
    OTHER,
    OTHER_IS_READ,
    OWN,
    SLAVE_IS_READ,
    GivenRight,
)
from tests.support.working_broker import WorkingBroker, working_broker

C = ResponseCode
G = "GroupA"
COMMIT, SUSPEND, SUBSCRIPTION, LITE = 1, 2, 4, 16


class _Pulling:
    """The pull handler of a working broker, asked as a connection asks it."""

    def __init__(self, broker: WorkingBroker, clock: FakeClock) -> None:
        self.state = broker.state
        self.clock = clock
        self.connection = FakeConnection()
        self.handler = PullHandler(broker.state)
        broker.state.store.dispatcher.listeners.append(self.handler.on_indexed)

    def request(self, queue_offset: int = 0, **fields: Any) -> Command:
        given: dict[str, Any] = {
            "consumer_group": G,
            "topic": TOPIC,
            "queue_id": 0,
            "max_message_count": 32,
            "sys_flag": SUBSCRIPTION,
            "consumer_offset": 0,
            "suspend_timeout_ms": 15_000,
            "sub_version": 0,
            "subscription": "*",
            **fields,
        }
        header = PullMessageRequest(queue_offset=queue_offset, **given)  # pyright: ignore[reportArgumentType]
        return Command.request(RequestCode.PULL_MESSAGE, header, opaque=9)

    def pull(
        self,
        queue_offset: int = 0,
        *,
        code: RequestCode = RequestCode.PULL_MESSAGE,
        encoding: HeaderEncoding = HeaderEncoding.JSON,
        is_one_way: bool = False,
        connection: FakeConnection | None = None,
        language: Language = Language.JAVA,
        **fields: Any,
    ) -> Command | None:
        """The answer, or None if there is none now. A refusal is the answer it becomes on the wire."""
        request = self.request(queue_offset, **fields)
        request.encoding, request.language = encoding, language
        if is_one_way:
            request.flag |= FLAG_ONE_WAY
        (received,) = FrameDecoder().feed(encode_command(request))
        try:
            answer = self.handler.routes()[code](received, connection or self.connection)
        except ResponseError as refusal:
            return received.reply(refusal.code, remark=refusal.remark)
        if answer is None:
            return None
        assert isinstance(answer, list)
        (shown,) = decode_answer(answer)
        assert (shown.opaque, shown.is_response, shown.encoding) == (9, True, encoding)
        return shown

    def park(self, queue_offset: int = 0, *, sys_flag: int = SUSPEND | SUBSCRIPTION, **fields: Any) -> None:
        assert self.pull(queue_offset, sys_flag=sys_flag, **fields) is None

    def code(self, queue_offset: int = 0, **fields: Any) -> int:
        answer = self.pull(queue_offset, **fields)
        assert answer is not None
        return answer.code

    def append(self, *tags: str, queue_id: int = 0) -> None:
        """One message for each tag, visible at once."""
        for number, tag in enumerate(tags):
            self.state.store.append(make_message(number, tag=tag, queue_id=queue_id))
        self.state.store.dispatch()

    def heartbeat(
        self,
        *subscriptions: SubscriptionData,
        message_model: MessageModel = MessageModel.CLUSTERING,
    ) -> None:
        consumer = ConsumerData(
            group_name=G,
            consume_type=ConsumeType("CONSUME_PASSIVELY"),
            message_model=message_model,
            consume_from_where=ConsumeFromWhere("CONSUME_FROM_LAST_OFFSET"),
            subscription_data_set=list(subscriptions),
        )
        self.state.clients.on_heartbeat(
            Client(self.connection, "client", "JAVA", 479),
            HeartbeatData(client_id="client", consumer_data_set=[consumer]),
            now_ms=self.clock.now_ms(),
        )

    async def answer(self) -> Command:
        """The one late answer that has come or comes soon."""
        await until(lambda: len(self.connection.sent) > 0)
        (answer,) = self.connection.take_sent()
        assert (answer.opaque, answer.is_response) == (9, True)
        return answer


def offsets(answer: Command) -> tuple[int, int, int, int]:
    """What a client needs of every answer to a pull: broker, next, min and max."""
    header = answer.header(PullMessageResponse)
    return header.suggested_broker_id, header.next_begin_offset, header.min_offset, header.max_offset


def bodies(answer: Command) -> list[bytes]:
    data, found = memoryview(answer.body), list[bytes]()
    while data:
        record = decode_record(data)
        found.append(bytes(record.body))
        data = data[record.size_bytes :]
    return found


def run(
    root: Path,
    scenario: Callable[[_Pulling], Awaitable[None]],
    *,
    settings: BrokerSettings = SETTINGS,
) -> None:
    async def with_broker() -> None:
        clock = FakeClock()
        async with working_broker(root, settings, clock=clock) as broker:
            broker.state.topics.put(TopicConfig(topic_name=TOPIC, read_queue_count=4, write_queue_count=4))
            pulling = _Pulling(broker, clock)
            await scenario(pulling)
            pulling.handler.close()

    asyncio.run(with_broker())


@pytest.mark.parametrize("encoding", list(HeaderEncoding))
@pytest.mark.parametrize("code", [RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE])
def test_messages_are_found_as_they_lie_in_the_log(
    tmp_path: Path, code: RequestCode, encoding: HeaderEncoding
) -> None:
    async def scenario(pulling: _Pulling) -> None:
        pulling.append("A", "B", "C")
        answer = pulling.pull(1, code=code, encoding=encoding, sys_flag=SUBSCRIPTION | LITE)
        assert answer is not None
        assert (answer.code, answer.remark) == (C.SUCCESS, "FOUND")
        assert offsets(answer) == (0, 3, 0, 3)
        assert bodies(answer) == [b"message 1 ", b"message 2 "]

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("queue_id", "queue_offset", "code", "found"),
    [
        (1, 0, C.PULL_NOT_FOUND, (0, 0, 0, 0)),
        (1, 5, C.PULL_OFFSET_MOVED, (0, 0, 0, 0)),
        (1, -1, C.PULL_OFFSET_MOVED, (0, 0, 0, 0)),
        (0, 3, C.PULL_NOT_FOUND, (0, 3, 0, 3)),
        (0, 4, C.PULL_OFFSET_MOVED, (0, 3, 0, 3)),
        (0, -1, C.PULL_OFFSET_MOVED, (0, 0, 0, 3)),
    ],
)
def test_an_offset_without_messages_is_told_where_to_go(
    tmp_path: Path,
    queue_id: int,
    queue_offset: int,
    code: ResponseCode,
    found: tuple[int, int, int, int],
) -> None:
    async def scenario(pulling: _Pulling) -> None:
        pulling.append("A", "B", "C")
        answer = pulling.pull(queue_offset, queue_id=queue_id)
        assert answer is not None
        assert (answer.code, offsets(answer), len(answer.body)) == (code, found, 0)

    run(tmp_path, scenario)


@pytest.mark.parametrize(("queue_id", "offset"), [(0, 7), (0, 1), (1, 5)])
def test_a_slave_does_not_move_a_consumer_whose_offset_it_lacks(
    tmp_path: Path, queue_id: int, offset: int
) -> None:
    """It is behind its master, or has deleted more, or has not got the queue yet."""

    async def scenario(pulling: _Pulling) -> None:
        pulling.state.groups.put(SubscriptionGroupConfig(group_name=G))
        pulling.append("a", "b", "c")
        pulling.state.store.delete_topics([TOPIC])
        pulling.append("d")
        pulling.state.settings = msgspec.structs.replace(
            SETTINGS, broker_role=BrokerRole.SLAVE, broker_id=1, slave_read_enable=True
        )
        answer = pulling.pull(offset, queue_id=queue_id)
        assert answer is not None
        assert (answer.code, answer.remark) == (C.PULL_NOT_FOUND, "OFFSET_NOT_ON_SLAVE")
        assert offsets(answer)[:2] == (0, offset)
        # It waits a little, and gets what comes.
        pulling.park(offset, queue_id=queue_id)
        pulling.append(*"efghij", queue_id=queue_id)
        assert (await pulling.answer()).code in (C.PULL_NOT_FOUND, C.SUCCESS)

    run(tmp_path, scenario)


@pytest.mark.behaviour("S4-37", "S4-39")
def test_who_pulls_what_has_been_deleted_is_moved_up_to_the_first_message(tmp_path: Path) -> None:
    async def scenario(pulling: _Pulling) -> None:
        store = pulling.state.store
        pulling.append(*["A"] * 100)
        store.flush()
        pulling.clock.set_now_ms(10**13)
        assert store.clean(is_asked=True) > 0
        queue = store.queues.find(TOPIC, 0)
        assert queue is not None
        assert queue.min_offset > 0
        for asked in (0, queue.min_offset - 1):
            answer = pulling.pull(asked, sys_flag=SUSPEND | SUBSCRIPTION)
            assert answer is not None
            assert (answer.code, answer.remark) == (C.PULL_OFFSET_MOVED, "OFFSET_TOO_SMALL")
            assert offsets(answer) == (0, queue.min_offset, queue.min_offset, 100)
        assert pulling.code(queue.min_offset) == C.SUCCESS

    run(tmp_path, scenario)


@pytest.mark.behaviour("S4-38", "S4-39")
@pytest.mark.parametrize("asked", [4, 999_999_999, 2**62])
def test_who_pulls_from_beyond_the_end_is_moved_back_to_it(tmp_path: Path, asked: int) -> None:
    async def scenario(pulling: _Pulling) -> None:
        pulling.append("A", "B", "C")
        answer = pulling.pull(asked, sys_flag=SUSPEND | SUBSCRIPTION)
        assert answer is not None
        assert (answer.code, answer.remark) == (C.PULL_OFFSET_MOVED, "OFFSET_OVERFLOW_BADLY")
        assert offsets(answer) == (0, 3, 0, 3)

    run(tmp_path, scenario)


def test_messages_that_nobody_wants_are_passed_over_at_once(tmp_path: Path) -> None:
    async def scenario(pulling: _Pulling) -> None:
        pulling.append("A", "A")
        answer = pulling.pull(0, subscription="B || C", sys_flag=SUSPEND | SUBSCRIPTION)
        assert answer is not None
        assert (answer.code, answer.remark) == (C.PULL_RETRY_IMMEDIATELY, "NO_MATCHED_MESSAGE")
        assert offsets(answer) == (0, 2, 0, 2)

    run(tmp_path, scenario)


def test_no_more_messages_are_given_than_asked_for_or_configured(tmp_path: Path) -> None:
    async def scenario(pulling: _Pulling) -> None:
        pulling.append(*"ABCDEF")
        for asked, given in ((2, 2), (0, 1), (-5, 1), (100, 4)):
            answer = pulling.pull(0, max_message_count=asked)
            assert answer is not None
            assert len(bodies(answer)) == given

    settings = msgspec.structs.replace(SETTINGS, max_transfer_count_on_message_in_memory=4)
    run(tmp_path, scenario, settings=settings)


class TestChecks:
    """In the order of RocketMQ's PullMessageProcessor: a client acts on the first that fails."""

    def test_a_broker_that_may_not_be_read(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            assert pulling.code(topic="unknown") == C.NO_PERMISSION

        run(tmp_path, scenario, settings=msgspec.structs.replace(SETTINGS, broker_permission=2))

    def test_an_unknown_group(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            assert pulling.code(topic="unknown") == C.SUBSCRIPTION_GROUP_NOT_EXIST

        settings = msgspec.structs.replace(SETTINGS, auto_create_subscription_group=False)
        run(tmp_path, scenario, settings=settings)

    def test_a_group_that_may_not_consume(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            pulling.state.groups.put(SubscriptionGroupConfig(group_name=G, is_consume_enabled=False))
            assert pulling.code(topic="unknown") == C.NO_PERMISSION

        run(tmp_path, scenario)

    def test_an_unknown_topic(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            assert pulling.code(topic="unknown", queue_id=99) == C.TOPIC_NOT_EXIST

        run(tmp_path, scenario)

    def test_a_topic_that_may_not_be_read(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            pulling.state.topics.put(TopicConfig(topic_name="closed", perm=2))
            assert pulling.code(topic="closed", queue_id=99) == C.NO_PERMISSION

        run(tmp_path, scenario)

    @pytest.mark.parametrize("queue_id", [4, -1])
    def test_a_queue_that_the_topic_does_not_have(self, tmp_path: Path, queue_id: int) -> None:
        async def scenario(pulling: _Pulling) -> None:
            assert pulling.code(queue_id=queue_id, subscription="||") == C.INVALID_PARAMETER

        run(tmp_path, scenario)

    def test_an_expression_that_names_no_tag(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            assert pulling.code(subscription="||") == C.SUBSCRIPTION_PARSE_FAILED

        run(tmp_path, scenario)

    def test_a_push_consumer_without_a_heartbeat(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            assert pulling.code(sys_flag=0, sub_version=5) == C.SUBSCRIPTION_NOT_EXIST
            pulling.heartbeat(subscribe("another", "*", sub_version=5))
            assert pulling.code(sys_flag=0, sub_version=5) == C.SUBSCRIPTION_NOT_EXIST

        run(tmp_path, scenario)

    def test_a_push_consumer_that_is_ahead_of_its_heartbeat(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            pulling.heartbeat(subscribe(TOPIC, "A", sub_version=5))
            assert pulling.code(sys_flag=0, sub_version=6) == C.SUBSCRIPTION_NOT_LATEST
            assert pulling.code(sys_flag=0, sub_version=5) == C.PULL_NOT_FOUND
            assert pulling.code(sys_flag=0, sub_version=4) == C.PULL_NOT_FOUND

        run(tmp_path, scenario)

    def test_a_group_that_broadcasts_though_it_may_not(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            pulling.state.groups.put(SubscriptionGroupConfig(group_name=G, is_broadcast_enabled=False))
            pulling.heartbeat(
                subscribe("another", "*", sub_version=5), message_model=MessageModel.BROADCASTING
            )
            assert pulling.code(sys_flag=0, sub_version=5) == C.NO_PERMISSION

        run(tmp_path, scenario)

    def test_a_pull_that_brings_its_subscription_needs_no_heartbeat(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            pulling.append("A", "B")
            answer = pulling.pull(0, sys_flag=SUBSCRIPTION, subscription="B", sub_version=0)
            assert answer is not None
            assert bodies(answer) == [b"message 1 "]

        run(tmp_path, scenario)


def test_a_push_consumer_gets_what_its_heartbeat_said(tmp_path: Path) -> None:
    async def scenario(pulling: _Pulling) -> None:
        pulling.heartbeat(subscribe(TOPIC, "B", sub_version=5))
        pulling.append("A", "B", "B")
        answer = pulling.pull(0, sys_flag=SUSPEND, sub_version=5, subscription=None)
        assert answer is not None
        assert bodies(answer) == [b"message 1 ", b"message 2 "]

    run(tmp_path, scenario)


def test_an_offset_is_committed_once_and_only_if_the_pull_says_so(tmp_path: Path) -> None:
    async def scenario(pulling: _Pulling) -> None:
        state = pulling.state
        pulling.pull(consumer_offset=7)
        assert state.offsets.find(G, TOPIC, 0) is None
        pulling.park(sys_flag=COMMIT | SUSPEND | SUBSCRIPTION, consumer_offset=7)
        assert state.offsets.find(G, TOPIC, 0) == 7
        state.offsets.commit(G, TOPIC, 0, 8)
        pulling.append("A")
        assert (await pulling.answer()).code == C.SUCCESS
        assert state.offsets.find(G, TOPIC, 0) == 8
        pulling.pull(sys_flag=COMMIT | SUBSCRIPTION, consumer_offset=-1)
        assert state.offsets.find(G, TOPIC, 0) == 8
        assert pulling.code(sys_flag=COMMIT, sub_version=1, consumer_offset=9) == C.SUBSCRIPTION_NOT_EXIST
        assert state.offsets.find(G, TOPIC, 0) == 8

    run(tmp_path, scenario)


def test_a_pull_does_not_commit_for_the_group_of_transactions(tmp_path: Path) -> None:
    async def scenario(pulling: _Pulling) -> None:
        committing = {"sys_flag": COMMIT | SUBSCRIPTION, "consumer_offset": 7}
        assert pulling.code(consumer_group=TRANSACTION_GROUP, **committing) == C.NO_PERMISSION
        assert pulling.state.offsets.find(TRANSACTION_GROUP, TOPIC, 0) is None

    run(tmp_path, scenario)


def test_it_is_noted_where_the_next_pull_goes_on(tmp_path: Path) -> None:
    async def scenario(pulling: _Pulling) -> None:
        noted = pulling.state.pull_progress
        pulling.append("A", "B", "A")
        pulling.pull(max_message_count=2)
        assert noted.find(G, TOPIC, 0) == 2
        pulling.park(3)
        assert noted.find(G, TOPIC, 0) == 3
        pulling.append("A")
        await pulling.answer()
        assert noted.find(G, TOPIC, 0) == 4

    run(tmp_path, scenario)


class TestParked:
    @pytest.mark.parametrize("encoding", list(HeaderEncoding))
    def test_a_message_answers_the_pull_that_waits_for_it(
        self, tmp_path: Path, encoding: HeaderEncoding
    ) -> None:
        async def scenario(pulling: _Pulling) -> None:
            pulling.park(encoding=encoding)
            pulling.park(queue_id=1)
            pulling.append("A")
            answer = await pulling.answer()
            assert (answer.code, answer.encoding, bodies(answer)) == (C.SUCCESS, encoding, [b"message 0 "])
            assert offsets(answer) == (0, 1, 0, 1)
            pulling.append("B")
            assert pulling.connection.sent == []

        run(tmp_path, scenario)

    def test_a_pull_that_may_not_wait_is_answered_at_once(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            assert pulling.code(sys_flag=SUBSCRIPTION) == C.PULL_NOT_FOUND
            assert pulling.code(sys_flag=SUSPEND | SUBSCRIPTION, suspend_timeout_ms=0) == C.PULL_NOT_FOUND
            assert pulling.code(5, sys_flag=SUSPEND | SUBSCRIPTION) == C.PULL_OFFSET_MOVED

        run(tmp_path, scenario)

    def test_a_message_for_others_leaves_it_waiting_and_is_not_looked_at_again(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            pulling.park(subscription="B")
            pulling.append("A", "A")
            assert pulling.connection.sent == []
            (parked,) = pulling.handler._parked.drain()
            assert parked.queue_offset == 2
            pulling.handler._parked.park(parked)
            pulling.append("A", "B")
            answer = await pulling.answer()
            assert (bodies(answer), offsets(answer)) == ([b"message 1 "], (0, 4, 0, 4))

        run(tmp_path, scenario)

    def test_a_flood_for_others_does_not_hide_what_comes_at_its_end(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            pulling.park(subscription="B")
            # Dispatched together, and more than one look of a pull reaches.
            pulling.append(*["A"] * 900, "B")
            answer = await pulling.answer()
            assert answer.code == C.PULL_RETRY_IMMEDIATELY
            next_offset = offsets(answer)[1]
            answer = pulling.pull(next_offset, subscription="B", sys_flag=SUSPEND | SUBSCRIPTION)
            assert answer is not None
            assert (answer.code, offsets(answer)[1]) == (C.SUCCESS, 901)

        run(tmp_path, scenario)

    def test_its_time_ends_at_its_deadline(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            pulling.append("A")
            pulling.park(1, suspend_timeout_ms=20)
            await turns()
            assert pulling.connection.sent == []  # The broker's clock stands still.
            pulling.clock.advance_ms(20)
            answer = await pulling.answer()
            assert (answer.code, offsets(answer)) == (C.PULL_NOT_FOUND, (0, 1, 0, 1))
            pulling.append("B")
            assert pulling.connection.sent == []

        run(tmp_path, scenario)

    def test_the_wall_clock_does_not_decide_how_long_it_waits(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            pulling.park(suspend_timeout_ms=20)
            pulling.clock.set_now_ms(0)
            pulling.clock.set_monotonic_s(pulling.clock.monotonic_s() + 1)
            assert (await pulling.answer()).code == C.PULL_NOT_FOUND

        run(tmp_path, scenario)

    def test_a_shorter_wait_does_not_wait_for_a_longer_one(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            pulling.park(suspend_timeout_ms=500_000)
            pulling.park(queue_id=1, suspend_timeout_ms=10)
            pulling.clock.advance_ms(10)
            await pulling.answer()
            assert len(pulling.handler._parked) == 1

        run(tmp_path, scenario)

    def test_nobody_waits_longer_than_ten_minutes(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            pulling.park(suspend_timeout_ms=2**62)
            now_ms = pulling.handler._now_ms()
            assert pulling.handler._parked.next_deadline_ms == now_ms + 600_000

        run(tmp_path, scenario)

    def test_without_long_polling_it_waits_a_second(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            pulling.park()
            assert pulling.handler._parked.next_deadline_ms == pulling.handler._now_ms() + 1000

        run(tmp_path, scenario, settings=msgspec.structs.replace(SETTINGS, long_polling_enable=False))

    def test_what_the_old_subscription_passed_over_the_new_one_gets(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            pulling.heartbeat(subscribe(TOPIC, "A", sub_version=5))
            pulling.park(sys_flag=SUSPEND, sub_version=5, subscription=None)
            pulling.append("B")
            pulling.heartbeat(subscribe(TOPIC, "A || B", sub_version=6))
            pulling.append("A")
            answer = await pulling.answer()
            assert (answer.code, len(bodies(answer)), offsets(answer)[1]) == (C.SUCCESS, 2, 2)

        run(tmp_path, scenario)

    def test_a_topic_that_was_deleted_meanwhile_does_not_exist(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            pulling.park(suspend_timeout_ms=10)
            pulling.state.topics.delete(TOPIC)
            pulling.clock.advance_ms(10)
            assert (await pulling.answer()).code == C.TOPIC_NOT_EXIST

        run(tmp_path, scenario)

    def test_the_end_of_its_connection_takes_it_along(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            pulling.park()
            pulling.connection.close("gone")
            pulling.handler.on_lost(pulling.connection)
            assert len(pulling.handler._parked) == 0
            pulling.append("A")

        run(tmp_path, scenario)

    def test_a_connection_that_closes_is_not_sent_to(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            pulling.park()
            pulling.connection.close("going")
            pulling.append("A")
            assert len(pulling.handler._parked) == 0

        run(tmp_path, scenario)

    def test_too_many_are_told_that_the_broker_is_busy(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            pulling.handler._parked = ParkedPulls(max_count=3, max_per_peer=2)
            pulling.park()
            pulling.park(queue_id=1)
            assert pulling.code(queue_id=2, sys_flag=SUSPEND | SUBSCRIPTION) == C.SYSTEM_BUSY
            others = FakeConnection("127.0.0.1:6")
            assert pulling.pull(sys_flag=SUSPEND | SUBSCRIPTION, connection=others) is None
            answer = pulling.pull(sys_flag=SUSPEND | SUBSCRIPTION, connection=others)
            assert answer is not None
            assert answer.code == C.SYSTEM_BUSY

        run(tmp_path, scenario)

    def test_too_much_text_is_not_kept_for_them(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(longpoll, "MAX_PARKED_CHARS", 20)

        async def scenario(pulling: _Pulling) -> None:
            pulling.park(subscription="a || b || c", proxy_forward_client_id="proxy")
            assert pulling.code(sys_flag=SUSPEND | SUBSCRIPTION, subscription="a || b") == C.SYSTEM_BUSY
            pulling.handler.on_lost(pulling.connection)
            pulling.park(subscription="a || b")

        run(tmp_path, scenario)

    def test_a_one_way_pull_never_waits_and_is_never_answered(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            flags = COMMIT | SUSPEND | SUBSCRIPTION
            assert pulling.pull(sys_flag=flags, is_one_way=True, consumer_offset=3) is None
            assert len(pulling.handler._parked) == 0
            assert pulling.state.offsets.find(G, TOPIC, 0) == 3

        run(tmp_path, scenario)

    def test_it_does_not_keep_the_bytes_it_came_in(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            frame = encode_command(pulling.request(sys_flag=SUSPEND | SUBSCRIPTION))
            received_bytes = bytearray(frame * 2)
            first, second = FrameDecoder().feed(received_bytes)  # pyright: ignore[reportArgumentType]
            assert pulling.handler.pull(first, pulling.connection) is None
            del first, second
            gc.collect()
            received_bytes.clear()  # Raises BufferError while anybody has a view of it.
            pulling.append("A")
            assert (await pulling.answer()).code == C.SUCCESS

        run(tmp_path, scenario)

    def test_one_that_fails_is_answered_and_takes_no_other_along(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        really_read = pull_module.read_queue

        def read_queue(*args: Any, **kwargs: Any) -> Any:
            if kwargs["max_count"] == 13:
                raise ZeroDivisionError("a mistake")
            return really_read(*args, **kwargs)

        async def scenario(pulling: _Pulling) -> None:
            pulling.park(max_message_count=13)
            pulling.park()
            pulling.park(queue_id=1, max_message_count=13, suspend_timeout_ms=10)
            pulling.park(queue_id=1, suspend_timeout_ms=10)
            with monkeypatch.context() as patch:
                patch.setattr(pull_module, "read_queue", read_queue)
                pulling.append("A")
                codes = [answer.code for answer in pulling.connection.take_sent()]
                assert codes == [C.SYSTEM_ERROR, C.SUCCESS]
                assert pulling.state.store.log.refusal is None
                pulling.clock.advance_ms(10)
                await until(lambda: len(pulling.connection.sent) == 2)
            codes = [answer.code for answer in pulling.connection.take_sent()]
            assert codes == [C.SYSTEM_ERROR, C.PULL_NOT_FOUND]
            pulling.park(1, suspend_timeout_ms=10)
            pulling.clock.advance_ms(10)
            await pulling.answer()  # The timer lives on.

        run(tmp_path, scenario)
        assert [record.levelno for record in caplog.records] == [logging.ERROR] * 2

    def test_all_are_refused_when_the_broker_stops_and_so_are_those_that_come_yet(
        self, tmp_path: Path
    ) -> None:
        async def scenario(pulling: _Pulling) -> None:
            for queue_id in range(4):
                pulling.park(queue_id=queue_id)
            pulling.handler.close()
            assert [answer.code for answer in pulling.connection.take_sent()] == [C.SYSTEM_BUSY] * 4
            assert pulling.code() == C.SYSTEM_BUSY

        run(tmp_path, scenario)


# Slaves, and what is counted


def test_a_group_that_is_far_behind_is_sent_to_its_slave_if_slaves_may_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of this much memory the log's end is taken to fill 40 %.
    monkeypatch.setattr(memory, "_memory_bytes", lambda: 1000)

    async def scenario(pulling: _Pulling) -> None:
        pulling.state.groups.put(SubscriptionGroupConfig(group_name=G, broker_id=2, slow_broker_id=3))
        pulling.append(*["A"] * 6)

        def suggested(queue_offset: int, **fields: Any) -> int:
            answer = pulling.pull(queue_offset, **fields)
            assert answer is not None
            return offsets(answer)[0]

        assert suggested(0, max_message_count=1) == 0
        pulling.state.settings = msgspec.structs.replace(SETTINGS, slave_read_enable=True)
        assert suggested(0, max_message_count=1) == 3
        # What was passed over counts too, and who waits at the end is not behind.
        assert suggested(0, max_message_count=1, subscription="B") == 2
        assert [suggested(5), suggested(6), suggested(9)] == [2, 2, 2]

    run(tmp_path, scenario)


def test_every_answer_is_counted_with_its_messages_and_bytes(tmp_path: Path) -> None:
    async def scenario(pulling: _Pulling) -> None:
        pulling.append("A", "A", "B")
        found = pulling.pull(0)
        assert found is not None
        assert pulling.code(3) == C.PULL_NOT_FOUND
        pulling.park(3)
        pulling.append("A")
        late = await pulling.answer()
        pulling.clock.advance_ms(10_000)
        counters = pulling.state.counters
        counters.on_tick(pulling.clock.now_ms(), local_day=1)
        figures = [counters.find(stat, f"{TOPIC}@{G}") for stat in ("GROUP_GET_NUMS", "GROUP_GET_SIZE")]
        assert [figure.minute.sum for figure in figures if figure] == [4, len(found.body) + len(late.body)]
        assert counters.rates(10) == (0.0, 0.2, 0.1, 0.4)

    run(tmp_path, scenario)


def test_a_group_that_there_is_no_room_for_is_told_so(tmp_path: Path) -> None:
    async def scenario(pulling: _Pulling) -> None:
        pulling.state.groups.settings = msgspec.structs.replace(SETTINGS, max_subscription_group_count=1)
        answer = pulling.pull(0, consumer_group="New")
        assert answer is not None
        assert answer.code == C.SUBSCRIPTION_GROUP_NOT_EXIST
        assert "maxSubscriptionGroupCount" in (answer.remark or "")

    run(tmp_path, scenario)


def sql(expression: str, *, sub_version: int = 5) -> SubscriptionData:
    return SubscriptionData(
        topic=TOPIC, expression=expression, sub_version=sub_version, expression_type=SQL92
    )


class TestSql:
    """``append`` gives message n of a call the tag that is named for it, and TAGS is a property."""

    def test_a_pull_may_bring_its_expression_along(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            pulling.append("A", "B", "", "C", "B")
            answer = pulling.pull(0, subscription="TAGS IN ('B', 'C')", expression_type=SQL92)
            assert answer is not None
            assert (answer.code, offsets(answer)) == (C.SUCCESS, (0, 5, 0, 5))
            assert bodies(answer) == [b"message 1 ", b"message 3 ", b"message 4 "]

        run(tmp_path, scenario)

    def test_a_push_consumer_gets_what_the_expression_of_its_heartbeat_lets_through(
        self, tmp_path: Path
    ) -> None:
        async def scenario(pulling: _Pulling) -> None:
            pulling.heartbeat(sql("TAGS > 3"))
            pulling.append("1", "5", "x", "", "7")
            answer = pulling.pull(0, sys_flag=SUSPEND, sub_version=5, subscription=None)
            assert answer is not None
            assert bodies(answer) == [b"message 1 ", b"message 4 "]
            assert pulling.code(sys_flag=0, sub_version=6) == C.SUBSCRIPTION_NOT_LATEST

        run(tmp_path, scenario)

    @pytest.mark.parametrize("expression", ["", None, "TAGS >", "(" * 9000])
    def test_a_bad_expression_is_refused(self, tmp_path: Path, expression: str | None) -> None:
        async def scenario(pulling: _Pulling) -> None:
            answer = pulling.pull(subscription=expression, expression_type=SQL92)
            assert answer is not None
            assert answer.code == C.SUBSCRIPTION_PARSE_FAILED
            assert "expected" in (answer.remark or "")

        run(tmp_path, scenario)

    def test_a_group_whose_expression_is_bad_has_no_filter(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            pulling.heartbeat(sql("TAGS >"))
            answer = pulling.pull(sys_flag=SUSPEND, sub_version=5)
            assert answer is not None
            assert answer.code == C.FILTER_DATA_NOT_EXIST
            assert "character 7" in (answer.remark or "")
            pulling.heartbeat(sql("TAGS > 1", sub_version=6))
            assert pulling.code(sys_flag=0, sub_version=6) == C.PULL_NOT_FOUND

        run(tmp_path, scenario)

    def test_three_hundred_groups_have_each_expression_compiled_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        parsed: list[str] = []

        def counted(text: str) -> Node:
            parsed.append(text)
            return parse(text)

        monkeypatch.setattr(compiler, "parse", counted)

        async def scenario(pulling: _Pulling) -> None:
            pulling.append("1000", "1")
            for number in range(300):
                join(pulling.state, f"group-{number}", sql(f"TAGS > {number} AND once IS NULL"))
            for number in [*range(300)] * 2:
                answer = pulling.pull(
                    0, consumer_group=f"group-{number}", sys_flag=0, sub_version=5, subscription=None
                )
                assert answer is not None
                assert bodies(answer)[0] == b"message 0 "
            assert len(parsed) == 300
            # A newer one is another one.
            join(pulling.state, "group-7", sql("TAGS < 2 AND once IS NULL", sub_version=6))
            answer = pulling.pull(0, consumer_group="group-7", sys_flag=0, sub_version=6, subscription=None)
            assert answer is not None
            assert bodies(answer) == [b"message 1 "]

        run(tmp_path, scenario)

    def test_a_broker_with_its_filter_off_refuses_it_whoever_brings_it(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            assert pulling.code(subscription="a > 1", expression_type=SQL92) == C.SYSTEM_ERROR
            pulling.heartbeat(sql("a > 1"))
            assert pulling.code(sys_flag=0, sub_version=5) == C.SYSTEM_ERROR
            assert pulling.code(subscription="*") == C.PULL_NOT_FOUND

        settings = msgspec.structs.replace(SETTINGS, enable_property_filter=False)
        run(tmp_path, scenario, settings=settings)

    def test_a_kind_of_expression_that_nobody_knows_is_refused(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            assert pulling.code(subscription="a > 1", expression_type="SQL99") == C.SYSTEM_ERROR

        run(tmp_path, scenario)

    def test_a_message_for_others_leaves_it_waiting(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            pulling.park(subscription="TAGS = 'B'", expression_type=SQL92)
            pulling.append("A", "A")
            assert pulling.connection.sent == []
            pulling.append("A", "B")
            answer = await pulling.answer()
            assert (bodies(answer), offsets(answer)) == ([b"message 1 "], (0, 4, 0, 4))

        run(tmp_path, scenario)

    def test_what_the_old_expression_passed_over_the_new_one_gets(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            pulling.heartbeat(sql("TAGS = 'A'"))
            pulling.park(sys_flag=SUSPEND, sub_version=5, subscription=None)
            pulling.append("B")
            pulling.heartbeat(sql("TAGS = 'A' OR TAGS = 'B'", sub_version=6))
            pulling.append("A")
            answer = await pulling.answer()
            assert (answer.code, len(bodies(answer)), offsets(answer)[1]) == (C.SUCCESS, 2, 2)

        run(tmp_path, scenario)

    def test_a_look_at_many_messages_ends_when_it_takes_too_long(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            pulling.append(*["A"] * 100)
            answer = pulling.pull(0, subscription="TAGS = 'B'", expression_type=SQL92)
            assert answer is not None
            assert (answer.code, offsets(answer)[1]) == (C.PULL_RETRY_IMMEDIATELY, 100)
            pulling.clock.monotonic_s = itertools.count(1000.0, 0.001).__next__  # A millisecond a look.
            answer = pulling.pull(0, subscription="TAGS = 'B'", expression_type=SQL92)
            assert answer is not None
            assert answer.code == C.PULL_RETRY_IMMEDIATELY
            assert 0 < offsets(answer)[1] < 40

        run(tmp_path, scenario)

    def test_pulls_of_one_turn_share_the_time_to_look(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            pulling.append(*["A"] * 100)
            pulling.clock.monotonic_s = itertools.count(1000.0, 0.001).__next__  # A millisecond a look.
            answers = [pulling.pull(0, subscription="TAGS = 'B'", expression_type=SQL92) for _ in range(3)]
            seen = [offsets(answer)[1] for answer in answers if answer is not None]
            assert seen[0] > 1
            assert seen[1:] == [1, 1]
            await turns()
            answer = pulling.pull(0, subscription="TAGS = 'B'", expression_type=SQL92)
            assert answer is not None
            assert offsets(answer)[1] == seen[0]

        run(tmp_path, scenario)

    def test_pulls_that_wait_look_in_turns_and_none_is_lost(self, tmp_path: Path) -> None:
        async def scenario(pulling: _Pulling) -> None:
            others = [FakeConnection() for _ in range(20)]
            for connection in others:
                pulling.park(subscription="TAGS = 'B'", expression_type=SQL92, connection=connection)
            pulling.clock.monotonic_s = itertools.count(1000.0, 0.001).__next__  # A millisecond a look.
            pulling.append("B")
            await asyncio.sleep(0)
            answered = [bool(connection.sent) for connection in others]
            assert answered == sorted(answered, reverse=True)
            assert 0 < sum(answered) < 10
            pulling.handler.on_lost(others[-1])  # pyright: ignore[reportArgumentType]
            await until(lambda: all(connection.sent for connection in others[:-1]))
            assert len(pulling.handler._parked) == 0
            assert not others[-1].sent

        run(tmp_path, scenario)

    def test_pulls_that_have_not_had_their_turn_are_refused_when_the_broker_stops(
        self, tmp_path: Path
    ) -> None:
        async def scenario(pulling: _Pulling) -> None:
            pulling.park(subscription="TAGS = 'B'", expression_type=SQL92)
            pulling.append("B")
            pulling.handler.close()
            assert (await pulling.answer()).code == C.SYSTEM_BUSY
            await turns()
            assert not pulling.connection.sent

        run(tmp_path, scenario)

    def test_messages_that_come_again_are_not_filtered(self, tmp_path: Path) -> None:
        """A client subscribes to its retry topic by tags and wants all of it, whatever it filters by."""

        async def scenario(pulling: _Pulling) -> None:
            topic = retry_topic(G)
            pulling.state.topics.put(TopicConfig(topic_name=topic))
            pulling.heartbeat(sql("TAGS = 'B'"), subscribe(topic, "*", sub_version=5))
            pulling.state.store.append(make_message(0, topic=topic, tag="A"))
            pulling.state.store.dispatch()
            answer = pulling.pull(0, topic=topic, sys_flag=0, sub_version=5)
            assert answer is not None
            assert bodies(answer) == [b"message 0 "]

        run(tmp_path, scenario)


READ_SLAVE = msgspec.structs.replace(SETTINGS, broker_role=BrokerRole.SLAVE, broker_id=1)


def _with_right(pulling: _Pulling, found: Permitted) -> GivenRight:
    right = pulling.state.read_right = GivenRight(found)
    return right


@pytest.mark.behaviour("S3-16")
def test_every_pull_is_refused_while_another_broker_is_read(tmp_path: Path) -> None:
    async def scenario(pulling: _Pulling) -> None:
        right = _with_right(pulling, MASTER_IS_READ)
        pulling.append("A")
        assert pulling.code() == C.SUCCESS
        right.found = OTHER_IS_READ
        refused = pulling.pull(sys_flag=SUBSCRIPTION | COMMIT, consumer_offset=1)
        assert refused is not None
        assert (refused.code, refused.remark) == (
            C.NO_PERMISSION,
            f"{OWN} is not readable: another one is read",
        )
        assert pulling.state.offsets.find(G, TOPIC, 0) is None

    run(tmp_path, scenario)


@pytest.mark.behaviour("S3-16")
def test_a_pull_that_waited_is_judged_again_when_a_message_comes(tmp_path: Path) -> None:
    async def scenario(pulling: _Pulling) -> None:
        right = _with_right(pulling, MASTER_IS_READ)
        pulling.park()
        right.found = OTHER_IS_READ
        pulling.append("A")
        answer = await pulling.answer()
        assert answer.code == C.NO_PERMISSION
        assert answer.ext["readerAddress"] == OTHER

    run(tmp_path, scenario)


def test_all_that_wait_are_refused_at_once_and_name_who_is_read(tmp_path: Path) -> None:
    async def scenario(pulling: _Pulling) -> None:
        right = _with_right(pulling, MASTER_IS_READ)
        for queue_id in range(3):
            pulling.park(queue_id=queue_id)
        pulling.handler.refuse_all(right.refuse(OTHER_IS_READ))
        refused = pulling.connection.take_sent()
        assert {(one.code, one.ext["readerAddress"], one.ext["readTerm"]) for one in refused} == {
            (C.NO_PERMISSION, OTHER, "2")
        }
        assert len(refused) == 3
        # What comes later is served.
        pulling.park()
        pulling.append("A")
        assert (await pulling.answer()).code == C.SUCCESS

    run(tmp_path, scenario)


def test_stock_clients_whose_pulls_wait_come_again_at_once_where_they_are_relayed(tmp_path: Path) -> None:
    async def scenario(pulling: _Pulling) -> None:
        right = _with_right(pulling, MASTER_IS_READ)
        pulling.append("A", "A")
        pulling.park(2, language=Language.JAVA)
        pulling.park(2, language=Language.PYTHON)
        pulling.handler.refuse_all(right.refuse(OTHER_IS_READ), is_relayed=True)
        again, refused = pulling.connection.take_sent()
        assert (again.code, again.ext["nextBeginOffset"]) == (C.PULL_RETRY_IMMEDIATELY, "2")
        assert refused.code == C.NO_PERMISSION

    run(tmp_path, scenario)


def test_a_slave_that_is_read_takes_the_offsets_of_pulls_and_stands_at_the_masters_place(
    tmp_path: Path,
) -> None:
    async def scenario(pulling: _Pulling) -> None:
        # What its master made before it went.
        pulling.state.groups.table.groups[G] = SubscriptionGroupConfig(group_name=G, broker_id=1)
        pulling.append("A", "B")
        pulling.pull(sys_flag=SUBSCRIPTION | COMMIT, consumer_offset=1)
        assert pulling.state.offsets.find(G, TOPIC, 0) is None
        _with_right(pulling, SLAVE_IS_READ)
        answer = pulling.pull(1, sys_flag=SUBSCRIPTION | COMMIT, consumer_offset=1)
        assert answer is not None
        assert offsets(answer) == (0, 2, 0, 2)
        assert pulling.state.offsets.find(G, TOPIC, 0) == 1
        # The master may have had more: who is ahead of the slave waits and is not moved back.
        ahead = pulling.pull(9)
        assert ahead is not None
        assert (ahead.code, offsets(ahead)[1]) == (C.PULL_NOT_FOUND, 9)

    settings = msgspec.structs.replace(READ_SLAVE, slave_read_enable=True)
    run(tmp_path, scenario, settings=settings)


def test_a_slave_that_is_read_makes_no_groups(tmp_path: Path) -> None:
    async def scenario(pulling: _Pulling) -> None:
        _with_right(pulling, SLAVE_IS_READ)
        refused = pulling.pull(consumer_group="new")
        assert refused is not None
        assert refused.code == C.SUBSCRIPTION_GROUP_NOT_EXIST
        assert refused.remark == "group new does not exist, and a slave makes none; create it at the master"

    run(tmp_path, scenario, settings=READ_SLAVE)
