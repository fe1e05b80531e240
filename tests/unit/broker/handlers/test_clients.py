"""What clients say of themselves and what is asked about them, on the wire."""

from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from tanist.broker.client_limits import MAX_NEW_GROUPS
from tanist.broker.clients import SILENCE_LIMIT_MS, ClientTable
from tanist.broker.handlers import clients as handlers
from tanist.broker.heartbeat import MAX_HEARTBEAT_BYTES
from tanist.broker.locks import LOCK_LIFE_MS, QueueLocks
from tanist.broker.settings import BrokerSettings
from tanist.broker.state import BrokerState
from tanist.clock import steady_ms
from tanist.errors import RemoteProtocolError, ResponseError
from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.route import MessageQueue
from tanist.model.subscription import SQL92, SubscriptionData, subscribe
from tanist.model.topics import TopicSysFlag, retry_topic
from tanist.protocol.bodies import client as bodies
from tanist.protocol.bodies import decode_java_json, encode_body
from tanist.protocol.codes import Language, RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.frame import FrameDecoder
from tanist.protocol.headers import Header
from tanist.protocol.headers.client import HeartbeatResponse, UnregisterClientRequest
from tanist.protocol.headers.common import ConsumerGroupRequest
from tanist.protocol.headers.groups import ProducerGroupRequest
from tanist.protocol.response_errors import NotReadable
from tests.support import golden
from tests.support.broker_tables import open_groups, open_topics
from tests.support.clocks import FakeClock
from tests.support.fake_connection import FakeConnection
from tests.support.read_rights import OTHER_IS_READ, OWN, GivenRight

HEARTBEAT = decode_java_json(golden.load("bodies")["heartbeat_data"]["text"].encode(), bodies.HeartbeatData)
CLIENT_ID = "10.0.0.5@1234#5678"
Q0 = MessageQueue(topic="TopicA", broker_name="broker-a", queue_id=0)


class Desk:
    """A broker's tables, and its handlers to talk to."""

    def __init__(self, root: Path, **settings: Any) -> None:
        self.clock = FakeClock()
        config = BrokerSettings(broker_name="broker-a", **settings)
        none = cast("Any", None)
        self.state = BrokerState(
            settings=config,
            ha=none,
            config=none,
            store=none,
            topics=open_topics(root, config, clock=self.clock),
            groups=open_groups(root, config, clock=self.clock),
            offsets=none,
            clients=ClientTable(),
            locks=QueueLocks(),
            placing=none,
            delays=none,
            writer=none,
            replication=none,
            counters=none,
            upkeep=none,
            scrub=none,
            pull_progress=none,
            long_answers=none,
            clock=self.clock,
            store_host=b"",
            pid=1,
        )
        self._routes = handlers.routes(self.state)

    def handle(self, command: Command, connection: FakeConnection) -> Command:
        answer = self._routes[command.code](command, connection)
        assert isinstance(answer, Command)
        assert answer.is_response
        assert answer.opaque == command.opaque
        return answer

    def ask(
        self,
        code: RequestCode,
        header: Header | None = None,
        *,
        body: object = None,
        connection: FakeConnection | None = None,
    ) -> Command:
        payload = b"" if body is None else encode_body(body)
        command = Command.request(code, header, body=payload, opaque=77)
        return self.handle(command, connection or FakeConnection())

    def beat(self, connection: FakeConnection, **changes: Any) -> Command:
        """The heartbeat that a real client sent, with some members changed."""
        members = {name: getattr(HEARTBEAT, name) for name in HEARTBEAT.__struct_fields__}
        body = bodies.HeartbeatData(**(members | changes))
        return self.ask(RequestCode.HEART_BEAT, body=body, connection=connection)

    def refusal(self, code: RequestCode, header: Header | None = None, *, body: object = None) -> int:
        with pytest.raises(ResponseError) as refused:
            self.ask(code, header, body=body)
        assert refused.value.remark
        return refused.value.code


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
def connection() -> FakeConnection:
    return FakeConnection("10.0.0.5:40112")


def codes_sent(connection: FakeConnection) -> list[int]:
    return [command.code for command in connection.take_sent()]


# Heartbeats and goodbyes.


