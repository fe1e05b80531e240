import asyncio
import logging
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import pytest

from tanist.broker.handlers import clients, offsets, reset_questions, resets
from tanist.broker.handlers.pull import PullHandler
from tanist.broker.resets import carrying
from tanist.broker.resets.order_file import OrderFile
from tanist.broker.resets.table import OrderTable, set_unsaved
from tanist.broker.state import BrokerState
from tanist.broker.table_safety import Copies
from tanist.errors import RequestTimeout, ResponseError
from tanist.ha.replicas import Dialect, Replica, ReplicaTable
from tanist.model.groups import ConsumeFromWhere, ConsumeType, MessageModel
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.model.topics import TopicConfig
from tanist.protocol.bodies import decode_java_json, encode_body
from tanist.protocol.bodies.client import ConsumerData, HeartbeatData
from tanist.protocol.bodies.reset import (
    OffsetRows,
    OffsetTable,
    QueueReceipt,
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
from tanist.protocol.ha_link import AckKind
from tanist.protocol.headers.base import Header
from tanist.protocol.headers.offsets import QueryConsumerOffsetRequest, UpdateConsumerOffsetRequest
from tanist.protocol.headers.pull import PullMessageRequest, PullMessageResponse, PullSysFlag
from tanist.protocol.headers.reset import (
    ApplyResetRequest,
    DecideResetRequest,
    GetResetOrdersRequest,
    InvokeConsumerStatusRequest,
    ResetOffsetRequest,
    ResetReceiptRequest,
)
from tanist.protocol.java_json import ObjectKeyed
from tanist.protocol.signature import ACCESS_KEY
from tanist.store.disk import Disk
from tests.support.broker_tables import SETTINGS, open_offsets, open_state
from tests.support.clocks import FakeClock
from tests.support.conditions import turns
from tests.support.failing_disk import FailingDisk
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
        """Answer the last question, and have the answer heard."""
        self.answer(**places)
        assert self.loop is not None
        self.loop.run_until_complete(asyncio.sleep(0))

    def answer(self, **places: int) -> None:
        """Answer the last question: ``q0=5`` is queue 0 at offset 5."""
        table = {
            MessageQueue(topic=TOPIC, broker_name="broker-a", queue_id=int(name[1:])): QueueOffset(offset)
            for name, offset in places.items()
        }
        body = encode_body(ConsumerStatus(queue_table=ObjectKeyed(table)))
        self.awaited[-1].set_result(Command(0, body=body))

    def orders(self) -> list[Command]:
        return [it for it in self.take_sent() if it.code == RequestCode.RESET_CONSUMER_CLIENT_OFFSET]


class Desk:
    """An operator at a broker with group G, whose topic has two queues of ten messages."""

    def __init__(self, state: BrokerState, clock: FakeClock) -> None:
        self.state = state
        self.clock = clock
        self.operator = FakeConnection("10.9.9.9:1")
        self.loop = asyncio.new_event_loop()
        self._routes = (
            resets.routes(state)
            | reset_questions.routes(state)
            | offsets.routes(state)
            | clients.routes(state)
        )

    def ask(
        self,
        code: int,
        header: Header,
        *,
        body: bytes = b"",
        by: FakeConnection | None = None,
        language: Language = Language.JAVA,
        is_one_way: bool = False,
        access_key: str | None = None,
    ) -> Command:
        request = Command.request(code, header, body=body, opaque=7, is_one_way=is_one_way)
        request.language = language
        if access_key is not None:
            request.ext[ACCESS_KEY] = access_key
        answer = self._routes[code](request, by or self.operator)
        assert isinstance(answer, Command)
        return answer

    def serve(self, request: Command) -> object:
        return self._routes[request.code](request, self.operator)

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

    def commit(
        self,
        offset: int,
        *,
        queue_id: int = 0,
        by: FakeConnection,
        is_one_way: bool = True,
        client_id: str | None = None,
    ) -> None:
        header = UpdateConsumerOffsetRequest(
            consumer_group="G",
            topic=TOPIC,
            queue_id=queue_id,
            consumer_offset=QueueOffset(offset),
            client_id=client_id,
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
        answer = self.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header, language=language)
        assert answer.code == ResponseCode.SUCCESS
        return _places(answer.body)

    def apply(
        self,
        *targets: tuple[int, int | None, int],
        order_id: str = "o1",
        is_forced: bool = False,
        expires_after_ms: int = 86_400_000,
        caller: str = "ann",
        access_key: str | None = None,
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
        answer = self.ask(RequestCode.APPLY_RESET, header, body=encode_body(body), access_key=access_key)
        return decode_java_json(answer.body, ResetOrderView)

    def view(self, order_id: str = "o1") -> ResetOrderView:
        answer = self.ask(RequestCode.GET_RESET_ORDERS, GetResetOrdersRequest(order_id=order_id))
        return decode_java_json(answer.body, ResetOrders).orders[0]

    def list(self) -> ResetOrders:
        answer = self.ask(RequestCode.GET_RESET_ORDERS, GetResetOrdersRequest())
        return decode_java_json(answer.body, ResetOrders)

    def decide(
        self,
        order_id: str,
        *,
        is_approved: bool = True,
        decider: str = "bob",
        access_key: str | None = None,
    ) -> ResetOrderView:
        header = DecideResetRequest(order_id=order_id, decider=decider, is_approved=is_approved)
        answer = self.ask(RequestCode.DECIDE_RESET, header, access_key=access_key)
        return decode_java_json(answer.body, ResetOrderView)

    def say(self, member: Member, said: QueueReceipts, order_id: str = "o1", *, applied_ms: int = 0) -> None:
        header = ResetReceiptRequest(
            order_id=order_id, topic=TOPIC, group="G", client_id=member.client_id, applied_ms=applied_ms
        )
        self.ask(RequestCode.RESET_RECEIPT, header, body=encode_body(said), by=member)

    def receipts(self, order_id: str = "o1") -> dict[str, ReceiptState]:
        return {receipt.client_id: receipt.state for receipt in self.view(order_id).receipts}


def _places(body: bytes | memoryview) -> dict[int, int]:
    table = decode_java_json(body, OffsetTable).offset_table
    return {queue.queue_id: int(offset) for queue, offset in table.items()}


@contextmanager
def _open(tmp_path: Path, *, disk: Disk | None = None, **settings: bool) -> Generator[Desk]:
    clock = FakeClock(now_ms=START_MS)
    state = open_state(tmp_path, msgspec.structs.replace(SETTINGS, **settings), clock=clock)
    state.resets = OrderTable(OrderFile(disk or Disk(), tmp_path))
    state.topics.put(TopicConfig(topic_name=TOPIC, read_queue_count=2, write_queue_count=2))
    state.groups.ensure("G")
    for number in range(10):
        for queue_id in (0, 1):
            state.store.append(make_message(number, queue_id=queue_id))
        clock.advance_ms(STEP_MS)
    state.store.dispatch()
    desk = Desk(state, clock)
    with state.store, closing(desk.loop):
        yield desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with _open(tmp_path) as desk:
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
        ((-2, -1, None), "timestamp -2"),
        ((-1, 2, None), "queue 2"),
        ((-1, 0, 11), r"outside \[0, 10\]"),
        ((-1, 0, -2), r"outside \[0, 10\]"),
    ],
)
def test_what_can_not_be_is_refused_and_nothing_is_done(
    desk: Desk, asked: tuple[int, int, int | None], reason: str
) -> None:
    desk.stand(1, 2)
    with pytest.raises(ResponseError, match=reason):
        desk.reset(asked[0], queue_id=asked[1], offset=asked[2])
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


