import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tanist.broker.handlers import clients, offsets, resets
from tanist.broker.settings import BrokerSettings
from tanist.broker.state import BrokerState
from tanist.errors import ResponseError
from tanist.model.groups import ConsumeFromWhere, ConsumeType, MessageModel
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.model.topics import TopicConfig
from tanist.protocol.bodies import decode_java_json, encode_body
from tanist.protocol.bodies.client import ConsumerData, HeartbeatData
from tanist.protocol.bodies.reset import (
    OffsetRows,
    OffsetTable,
    QueueReceipts,
    QueueTarget,
    QueueTargets,
    ReceiptState,
    ResetOrders,
    ResetOrderView,
    ResetState,
)
from tanist.protocol.bodies.running import ConsumerStatus
from tanist.protocol.codes import Language, RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.base import Header
from tanist.protocol.headers.offsets import QueryConsumerOffsetRequest, UpdateConsumerOffsetRequest
from tanist.protocol.headers.reset import (
    ApplyResetRequest,
    DecideResetRequest,
    GetResetOrdersRequest,
    ResetOffsetRequest,
    ResetReceiptRequest,
)
from tanist.protocol.java_json import ObjectKeyed
from tests.support.broker_tables import SETTINGS, open_state
from tests.support.clocks import FakeClock
from tests.support.fake_connection import FakeConnection
from tests.support.messages import TOPIC, make_message

START_MS = 1_700_000_000_000
STEP_MS = 100


class Member(FakeConnection):
    """A consumer of the group, which answers where it stands when the test says so."""

    __slots__ = ("awaited", "client_id", "language", "loop", "version")

    def __init__(
        self, client_id: str, *, language: Language = Language.JAVA, version: int = 479, port: int = 4000
    ) -> None:
        super().__init__(f"10.0.0.{client_id[-1]}:{port}")
        self.loop: asyncio.AbstractEventLoop | None = None
        self.client_id = client_id
        self.language = language
        self.version = version
        self.awaited: list[asyncio.Future[Command]] = []

    def request(self, command: Command, timeout_s: float) -> asyncio.Future[Command]:
        assert timeout_s == 5.0
        assert command.code == RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT
        assert self.loop is not None
        self.awaited.append(self.loop.create_future())
        return self.awaited[-1]

    def stands(self, **places: int) -> None:
        """Answer the last question: ``q0=5`` is queue 0 at offset 5."""
        table = {
            MessageQueue(topic=TOPIC, broker_name="broker-a", queue_id=int(name[1:])): QueueOffset(offset)
            for name, offset in places.items()
        }
        body = encode_body(ConsumerStatus(queue_table=ObjectKeyed(table)))
        self.awaited[-1].set_result(Command(0, body=body))
        assert self.loop is not None
        self.loop.run_until_complete(asyncio.sleep(0))

    def orders(self) -> list[Command]:
        return [it for it in self.take_sent() if it.code == RequestCode.RESET_CONSUMER_CLIENT_OFFSET]