@pytest.mark.parametrize("form", ["json", "binary"])
def test_the_heartbeat_of_a_real_client_is_answered_and_known(
    desk: Desk, connection: FakeConnection, form: str
) -> None:
    (command,) = FrameDecoder().feed(bytes.fromhex(golden.load("frames")["heartbeat"][form]))
    answer = desk.handle(command, connection)
    assert answer.code == ResponseCode.SUCCESS
    assert answer.encoding == command.encoding
    assert answer.ext == {}
    listed = desk.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, ConsumerGroupRequest(consumer_group="GroupA"))
    (one,) = decode_java_json(listed.body, bodies.ConsumerConnections).connections
    assert one == bodies.Connection(
        client_id=CLIENT_ID, client_addr="10.0.0.5:40112", language="JAVA", version=479
    )


def test_a_first_heartbeat_creates_the_group_and_its_retry_topic(
    desk: Desk, connection: FakeConnection
) -> None:
    desk.beat(connection)
    assert desk.state.groups.find("GroupA") is not None
    topic = desk.state.topics.find(retry_topic("GroupA"))
    assert topic is not None
    assert (topic.read_queue_count, topic.write_queue_count, topic.topic_sys_flag) == (1, 1, 0)


def test_all_new_groups_of_a_heartbeat_are_one_change_on_the_disk(
    desk: Desk, connection: FakeConnection
) -> None:
    (consumer,) = HEARTBEAT.consumer_data_set
    names = [f"new-{number:03}" for number in range(MAX_NEW_GROUPS + 10)]
    many = [msgspec.structs.replace(consumer, group_name=name) for name in names]
    topics, groups = desk.state.topics, desk.state.groups

    def counts() -> tuple[int, int]:
        return topics.data_version.counter, groups.data_version.counter

    before = counts()
    desk.beat(connection, consumer_data_set=many)
    assert counts() == tuple(count + 1 for count in before)
    made = [name for name in names if groups.find(name) and topics.find(retry_topic(name))]
    assert made == names[:MAX_NEW_GROUPS]
    desk.beat(connection, consumer_data_set=many)
    assert all(groups.find(name) and topics.find(retry_topic(name)) for name in names)
    assert counts() == tuple(count + 2 for count in before)


def test_groups_that_can_not_be_made_keep_none_from_being_made(
    desk: Desk, connection: FakeConnection
) -> None:
    (consumer,) = HEARTBEAT.consumer_data_set
    names = [*(f"bad name {number}" for number in range(MAX_NEW_GROUPS)), "good"]
    desk.beat(
        connection,
        consumer_data_set=[msgspec.structs.replace(consumer, group_name=name) for name in names],
    )
    assert [name for name in names if desk.state.groups.find(name)] == ["good"]


def test_a_retry_topic_has_the_queues_that_the_group_asks_for(desk: Desk, connection: FakeConnection) -> None:
    desk.state.groups.put(SubscriptionGroupConfig(group_name="GroupA", retry_queue_count=3))
    desk.beat(connection)
    topic = desk.state.topics.find(retry_topic("GroupA"))
    assert topic is not None
    assert topic.write_queue_count == 3


def test_the_retry_topic_of_a_group_in_unit_mode_says_so(desk: Desk, connection: FakeConnection) -> None:
    group = bodies.ConsumerData(
        group_name="U",
        consume_type=HEARTBEAT.consumer_data_set[0].consume_type,
        message_model=HEARTBEAT.consumer_data_set[0].message_model,
        consume_from_where=HEARTBEAT.consumer_data_set[0].consume_from_where,
        is_unit_mode=True,
    )
    desk.beat(connection, consumer_data_set=[group])
    topic = desk.state.topics.find(retry_topic("U"))
    assert topic is not None
    assert topic.topic_sys_flag == TopicSysFlag.UNIT_SUB


def test_without_automatic_groups_a_strange_group_gets_no_topic(
    tmp_path: Path, connection: FakeConnection
) -> None:
    desk = Desk(tmp_path, auto_create_subscription_group=False)
    assert desk.beat(connection).code == ResponseCode.SUCCESS
    assert desk.state.groups.find("GroupA") is None
    assert desk.state.topics.find(retry_topic("GroupA")) is None