def test_an_order_says_in_which_epoch_its_teller_is_master(desk: Desk) -> None:
    desk.stand(8, 2)
    member = desk.join(Member("c1"))
    desk.reset(START_MS)
    desk.state.epoch = 3
    desk.reset(START_MS + STEP_MS)
    assert [order.ext.get("masterEpoch") for order in member.orders()] == [None, "3"]


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


# Receipts


@pytest.mark.behaviour("S4-49", "S4-50")
def test_the_log_tells_who_began_and_of_each_client_only_when_it_has_moved(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="tanist.broker")
    desk.stand(8, 2)
    first, second = desk.join(Member("c1")), desk.join(Member("c2"))
    desk.reset(START_MS, is_force=False)
    assert (
        f"[reset-offset] reset offset started by 10.9.9.9:1. topic={TOPIC}, group=G, "
        f"timestamp={START_MS}, isForce=false"
    ) in caplog.messages
    first.stands(q0=8)
    second.stands(q1=2)
    assert not any("success" in line for line in caplog.messages)
    desk.commit(0, by=first)
    assert [line for line in caplog.messages if "success" in line] == [
        f"[reset-offset] reset offset success. topic={TOPIC}, group=G, clientId=c1"
    ]


@pytest.mark.behaviour("S4-18")
def test_a_commit_under_way_does_not_overwrite_the_reset_and_later_ones_count(desk: Desk) -> None:
    desk.stand(8, 2)
    member = desk.join(Member("c1"))
    desk.apply((0, 8, 3))
    desk.commit(9, by=member)
    assert desk.stands_at() == 3
    desk.commit(3, by=member)
    desk.query(by=member)
    desk.commit(4, by=member)
    assert desk.stands_at() == 4