class Desk:
    """An operator at a broker with group G, whose topic has two queues of ten messages."""

    def __init__(self, state: BrokerState, clock: FakeClock) -> None:
        self.state = state
        self.clock = clock
        self.operator = FakeConnection("10.9.9.9:1")
        self.loop = asyncio.new_event_loop()
        self._routes = resets.routes(state) | offsets.routes(state) | clients.routes(state)

    def ask(
        self,
        code: int,
        header: Header,
        *,
        body: bytes = b"",
        by: FakeConnection | None = None,
        language: Language = Language.JAVA,
        is_one_way: bool = False,
        **ext: str,
    ) -> Command:
        request = Command.request(code, header, body=body, opaque=7, is_one_way=is_one_way)
        request.language = language
        request.ext.update(ext)
        answer = self._routes[code](request, by or self.operator)
        assert isinstance(answer, Command)
        return answer

    def join(self, member: Member, *, is_broadcast: bool = False, is_active: bool = False) -> Member:
        consumer = ConsumerData(
            group_name="G",
            consume_type=ConsumeType.ACTIVELY if is_active else ConsumeType.PASSIVELY,
            message_model=MessageModel.BROADCASTING if is_broadcast else MessageModel.CLUSTERING,
            consume_from_where=ConsumeFromWhere.LAST_OFFSET,
        )
        member.loop = self.loop
        heartbeat = HeartbeatData(client_id=member.client_id, consumer_data_set=[consumer])
        request = Command.request(RequestCode.HEART_BEAT, body=encode_body(heartbeat))
        request.language, request.version = member.language, member.version
        self._routes[RequestCode.HEART_BEAT](request, member)
        return member

    def commit(self, offset: int, *, queue_id: int = 0, by: FakeConnection, is_one_way: bool = True) -> None:
        header = UpdateConsumerOffsetRequest(
            consumer_group="G", topic=TOPIC, queue_id=queue_id, consumer_offset=QueueOffset(offset)
        )
        self.ask(RequestCode.UPDATE_CONSUMER_OFFSET, header, by=by, is_one_way=is_one_way)

    def query(self, *, queue_id: int = 0, by: FakeConnection) -> None:
        header = QueryConsumerOffsetRequest(consumer_group="G", topic=TOPIC, queue_id=queue_id)
        self.ask(RequestCode.QUERY_CONSUMER_OFFSET, header, by=by)

    def stands_at(self, queue_id: int = 0) -> int | None:
        return self.state.offsets.find("G", TOPIC, queue_id)

    def stand(self, *places: int) -> None:
        for queue_id, offset in enumerate(places):
            self.state.offsets.commit("G", TOPIC, queue_id, offset)

    def reset(
        self,
        timestamp_ms: int,
        *,
        is_force: bool = True,
        queue_id: int = -1,
        offset: int | None = None,
        language: Language = Language.JAVA,
        **ext: str,
    ) -> dict[int, int]:
        """What the answer to RocketMQ's request says of each queue."""
        header = ResetOffsetRequest(
            topic=TOPIC,
            group="G",
            timestamp_ms=timestamp_ms,
            is_force=is_force,
            queue_id=queue_id,
            queue_offset=None if offset is None else QueueOffset(offset),
        )
        answer = self.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header, language=language, **ext)
        assert answer.code == ResponseCode.SUCCESS
        return _places(answer.body)

    def apply(
        self,
        *targets: tuple[int, int | None, int],
        order_id: str = "o1",
        is_forced: bool = False,
        expires_after_ms: int = 86_400_000,
        caller: str = "ann",
        **ext: str,
    ) -> ResetOrderView:
        body = QueueTargets(
            targets=[
                QueueTarget(
                    queue_id=queue_id,
                    expected_offset=None if expected is None else QueueOffset(expected),
                    target=QueueOffset(target),
                )
                for queue_id, expected, target in targets
            ]
        )
        header = ApplyResetRequest(
            order_id=order_id,
            topic=TOPIC,
            group="G",
            caller=caller,
            is_forced=is_forced,
            expires_after_ms=expires_after_ms,
        )
        answer = self.ask(RequestCode.APPLY_RESET, header, body=encode_body(body), **ext)
        return decode_java_json(answer.body, ResetOrderView)

    def view(self, order_id: str = "o1") -> ResetOrderView:
        answer = self.ask(RequestCode.GET_RESET_ORDERS, GetResetOrdersRequest(order_id=order_id))
        return decode_java_json(answer.body, ResetOrders).orders[0]

    def list(self) -> ResetOrders:
        answer = self.ask(RequestCode.GET_RESET_ORDERS, GetResetOrdersRequest())
        return decode_java_json(answer.body, ResetOrders)

    def decide(
        self, order_id: str, *, is_approved: bool = True, decider: str = "bob", **ext: str
    ) -> ResetOrderView:
        header = DecideResetRequest(order_id=order_id, decider=decider, is_approved=is_approved)
        answer = self.ask(RequestCode.DECIDE_RESET, header, **ext)
        return decode_java_json(answer.body, ResetOrderView)

    def say(self, member: Member, said: QueueReceipts, order_id: str = "o1") -> None:
        header = ResetReceiptRequest(order_id=order_id, topic=TOPIC, group="G", client_id=member.client_id)
        self.ask(RequestCode.RESET_RECEIPT, header, body=encode_body(said), by=member)

    def receipts(self, order_id: str = "o1") -> dict[str, ReceiptState]:
        return {receipt.client_id: receipt.state for receipt in self.view(order_id).receipts}


def _places(body: bytes | memoryview) -> dict[int, int]:
    table = decode_java_json(body, OffsetTable).offset_table
    return {queue.queue_id: int(offset) for queue, offset in table.items()}