def test_members_are_told_one_way_when_another_joins_or_leaves(
    desk: Desk, connection: FakeConnection
) -> None:
    other = FakeConnection("10.0.0.6:40112")
    desk.beat(connection)
    connection.take_sent()
    desk.beat(other, client_id="other")
    for told in (connection, other):
        (notice,) = told.take_sent()
        assert notice.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
        assert notice.is_one_way
        assert notice.header(ConsumerGroupRequest).consumer_group == "GroupA"
    goodbye = UnregisterClientRequest(client_id="other", consumer_group="GroupA")
    assert desk.ask(RequestCode.UNREGISTER_CLIENT, goodbye, connection=other).code == ResponseCode.SUCCESS
    assert codes_sent(connection) == [RequestCode.NOTIFY_CONSUMER_IDS_CHANGED]
    assert codes_sent(other) == []


def test_a_group_whose_operator_wants_no_notices_gets_none(desk: Desk, connection: FakeConnection) -> None:
    desk.state.groups.put(SubscriptionGroupConfig(group_name="GroupA", is_change_notified=False))
    desk.beat(connection)
    assert connection.sent == []


def test_a_lost_connection_is_told_to_those_who_stay(desk: Desk, connection: FakeConnection) -> None:
    other = FakeConnection("10.0.0.6:40112")
    desk.beat(connection)
    desk.beat(other, client_id="other")
    connection.take_sent()
    handlers.on_lost(desk.state, other)
    assert codes_sent(connection) == [RequestCode.NOTIFY_CONSUMER_IDS_CHANGED]


def test_silent_clients_are_closed_and_old_locks_forgotten(desk: Desk, connection: FakeConnection) -> None:
    desk.beat(connection)
    desk.state.locks.lock("GroupA", [Q0], client_id=CLIENT_ID, now_ms=steady_ms(desk.clock))
    desk.clock.advance_ms(SILENCE_LIMIT_MS + 1)
    handlers.on_tick(desk.state)
    assert connection.closed_for == "no heartbeat for 120 s"
    assert desk.state.clients.member_ids("GroupA") == []
    assert len(desk.state.locks) == 0


def test_a_client_that_can_send_short_heartbeats_is_offered_them(
    desk: Desk, connection: FakeConnection
) -> None:
    full = desk.beat(connection, heartbeat_fingerprint=9)
    assert full.ext == {"IS_SUPPORT_HEART_BEAT_V2": "true", "IS_SUB_CHANGE": "false"}
    short = desk.beat(connection, heartbeat_fingerprint=9, is_without_sub=True)
    assert short.header(HeartbeatResponse).is_subscription_changed is False


def test_a_short_heartbeat_that_stands_for_nothing_we_know_is_answered_so(
    desk: Desk, connection: FakeConnection
) -> None:
    short = desk.beat(connection, heartbeat_fingerprint=9, is_without_sub=True)
    assert short.code == ResponseCode.SUCCESS
    assert short.header(HeartbeatResponse).is_subscription_changed is True


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"\xff", b'{"clientID":7}'])
def test_a_heartbeat_that_can_not_be_read_registers_nobody(desk: Desk, body: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        desk.handle(Command.request(RequestCode.HEART_BEAT, body=body), FakeConnection())


def test_a_heartbeat_too_long_to_keep_is_refused_before_it_is_read(desk: Desk) -> None:
    body = bytes(MAX_HEARTBEAT_BYTES + 1)
    with pytest.raises(ResponseError, match="at most"):
        desk.handle(Command.request(RequestCode.HEART_BEAT, body=body), FakeConnection())


# Groups.


def test_the_members_of_a_group_are_listed(desk: Desk, connection: FakeConnection) -> None:
    desk.beat(connection)
    desk.beat(FakeConnection("10.0.0.6:1"), client_id="10.0.0.1@other")
    answer = desk.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, ConsumerGroupRequest(consumer_group="GroupA"))
    assert decode_java_json(answer.body, bodies.ConsumerList).client_ids == ["10.0.0.1@other", CLIENT_ID]


def test_a_group_without_members_is_an_error_and_not_an_empty_list(desk: Desk) -> None:
    header = ConsumerGroupRequest(consumer_group="GroupA")
    assert desk.refusal(RequestCode.GET_CONSUMER_LIST_BY_GROUP, header) == ResponseCode.SYSTEM_ERROR