def test_a_receipt_is_believed_from_the_client_itself_alone(desk: Desk) -> None:
    desk.stand(8, 2)
    ours, other = (desk.join(Member(name, language=Language.PYTHON)) for name in ("c1", "c2"))
    desk.apply((0, 8, 3))
    said = QueueReceipts(
        queues=[QueueReceipt(queue_id=0, old_offset=QueueOffset(8), new_offset=QueueOffset(3))]
    )
    liar = Member("c1")
    with pytest.raises(ResponseError, match="only a client itself"):
        desk.say(liar, said)
    desk.say(ours, said)
    assert desk.receipts() == {"c1": ReceiptState.CONFIRMED, "c2": ReceiptState.TOLD}
    with pytest.raises(ResponseError, match="not known"):
        desk.say(other, said, order_id="another")


def test_a_receipt_is_not_believed_of_the_same_order_as_it_was_given_before_a_switch_undid_it(
    desk: Desk,
) -> None:
    desk.stand(8, 2)
    ours = desk.join(Member("c1", language=Language.PYTHON))
    applied_ms = desk.apply((0, 8, 3)).applied_ms
    said = QueueReceipts(
        queues=[QueueReceipt(queue_id=0, old_offset=QueueOffset(8), new_offset=QueueOffset(3))]
    )
    with pytest.raises(ResponseError, match="given again") as refused:
        desk.say(ours, said, applied_ms=applied_ms - 1)
    assert not refused.value.retriable
    assert desk.receipts() == {"c1": ReceiptState.TOLD}
    desk.say(ours, said, applied_ms=applied_ms)
    assert desk.receipts() == {"c1": ReceiptState.CONFIRMED}


def test_a_client_that_is_gone_is_told_when_it_returns_until_the_order_expires(desk: Desk) -> None:
    first = desk.join(Member("c1"), is_broadcast=True)
    desk.apply((0, None, 3), (1, None, 3), expires_after_ms=60_000)
    clients.on_lost(desk.state, first)
    assert desk.receipts() == {"c1": ReceiptState.PENDING}
    again = desk.join(Member("c1", port=4001), is_broadcast=True)
    assert len(again.orders()) == 1
    desk.clock.advance_ms(60_000)
    carrying.on_tick(desk.state)
    assert desk.view().state is ResetState.EXPIRED
    late = desk.join(Member("c2"), is_broadcast=True)
    assert (late.orders(), desk.state.resets.watched) == ([], {})


def test_who_returns_is_told_where_the_group_stands_in_queues_that_another_has_taken(desk: Desk) -> None:
    desk.stand(8, 2)
    first = desk.join(Member("c1"))
    desk.apply((0, 8, 3), (1, 2, 1))
    clients.on_lost(desk.state, first)
    other = desk.join(Member("c2"))
    desk.commit(3, by=other)
    desk.commit(6, by=other)
    again = desk.join(Member("c1", port=4001))
    assert [_places(order.body) for order in again.orders()] == [{0: 6, 1: 1}]


def test_a_commit_that_says_whose_it_is_may_come_ahead_of_the_heartbeat(desk: Desk) -> None:
    desk.stand(8, 2)
    member = desk.join(Member("c1", language=Language.PYTHON))
    desk.apply((0, 8, 3))
    clients.on_lost(desk.state, member)
    again = Member("c1", language=Language.PYTHON, port=4001)
    desk.commit(9, by=again, is_one_way=False, client_id="c1")
    assert desk.stands_at() == 3
    desk.commit(9, by=again, is_one_way=False)
    assert desk.stands_at() == 9


def test_a_client_that_falls_silent_is_one_that_has_left(desk: Desk) -> None:
    member = desk.join(Member("c1"), is_broadcast=True)
    desk.apply((0, None, 3), (1, None, 3))
    desk.clock.advance_ms(120_001)
    clients.on_tick(desk.state)
    assert member.closed_for is not None
    clients.on_lost(desk.state, member)
    assert desk.receipts() == {"c1": ReceiptState.PENDING}