def _open(tmp_path: Path, settings: BrokerSettings = SETTINGS) -> Desk:
    clock = FakeClock(now_ms=START_MS)
    state = open_state(tmp_path, settings, clock=clock)
    state.topics.put(TopicConfig(topic_name=TOPIC, read_queue_count=2, write_queue_count=2))
    state.groups.ensure("G")
    for number in range(10):
        for queue_id in (0, 1):
            state.store.append(make_message(number, queue_id=queue_id))
        clock.advance_ms(STEP_MS)
    state.store.dispatch()
    return Desk(state, clock)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = _open(tmp_path)
    with desk.state.store, closing(desk.loop):
        yield desk


@pytest.mark.behaviour("S4-5", "S4-6", "S4-7")
def test_without_force_a_reset_goes_back_and_never_forward(desk: Desk) -> None:
    desk.stand(8, 2)
    assert desk.reset(START_MS + 5 * STEP_MS, is_force=False) == {0: 5, 1: 2}
    assert (desk.stands_at(0), desk.stands_at(1)) == (5, 2)


@pytest.mark.behaviour("S4-2", "S4-7")
def test_with_force_it_goes_to_the_time_wherever_that_is(desk: Desk) -> None:
    desk.stand(8, 2)
    assert desk.reset(START_MS + 5 * STEP_MS) == {0: 5, 1: 5}


def test_minus_one_is_the_end_and_a_time_to_come_is_too(desk: Desk) -> None:
    desk.stand(1, 2)
    assert desk.reset(-1) == {0: 10, 1: 10}
    assert desk.reset(START_MS + 10**9) == {0: 10, 1: 10}


def test_a_time_before_the_first_message_is_the_beginning(desk: Desk) -> None:
    desk.stand(1, 2)
    assert desk.reset(0) == {0: 0, 1: 0}


def test_one_queue_goes_to_the_offset_that_is_named(desk: Desk) -> None:
    desk.stand(1, 2)
    assert desk.reset(-1, queue_id=1, offset=7) == {1: 7}
    assert (desk.stands_at(0), desk.stands_at(1)) == (1, 7)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"timestamp_ms": -2}, "timestamp -2"),
        ({"timestamp_ms": -1, "queue_id": 2}, "queue 2"),
        ({"timestamp_ms": -1, "queue_id": 0, "offset": 11}, r"outside \[0, 10\]"),
        ({"timestamp_ms": -1, "queue_id": 0, "offset": -2}, r"outside \[0, 10\]"),
    ],
)
def test_what_can_not_be_is_refused_and_nothing_is_done(
    desk: Desk, asked: dict[str, int], reason: str
) -> None:
    desk.stand(1, 2)
    with pytest.raises(ResponseError, match=reason):
        desk.reset(**asked)
    assert (desk.stands_at(0), desk.list().orders) == (1, [])


@pytest.mark.behaviour("S4-9")
def test_a_clustering_group_without_an_offset_is_refused_and_nobody_is_told(desk: Desk) -> None:
    member = desk.join(Member("c1"))
    desk.stand(5)
    with pytest.raises(ResponseError, match="THe consumer group <G> not exist") as refused:
        desk.reset(-1)
    assert refused.value.code == ResponseCode.SYSTEM_ERROR
    assert (member.orders(), desk.stands_at(0)) == ([], 5)


@pytest.mark.behaviour("S4-21", "S4-22", "S4-23", "S4-24", "S4-30")
def test_every_member_of_a_broadcasting_group_is_told_the_offset_at_the_time(desk: Desk) -> None:
    members = [desk.join(Member(name), is_broadcast=True) for name in ("c1", "c2")]
    assert desk.reset(START_MS + 5 * STEP_MS, is_force=False) == {0: 5, 1: 5}
    assert [_places(order.body) for member in members for order in member.orders()] == [{0: 5, 1: 5}] * 2
    assert desk.stands_at(0) is None


@pytest.mark.behaviour("S4-1", "S4-4", "S4-8")
def test_every_member_is_told_the_whole_table_once(desk: Desk) -> None:
    desk.stand(8, 2)
    members = [desk.join(Member(name)) for name in ("c1", "c2")]
    desk.reset(START_MS, is_force=True)
    for member in members:
        (order,) = member.orders()
        assert order.is_one_way
        assert order.ext["isForce"] == "true"
        assert order.ext["orderId"] == desk.list().orders[0].order_id
        assert _places(order.body) == {0: 0, 1: 0}