def test_operators_see_what_a_consumer_group_wants(desk: Desk, connection: FakeConnection) -> None:
    header = ConsumerGroupRequest(consumer_group="GroupA")
    assert desk.refusal(RequestCode.GET_CONSUMER_CONNECTION_LIST, header) == ResponseCode.CONSUMER_NOT_ONLINE
    desk.beat(connection)
    answer = desk.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, header)
    seen = decode_java_json(answer.body, bodies.ConsumerConnections)
    wanted = HEARTBEAT.consumer_data_set[0]
    assert seen.subscription_table == {"TopicA": wanted.subscription_data_set[0]}
    assert (seen.consume_type, seen.message_model) == (wanted.consume_type, wanted.message_model)
    assert seen.consume_from_where == wanted.consume_from_where


def test_operators_see_the_producers_of_a_group_and_of_all_groups(
    desk: Desk, connection: FakeConnection
) -> None:
    header = ProducerGroupRequest(producer_group="ProducerA")
    assert desk.refusal(RequestCode.GET_PRODUCER_CONNECTION_LIST, header) == ResponseCode.SYSTEM_ERROR
    desk.beat(connection)
    listed = desk.ask(RequestCode.GET_PRODUCER_CONNECTION_LIST, header)
    (one,) = decode_java_json(listed.body, bodies.ProducerConnections).connections
    assert one.client_id == CLIENT_ID
    table = decode_java_json(desk.ask(RequestCode.GET_ALL_PRODUCER_INFO).body, bodies.ProducerTable)
    assert [member.client_id for member in table.producers["ProducerA"]] == [CLIENT_ID]


# Queue locks.


def test_a_queue_is_locked_for_one_client_until_it_gives_it_up(desk: Desk) -> None:
    text = golden.load("bodies")["lock_batch_request_body"]["text"]
    mine = Command.request(RequestCode.LOCK_BATCH_MQ, body=text.encode())
    other = bodies.QueueLocks(client_id="other", consumer_group="GroupA", queues=[Q0])

    def locked_for_other() -> list[MessageQueue]:
        return decode_java_json(
            desk.ask(RequestCode.LOCK_BATCH_MQ, body=other).body, bodies.LockedQueues
        ).queues

    answer = desk.handle(mine, FakeConnection())
    assert decode_java_json(answer.body, bodies.LockedQueues).queues == [Q0]
    assert locked_for_other() == []
    unlock = Command.request(RequestCode.UNLOCK_BATCH_MQ, body=text.encode())
    assert desk.handle(unlock, FakeConnection()).code == ResponseCode.SUCCESS
    assert locked_for_other() == [Q0]


@pytest.mark.parametrize(
    "names",
    [
        {"client_id": "x" * 1025},
        {"consumer_group": "x" * 256},
        {"queues": [MessageQueue(topic="x" * 256, broker_name="b", queue_id=0)]},
        {"queues": [MessageQueue(topic="T", broker_name="x" * 256, queue_id=0)]},
    ],
)
def test_a_lock_with_a_name_longer_than_names_are_is_refused(desk: Desk, names: dict[str, Any]) -> None:
    wanted: dict[str, Any] = {"client_id": "c", "consumer_group": "G", "queues": [Q0], **names}
    with pytest.raises(ResponseError, match="characters: at most"):
        desk.ask(RequestCode.LOCK_BATCH_MQ, body=bodies.QueueLocks(**wanted))
    assert len(desk.state.locks) == 0


def test_a_lock_that_is_not_renewed_is_for_the_next_who_asks(desk: Desk) -> None:
    for client_id in ("first", "second"):
        body = bodies.QueueLocks(client_id=client_id, consumer_group="G", queues=[Q0])
        answer = desk.ask(RequestCode.LOCK_BATCH_MQ, body=body)
        assert decode_java_json(answer.body, bodies.LockedQueues).queues == [Q0]
        desk.clock.advance_ms(LOCK_LIFE_MS + 1)


@pytest.mark.parametrize("by_ms", [3_600_000, -3_600_000])
def test_a_lock_lives_as_long_as_always_when_somebody_sets_the_clock(desk: Desk, by_ms: int) -> None:
    def lock(client_id: str) -> list[MessageQueue]:
        body = bodies.QueueLocks(client_id=client_id, consumer_group="G", queues=[Q0])
        answer = desk.ask(RequestCode.LOCK_BATCH_MQ, body=body)
        return decode_java_json(answer.body, bodies.LockedQueues).queues

    assert lock("first") == [Q0]
    desk.clock.set_now_ms(desk.clock.now_ms() + by_ms)
    assert lock("second") == []
    desk.clock.advance_ms(LOCK_LIFE_MS + 1)
    assert lock("second") == [Q0]