def test_a_second_order_for_the_same_queues_supersedes_the_first(desk: Desk) -> None:
    desk.stand(8, 2)
    member = desk.join(Member("c1"))
    desk.apply((0, 8, 3))
    desk.apply((1, 2, 1), order_id="o2")
    desk.apply((0, 3, 5), order_id="o3")
    assert [order.state for order in desk.list().orders] == [
        ResetState.EXPIRED,
        ResetState.APPLIED,
        ResetState.APPLIED,
    ]
    assert desk.view("o1").receipts[0].reason == "order o3 came before it had moved"
    assert (len(member.orders()), desk.stands_at()) == (3, 5)


# What a switch may undo


def test_an_order_is_acknowledged_when_a_slave_has_it(desk: Desk) -> None:
    desk.stand(8, 2)
    replica = _have_a_slave(desk)
    asked: list[int] = []
    desk.state.table_safety.askers.append(asked.append)

    async def give() -> None:
        assert desk.serve(_order_of(target=3)) is None
        assert (desk.stands_at(), asked, desk.operator.take_sent()) == (3, [1], [])
        replica.tables_held = 1
        desk.state.table_safety.on_held()

    desk.loop.run_until_complete(give())
    (answer,) = desk.operator.take_sent()
    assert decode_java_json(answer.body, ResetOrderView).state is ResetState.APPLIED


def test_an_order_that_no_slave_has_in_time_is_done_and_not_acknowledged(desk: Desk) -> None:
    desk.stand(8, 2)
    _have_a_slave(desk, timeout_s=0.0)

    async def give() -> Command:
        assert desk.serve(_order_of(target=3)) is None
        # Its time is over at the next turn of the loop.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return desk.operator.take_sent()[0]

    for _ in range(2):
        answer = desk.loop.run_until_complete(give())
        assert answer.code == ResponseCode.FLUSH_SLAVE_TIMEOUT
        assert "order o1 is APPLIED at this broker: a switch may undo it" in (answer.remark or "")
    assert desk.stands_at() == 3


def _have_a_slave(desk: Desk, *, timeout_s: float = 60.0) -> Replica:
    table = ReplicaTable(fallbehind_max_bytes=1)
    replica = Replica("10.0.0.2:1", Dialect.TANIST, 1, True, 0, 0, AckKind.RECEIVED, 0)
    table.join(replica)
    desk.state.table_safety.use(Copies(table, lambda: 1, timeout_s))
    return replica


def _order_of(*, target: int) -> Command:
    wanted = QueueTarget(queue_id=0, expected_offset=None, target=QueueOffset(target))
    header = ApplyResetRequest(order_id="o1", topic=TOPIC, group="G", caller="ann", is_forced=True)
    body = encode_body(QueueTargets(targets=[wanted]))
    return Command.request(RequestCode.APPLY_RESET, header, body=body, opaque=7)


# Approval


@pytest.mark.behaviour("S4-31", "S4-32")
def test_a_skip_of_the_backlog_waits_for_another_and_goes_to_the_end_of_that_moment(tmp_path: Path) -> None:
    with _open(tmp_path, reset_needs_approval=True) as desk:
        desk.stand(1, 2)
        member = desk.join(Member("c1"))
        with pytest.raises(ResponseError, match="waits until somebody else approves"):
            desk.reset(-1)
        (waiting,) = desk.list().orders
        assert (waiting.state, member.orders(), desk.stands_at()) == (ResetState.WAITING, [], 1)
        desk.state.store.append(make_message(queue_id=0))
        desk.state.store.dispatch()
        done = desk.decide(waiting.order_id)
        assert (done.state, done.decider, done.is_forced) == (ResetState.APPLIED, "bob", True)
        assert (desk.stands_at(0), desk.stands_at(1)) == (11, 10)
        assert _places(member.orders()[0].body) == {0: 11, 1: 10}


def test_an_order_that_waits_may_be_rejected_once_and_by_another(tmp_path: Path) -> None:
    with _open(tmp_path, reset_needs_approval=True) as desk:
        desk.stand(8, 2)
        assert desk.apply((0, 8, 3)).state is ResetState.WAITING
        with pytest.raises(ResponseError, match="ann gave order o1"):
            desk.decide("o1", decider="ann")
        assert desk.decide("o1", is_approved=False).state is ResetState.REJECTED
        with pytest.raises(ResponseError, match="it is REJECTED"):
            desk.decide("o1")
        with pytest.raises(ResponseError, match="not known"):
            desk.decide("o7")
        assert desk.stands_at() == 8