def test_clients_in_cpp_get_a_list_and_others_never_do(desk: Desk) -> None:
    desk.stand(8, 2)
    old, new = desk.join(Member("c1", language=Language.CPP)), desk.join(Member("c2"))
    desk.reset(START_MS, language=Language.CPP)
    rows = decode_java_json(old.orders()[0].body, OffsetRows).offset_table
    assert [(row.queue_id, row.queue_offset) for row in rows] == [(0, 0), (1, 0)]
    assert _places(new.orders()[0].body) == {0: 0, 1: 0}


def test_an_offline_group_is_moved_on_the_broker_which_says_so(desk: Desk) -> None:
    desk.stand(8, 2)
    header = ResetOffsetRequest(topic=TOPIC, group="G", timestamp_ms=-1, is_force=True)
    answer = desk.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
    assert "changed on the broker" in (answer.remark or "")
    assert (desk.stands_at(0), desk.stands_at(1)) == (10, 10)
    (order,) = desk.list().orders
    assert (order.state, order.before, order.receipts) == (ResetState.APPLIED, {0: 8, 1: 2}, [])


@pytest.mark.parametrize(
    ("topic", "group", "code"),
    [
        ("Nothing", "G", ResponseCode.TOPIC_NOT_EXIST),
        (TOPIC, "Nobody", ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST),
        (TOPIC, "CID_RMQ_SYS_TRANS", ResponseCode.NO_PERMISSION),
    ],
)
def test_unknown_topics_and_groups_have_answers_of_their_own(
    desk: Desk, topic: str, group: str, code: int
) -> None:
    header = ResetOffsetRequest(topic=topic, group=group, timestamp_ms=-1, is_force=True)
    with pytest.raises(ResponseError) as refused:
        desk.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
    assert refused.value.code == code


def test_an_order_sets_all_its_queues_if_the_group_stands_where_it_was(desk: Desk) -> None:
    desk.stand(8, 2)
    order = desk.apply((0, 8, 3), (1, 2, 9))
    assert (order.state, order.before, order.moved) == (ResetState.APPLIED, {0: 8, 1: 2}, {})
    assert (desk.stands_at(0), desk.stands_at(1)) == (3, 9)


def test_an_order_sets_no_queue_if_the_group_has_moved_in_one(desk: Desk) -> None:
    desk.stand(8, 2)
    order = desk.apply((0, 8, 3), (1, 1, 9))
    assert (order.state, order.moved) == (ResetState.MOVED, {1: 2})
    assert (desk.stands_at(0), desk.stands_at(1)) == (8, 2)


def test_a_forced_order_goes_on_and_tells_where_the_group_was_found(desk: Desk) -> None:
    desk.stand(8)
    order = desk.apply((0, 8, 3), (1, 1, 9), is_forced=True)
    assert (order.state, order.moved, order.before) == (ResetState.APPLIED, {1: -1}, {0: 8})
    assert (desk.stands_at(0), desk.stands_at(1)) == (3, 9)


def test_the_same_order_once_more_changes_nothing_and_another_of_its_id_is_refused(desk: Desk) -> None:
    desk.stand(8, 2)
    first = desk.apply((0, 8, 3))
    desk.stand(5, 2)
    assert desk.apply((0, 8, 3)) == first
    assert desk.stands_at(0) == 5
    with pytest.raises(ResponseError, match="another content"):
        desk.apply((0, 5, 4))


@pytest.mark.parametrize(
    ("targets", "reason"),
    [
        ([], "names no queue"),
        ([(0, 8, 3), (0, 8, 3)], "named twice"),
        ([(2, None, 0)], "queue 2: the topic has 2"),
        ([(-1, None, 0)], "queue -1"),
        ([(0, 8, -1)], r"target -1 is outside \[0, 10\]"),
        ([(0, 8, 11)], r"target 11 is outside \[0, 10\]"),
        ([(0, -5, 3)], "can not stand at -5"),
    ],
)
def test_bad_targets_are_refused_before_anything_is_done(
    desk: Desk, targets: list[tuple[int, int | None, int]], reason: str
) -> None:
    desk.stand(8, 2)
    with pytest.raises(ResponseError, match=reason):
        desk.apply(*targets)
    assert (desk.stands_at(0), desk.list().orders) == (8, [])