# What is not done here.


def test_a_tag_expression_passes_the_check(desk: Desk) -> None:
    body = bodies.ClientConfigCheck(
        client_id="c", group="G", subscription_data=subscribe("T", "A || B", sub_version=1)
    )
    assert desk.ask(RequestCode.CHECK_CLIENT_CONFIG, body=body).code == ResponseCode.SUCCESS


@pytest.mark.parametrize(
    ("expression", "is_enabled", "code"),
    [
        ("a > 1", True, ResponseCode.SUCCESS),
        ("a >", True, ResponseCode.SUBSCRIPTION_PARSE_FAILED),
        ("a > 1", False, ResponseCode.SYSTEM_ERROR),
    ],
)
def test_an_expression_in_sql_is_checked(
    tmp_path: Path, expression: str, is_enabled: bool, code: ResponseCode
) -> None:
    desk = Desk(tmp_path, enable_property_filter=is_enabled)
    sql = SubscriptionData(topic="T", expression=expression, expression_type=SQL92)
    body = bodies.ClientConfigCheck(client_id="c", group="G", subscription_data=sql)
    if code == ResponseCode.SUCCESS:
        assert desk.ask(RequestCode.CHECK_CLIENT_CONFIG, body=body).code == code
    else:
        assert desk.refusal(RequestCode.CHECK_CLIENT_CONFIG, body=body) == code


def test_a_consumer_that_wants_its_queues_assigned_is_told_at_once_that_we_do_not(desk: Desk) -> None:
    query = bodies.AssignmentQuery(topic="T", consumer_group="G", client_id="c")
    answer = desk.ask(RequestCode.QUERY_ASSIGNMENT, body=query)
    assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert "clientRebalance" in (answer.remark or "")


@pytest.mark.behaviour("S3-10")
def test_a_consumer_is_not_taken_in_where_the_broker_may_not_be_read_but_its_producers_are(
    tmp_path: Path,
) -> None:
    desk, connection = Desk(tmp_path), FakeConnection()
    desk.state.read_right = GivenRight(OTHER_IS_READ)
    assert HEARTBEAT.producer_data_set
    with pytest.raises(NotReadable, match=f"^{OWN} is not readable: ") as refusal:
        desk.handle(Command.request(RequestCode.HEART_BEAT, body=encode_body(HEARTBEAT)), connection)
    assert refusal.value.code == ResponseCode.NO_PERMISSION
    assert desk.state.clients.members() == {}
    for producer in HEARTBEAT.producer_data_set:
        assert desk.state.clients.producer_connections(producer.group_name) is not None


@pytest.mark.parametrize("language", [Language.JAVA, Language.GO, Language.CPP])
def test_a_stock_consumer_is_noted_where_the_broker_may_not_be_read(
    tmp_path: Path, language: Language
) -> None:
    desk, connection = Desk(tmp_path), FakeConnection()
    desk.state.read_right = GivenRight(OTHER_IS_READ)
    desk.state.clients.listen()
    request = Command.request(RequestCode.HEART_BEAT, body=encode_body(HEARTBEAT))
    request.language = language
    assert desk.handle(request, connection).code == ResponseCode.SUCCESS
    (consumer,) = HEARTBEAT.consumer_data_set
    assert desk.state.clients.find_consumer(consumer.group_name, HEARTBEAT.client_id) is not None
    assert desk.state.groups.find(consumer.group_name) is None


def test_a_client_that_only_produces_is_welcome_at_a_broker_that_may_not_be_read(tmp_path: Path) -> None:
    desk, connection = Desk(tmp_path), FakeConnection()
    desk.state.read_right = GivenRight(OTHER_IS_READ)
    heartbeat = msgspec.structs.replace(HEARTBEAT, consumer_data_set=[])
    answer = desk.handle(Command.request(RequestCode.HEART_BEAT, body=encode_body(heartbeat)), connection)
    assert answer.code == ResponseCode.SUCCESS