def test_a_plan_that_is_old_when_it_is_approved_changes_nothing(tmp_path: Path) -> None:
    with _open(tmp_path, reset_needs_approval=True) as desk:
        desk.stand(8, 2)
        desk.apply((0, 8, 3))
        desk.stand(9, 2)
        done = desk.decide("o1")
        assert (done.state, done.moved, desk.stands_at()) == (ResetState.MOVED, {0: 9}, 9)


def test_an_order_that_nobody_decides_about_is_rejected_in_the_end(tmp_path: Path) -> None:
    with _open(tmp_path, reset_needs_approval=True) as desk:
        desk.stand(8, 2)
        desk.apply((0, 8, 3), expires_after_ms=1_000)
        desk.clock.advance_ms(1_000)
        carrying.on_tick(desk.state)
        order = desk.view()
        assert (order.state, order.decision_reason) == (ResetState.REJECTED, "nobody decided in time")


def test_where_accounts_are_checked_the_account_counts_and_not_what_is_said(tmp_path: Path) -> None:
    with _open(tmp_path, reset_needs_approval=True, acl_enable=True) as desk:
        desk.stand(8, 2)
        assert desk.apply((0, 8, 3), caller="somebody", access_key="key-a").caller == "key-a"
        with pytest.raises(ResponseError, match="key-a gave order o1"):
            desk.decide("o1", decider="another", access_key="key-a")
        assert desk.decide("o1", decider="key-a", access_key="key-b").decider == "key-b"


def test_where_accounts_are_checked_who_has_no_key_is_known_by_the_trusted_address(tmp_path: Path) -> None:
    with _open(tmp_path, acl_enable=True) as desk:
        desk.stand(8, 2)
        assert desk.apply((0, 8, 3), caller="somebody").caller == "trusted address 10.9.9.9"


# Told by the answers to pulls


def test_on_the_servers_side_a_pull_that_waits_is_answered_at_once_with_the_target(tmp_path: Path) -> None:
    async def scenario(desk: Desk) -> None:
        desk.stand(10, 10)
        member = desk.join(Member("c1"))
        member.loop = asyncio.get_running_loop()
        pulls = PullHandler(desk.state)
        desk.state.resets.wakers.append(pulls.on_reset)
        header = PullMessageRequest(
            consumer_group="G",
            topic=TOPIC,
            queue_id=0,
            queue_offset=QueueOffset(10),
            max_message_count=32,
            sys_flag=int(PullSysFlag.SUSPEND | PullSysFlag.SUBSCRIPTION),
            consumer_offset=QueueOffset(0),
            suspend_timeout_ms=15_000,
            subscription="*",
            sub_version=0,
        )
        assert pulls.pull(Command.request(RequestCode.PULL_MESSAGE, header, opaque=9), member) is None
        member.take_sent()
        desk.apply((0, 10, 3))
        (answer,) = member.take_sent()
        assert (answer.code, answer.remark) == (ResponseCode.PULL_OFFSET_MOVED, "OFFSET_RESET")
        assert answer.header(PullMessageResponse).next_begin_offset == 3
        pulls.close()

    with _open(tmp_path, use_server_side_reset_offset=True) as desk:
        asyncio.run(scenario(desk))


# What is kept


def test_orders_and_their_receipts_outlive_a_crash(tmp_path: Path) -> None:
    with _open(tmp_path) as desk:
        desk.stand(8, 2)
        desk.state.offsets.save()
        member = desk.join(Member("c1"))
        desk.apply((0, 8, 3))
        offsets_on_disk = open_offsets(tmp_path)
        assert offsets_on_disk.find("G", TOPIC, 0) == 8
        table = OrderTable(OrderFile(Disk(), tmp_path))
        set_unsaved(table, offsets_on_disk)
        assert offsets_on_disk.find("G", TOPIC, 0) == 3
        member.stands(q0=8)
        desk.commit(3, by=member)
        desk.state.resets.offsets_saved(desk.state.resets.unsaved())
        desk.state.resets.save()
    again = OrderTable(OrderFile(Disk(), tmp_path))
    (order,) = again.orders()
    assert [receipt.state for receipt in order.view().receipts] == [ReceiptState.CONFIRMED]
    assert (again.unsaved(), again.version) == ([], desk.state.resets.version)
    assert again.watched[("G", TOPIC)] == [order.watch]


def test_an_order_outlives_a_crash_that_takes_what_the_group_had_read_before_it(tmp_path: Path) -> None:
    with _open(tmp_path) as desk:
        desk.stand(5, 2)
        desk.state.offsets.save()
        desk.stand(8, 2)
        desk.apply((0, 8, 3))
        offsets_on_disk = open_offsets(tmp_path)
        assert offsets_on_disk.find("G", TOPIC, 0) == 5
        set_unsaved(OrderTable(OrderFile(Disk(), tmp_path)), offsets_on_disk)
        assert offsets_on_disk.find("G", TOPIC, 0) == 3


def test_the_audit_log_tells_who_did_what_from_where(tmp_path: Path) -> None:
    with _open(tmp_path, reset_needs_approval=True) as desk:
        desk.stand(8, 2)
        member = desk.join(Member("c1"))
        desk.apply((0, 8, 3))
        desk.decide("o1")
        member.stands(q0=8)
        desk.commit(3, by=member)
        desk.state.resets.save()
        entries = OrderFile(Disk(), tmp_path).last_audit(10)
        assert [(entry.event, entry.who, entry.address) for entry in entries] == [
            ("ASKED", "ann", "10.9.9.9:1"),
            ("APPROVED", "bob", "10.9.9.9:1"),
            ("APPLIED", "ann", "10.9.9.9:1"),
            ("CONFIRMED", "c1", "10.0.0.1:4000"),
        ]
        assert (entries[2].targets, entries[2].before) == ({0: 3}, {0: 8})


def test_an_order_that_can_not_be_saved_is_not_done(tmp_path: Path) -> None:
    disk = FailingDisk()
    with _open(tmp_path, disk=disk) as desk:
        desk.stand(8, 2)
        member = desk.join(Member("c1"))
        disk.is_sync_broken = True
        with pytest.raises(ResponseError, match="could not be saved"):
            desk.apply((0, 8, 3))
        assert (desk.stands_at(), member.orders(), desk.list().orders) == (8, [], [])
        disk.is_sync_broken = False
        assert desk.apply((0, 8, 3)).state is ResetState.APPLIED


# Questions


def test_a_question_for_orders_waits_until_one_has_changed(desk: Desk) -> None:
    desk.stand(8, 2)

    async def scenario() -> None:
        header = GetResetOrdersRequest(seen_version=desk.state.resets.version, wait_ms=10_000)
        request = Command.request(RequestCode.GET_RESET_ORDERS, header, opaque=3)
        assert desk.serve(request) is None
        desk.apply((0, 8, 3))
        await asyncio.sleep(0)
        (answer,) = desk.operator.take_sent()
        assert [order.order_id for order in decode_java_json(answer.body, ResetOrders).orders] == ["o1"]

    asyncio.run(scenario())


def test_an_order_that_is_not_known_has_an_answer_of_its_own(desk: Desk) -> None:
    with pytest.raises(ResponseError, match="not known to this broker") as refused:
        desk.view("o9")
    assert refused.value.code == ResponseCode.QUERY_NOT_FOUND


def test_operators_are_told_where_each_client_stands(desk: Desk) -> None:
    first, second = desk.join(Member("c1")), desk.join(Member("c2"))

    async def scenario() -> None:
        first.loop = second.loop = asyncio.get_running_loop()
        header = InvokeConsumerStatusRequest(topic=TOPIC, group="G")
        request = Command.request(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, header, opaque=3)
        assert desk.serve(request) is None
        first.answer(q0=5)
        second.awaited[-1].set_exception(RequestTimeout(second.peer, 221, 5.0))
        await turns(5)
        (answer,) = desk.operator.take_sent()
        table = decode_java_json(answer.body, ConsumerStatus).consumer_table
        queue = MessageQueue(topic=TOPIC, broker_name="broker-a", queue_id=0)
        assert table == {"c1": {queue: 5}}

    asyncio.run(scenario())


def test_of_a_group_without_members_nobody_can_be_asked(desk: Desk) -> None:
    with pytest.raises(ResponseError, match="no consumer online"):
        desk.ask(
            RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
            InvokeConsumerStatusRequest(topic=TOPIC, group="G"),
        )
