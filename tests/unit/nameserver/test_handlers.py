"""Requests in, answers out: the rules of the name server that are not the table's."""

import asyncio
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from tanist.errors import RemoteProtocolError
from tanist.model.data_version import DataVersion
from tanist.model.route import BrokerData, QueueData, TopicRouteData
from tanist.model.topics import TopicConfig
from tanist.nameserver.handlers import HANDLERS, Context
from tanist.nameserver.kv_config import KVConfig
from tanist.nameserver.kv_file import KVFile
from tanist.nameserver.replica_group import Action
from tanist.nameserver.route_table import RouteTable
from tanist.nameserver.settings import LiveSettings, NameServerSettings
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies import decode_java_json, encode_body
from tanist.protocol.bodies.config_text import decode_config
from tanist.protocol.bodies.registration import RegisterBrokerBody, encode_registration, registration_crc
from tanist.protocol.bodies.sync import TopicConfigTable
from tanist.protocol.bodies.tables import BrokerMemberGroupAnswer, KVTable, TopicList
from tanist.protocol.codes import Version
from tanist.protocol.headers.nameserver import (
    AddWritePermResponse,
    GetKVConfigResponse,
    QueryDataVersionResponse,
    RegisterBrokerRequest,
    RegisterBrokerResponse,
    WipeWritePermResponse,
)
from tanist.remoting import Connection, ServerLimits
from tests.support.clocks import FakeClock

C = RequestCode
MASTER = RegisterBrokerRequest(
    broker_name="a",
    broker_addr="10.0.0.1:10911",
    cluster_name="c",
    ha_server_addr="10.0.0.1:10912",
    broker_id=0,
)
IDENTITY = {"brokerName": "a", "brokerAddr": "10.0.0.1:10911", "clusterName": "c", "brokerId": "0"}
VERSION = DataVersion(counter=3, timestamp_ms=4)
CONTENT = RegisterBrokerBody(
    topic_configs=TopicConfigTable(
        data_version=VERSION, topics={name: TopicConfig(topic_name=name) for name in ("T", "U")}
    )
)


class FakeConnection:
    """Keeps what was sent to the peer later."""

    peer = "10.0.0.8:50000"

    def __init__(self) -> None:
        self.sent: list[Command] = []

    def send(self, data: Command) -> None:
        self.sent.append(data)


class NameServerParts:
    """A name server without sockets."""

    def __init__(self, directory: Path) -> None:
        self.clock = FakeClock()
        self.connection = FakeConnection()
        self.actions: list[Action] = []
        self.settings = LiveSettings(NameServerSettings())
        self.kv = KVFile(directory / "kvConfig.json")
        self.table = RouteTable()
        self.context = Context(
            self.table,
            self.kv,
            self.settings,
            ServerLimits(),
            self.clock,
            self.clock.monotonic_s(),
            self.actions.extend,
        )

    def set(self, **changes: str) -> None:
        self.settings.update(changes)

    def handle(self, request: Command) -> Command | None:
        return HANDLERS[request.code](self.context, request, cast("Connection", self.connection))

    def ask(self, code: RequestCode, ext: dict[str, str] | None = None, body: bytes = b"") -> Command:
        answer = self.handle(Command.request(code, ext=ext or {}, body=body, opaque=7))
        assert answer is not None
        assert answer.opaque == 7
        assert answer.is_response
        return answer

    def register(self, header: RegisterBrokerRequest = MASTER, body: bytes | None = None) -> Command:
        body = (
            encode_registration(CONTENT, is_compressed=False, version=Version.V5_3_3)
            if body is None
            else body
        )
        answer = self.handle(Command.request(C.REGISTER_BROKER, header, body=body))
        assert answer is not None
        return answer


@pytest.fixture
def parts(tmp_path: Path) -> NameServerParts:
    return NameServerParts(tmp_path)


def topics_in(answer: Command) -> frozenset[str]:
    assert answer.code == ResponseCode.SUCCESS
    return decode_java_json(answer.body, TopicList).topics


# Brokers.


def test_a_registration_is_taken_plain_and_compressed(parts: NameServerParts) -> None:
    for version in (Version.V4_9_8, Version.V5_3_3):
        body = encode_registration(CONTENT, is_compressed=True, version=version)
        header = msgspec.structs.replace(MASTER, is_compressed=True, body_crc32=registration_crc(body))
        request = Command.request(C.REGISTER_BROKER, header, body=body)
        request.version = version
        answer = parts.handle(request)
        assert answer is not None
        assert answer.code == ResponseCode.SUCCESS
    assert parts.table.topics.names == {"T", "U"}


def test_a_body_with_another_checksum_is_refused(parts: NameServerParts) -> None:
    answer = parts.register(msgspec.structs.replace(MASTER, body_crc32=1))
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert parts.table.topics.names == frozenset()


def test_a_registration_without_a_body_registers_the_broker_alone(parts: NameServerParts) -> None:
    assert parts.register(body=b"").code == ResponseCode.SUCCESS
    assert parts.table.cluster_info().broker_addr_table.keys() == {"a"}


def test_a_slave_learns_its_master_from_the_answer(parts: NameServerParts) -> None:
    parts.register()
    slave = msgspec.structs.replace(MASTER, broker_id=1, broker_addr="10.0.0.2:10911")
    assert parts.register(slave).header(RegisterBrokerResponse) == RegisterBrokerResponse(
        master_addr="10.0.0.1:10911", ha_server_addr="10.0.0.1:10912"
    )


def test_order_topics_come_back_with_a_registration(parts: NameServerParts) -> None:
    assert parts.register().body == b""
    parts.kv.current = KVConfig(config_table={"ORDER_TOPIC_CONFIG": {"T": "a:4"}})
    assert decode_java_json(parts.register().body, KVTable).table == {"T": "a:4"}

    parts.set(returnOrderTopicConfigToBroker="false")
    assert parts.register().body == b""


def test_topics_missing_from_a_registration_go_if_the_setting_says_so(parts: NameServerParts) -> None:
    parts.register()
    parts.set(deleteTopicWithBrokerRegistration="true")
    parts.register(body=b'{"topicConfigSerializeWrapper":{"topicConfigTable":{"U":{"topicName":"U"}}}}')
    assert parts.table.topics.names == {"U"}


def test_a_broker_asks_whether_its_topics_are_known(parts: NameServerParts) -> None:
    unknown = parts.ask(C.QUERY_DATA_VERSION, IDENTITY, encode_body(VERSION))
    assert unknown.header(QueryDataVersionResponse).is_changed
    assert unknown.body == b""

    parts.register()
    same = parts.ask(C.QUERY_DATA_VERSION, IDENTITY, encode_body(VERSION))
    assert not same.header(QueryDataVersionResponse).is_changed
    assert decode_java_json(same.body, DataVersion) == VERSION

    other = parts.ask(C.QUERY_DATA_VERSION, IDENTITY, encode_body(DataVersion(counter=9)))
    assert other.header(QueryDataVersionResponse).is_changed


def test_a_question_for_the_version_needs_one_to_compare(parts: NameServerParts) -> None:
    with pytest.raises(RemoteProtocolError):
        parts.ask(C.QUERY_DATA_VERSION, IDENTITY)


def test_a_heartbeat_renews_the_lease(parts: NameServerParts) -> None:
    parts.register()
    parts.clock.advance_ms(100_000)
    assert parts.ask(C.BROKER_HEARTBEAT, IDENTITY).code == ResponseCode.SUCCESS
    parts.clock.advance_ms(100_000)
    assert parts.table.on_tick(parts.clock.monotonic_s()) == []


def test_goodbyes_are_carried_out(parts: NameServerParts) -> None:
    acting = msgspec.structs.replace(MASTER, enable_acting_master=True)
    parts.register(acting)
    parts.register(msgspec.structs.replace(acting, broker_id=1, broker_addr="10.0.0.2:10911"))
    assert parts.ask(C.UNREGISTER_BROKER, IDENTITY).code == ResponseCode.SUCCESS
    assert len(parts.actions) == 1


def test_a_member_group_is_one_level_down(parts: NameServerParts) -> None:
    parts.register()
    answer = parts.ask(C.GET_BROKER_MEMBER_GROUP, {"clusterName": "c", "brokerName": "a"})
    group = decode_java_json(answer.body, BrokerMemberGroupAnswer).broker_member_group
    assert group is not None
    assert group.broker_addrs == {0: "10.0.0.1:10911"}


# Clients and operators.


def test_a_route_has_quoted_keys_whoever_asks(parts: NameServerParts) -> None:
    parts.register()
    for version in (Version.V4_9_3, Version.V5_3_3):
        request = Command.request(C.GET_ROUTEINFO_BY_TOPIC, ext={"topic": "T"})
        request.version = version
        answer = parts.handle(request)
        assert answer is not None
        found: dict[str, Any] = msgspec.json.decode(answer.body)
        assert found["brokerDatas"][0]["brokerAddrs"] == {"0": "10.0.0.1:10911"}
        assert found["filterServerTable"] == {}


def test_an_unknown_topic_is_code_17(parts: NameServerParts) -> None:
    answer = parts.ask(C.GET_ROUTEINFO_BY_TOPIC, {"topic": "Nowhere"})
    assert (answer.code, answer.body) == (ResponseCode.TOPIC_NOT_EXIST, b"")
    assert "Nowhere" in (answer.remark or "")


def test_a_question_without_its_topic_is_the_askers_fault(parts: NameServerParts) -> None:
    with pytest.raises(RemoteProtocolError, match="topic"):
        parts.ask(C.GET_ROUTEINFO_BY_TOPIC)


def test_order_of_a_topic_is_told_only_if_the_setting_says_so(parts: NameServerParts) -> None:
    parts.register()
    parts.kv.current = KVConfig(config_table={"ORDER_TOPIC_CONFIG": {"T": "a:4"}})

    def order() -> str | None:
        answer = parts.ask(C.GET_ROUTEINFO_BY_TOPIC, {"topic": "T"})
        return decode_java_json(answer.body, TopicRouteData).order_topic_conf

    assert order() is None
    parts.set(orderMessageEnable="true")
    assert order() == "a:4"


def test_routes_wait_until_brokers_had_time_to_register(parts: NameServerParts) -> None:
    parts.register()
    parts.set(needWaitForService="true")
    assert parts.ask(C.GET_ROUTEINFO_BY_TOPIC, {"topic": "T"}).code == ResponseCode.SYSTEM_ERROR
    parts.clock.advance_ms(45_000)
    assert parts.ask(C.GET_ROUTEINFO_BY_TOPIC, {"topic": "T"}).code == ResponseCode.SUCCESS


def test_a_client_that_asks_for_its_zone_gets_it_and_groups_without_master(parts: NameServerParts) -> None:
    body = encode_registration(CONTENT, is_compressed=False, version=Version.V5_3_3)
    for name, broker_id, zone in (("a", 0, "east"), ("b", 0, "west"), ("s", 1, "west")):
        ext = {
            "brokerName": name,
            "brokerAddr": f"{name}:1",
            "clusterName": "c",
            "brokerId": str(broker_id),
            "haServerAddr": "h:1",
            "enableActingMaster": "false",
            "__ZONE_NAME": zone,
        }
        parts.ask(C.REGISTER_BROKER, ext, body)

    def brokers(**ext: str) -> tuple[set[str], set[str]]:
        answer = parts.ask(C.GET_ROUTEINFO_BY_TOPIC, {"topic": "T", **ext})
        found = decode_java_json(answer.body, TopicRouteData)
        groups: list[BrokerData] = found.broker_datas
        return {group.broker_name for group in groups}, {queues.broker_name for queues in found.queue_datas}

    everyone = {"a", "b", "s"}
    assert brokers() == (everyone, everyone)
    assert brokers(__ZONE_NAME="EAST") == (everyone, everyone)
    assert brokers(__ZONE_NAME="EAST", __ZONE_MODE="true") == ({"a", "s"}, {"a", "s"})


def test_topics_are_listed(parts: NameServerParts) -> None:
    parts.register()
    assert topics_in(parts.ask(C.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)) == {"T", "U"}
    assert topics_in(parts.ask(C.GET_TOPICS_BY_CLUSTER, {"cluster": "c"})) == {"T", "U"}
    assert topics_in(parts.ask(C.GET_TOPICS_BY_CLUSTER, {"cluster": "d"})) == frozenset()
    assert topics_in(parts.ask(C.GET_SYSTEM_TOPIC_LIST_FROM_NS)) == {"a", "c"}
    assert topics_in(parts.ask(C.GET_UNIT_TOPIC_LIST)) == frozenset()


@pytest.mark.parametrize(
    ("setting", "codes"),
    [
        ("enableAllTopicList", [C.GET_ALL_TOPIC_LIST_FROM_NAMESERVER]),
        (
            "enableTopicList",
            [
                C.GET_TOPICS_BY_CLUSTER,
                C.GET_UNIT_TOPIC_LIST,
                C.GET_HAS_UNIT_SUB_TOPIC_LIST,
                C.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
            ],
        ),
    ],
)
def test_topic_lists_can_be_switched_off(
    parts: NameServerParts, setting: str, codes: list[RequestCode]
) -> None:
    parts.set(**{setting: "false"})
    for code in codes:
        answer = parts.ask(code, {"cluster": "c"})
        assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "disable")


def test_write_permission_is_wiped_and_added_with_a_count(parts: NameServerParts) -> None:
    parts.register()

    def perm() -> int:
        answer = parts.ask(C.GET_ROUTEINFO_BY_TOPIC, {"topic": "T"})
        return decode_java_json(answer.body, TopicRouteData).queue_datas[0].perm

    wiped = parts.ask(C.WIPE_WRITE_PERM_OF_BROKER, {"brokerName": "a"})
    assert wiped.header(WipeWritePermResponse).wiped_topic_count == 2
    assert perm() == 4
    added = parts.ask(C.ADD_WRITE_PERM_OF_BROKER, {"brokerName": "a"})
    assert added.header(AddWritePermResponse).added_topic_count == 2
    assert perm() == 6


def test_a_topic_is_deleted_and_registered_by_hand(parts: NameServerParts) -> None:
    parts.register()
    assert parts.ask(C.DELETE_TOPIC_IN_NAMESRV, {"topic": "T"}).code == ResponseCode.SUCCESS
    assert parts.table.route("T") is None
    queues = QueueData(broker_name="a", read_queue_count=2, write_queue_count=2, perm=6)
    body = encode_body(TopicRouteData(queue_datas=[queues]))
    assert parts.ask(C.REGISTER_TOPIC_IN_NAMESRV, {"topic": "T"}, body).code == ResponseCode.SUCCESS
    assert parts.table.topics.queues("T") == {"a": queues}
    assert parts.ask(C.REGISTER_TOPIC_IN_NAMESRV, {"topic": "V"}).code == ResponseCode.SUCCESS
    assert parts.table.route("V") is None


def test_cluster_info_is_standard_json(parts: NameServerParts) -> None:
    parts.register()
    found: dict[str, Any] = msgspec.json.decode(parts.ask(C.GET_BROKER_CLUSTER_INFO).body)
    assert found["clusterAddrTable"] == {"c": ["a"]}
    assert found["brokerAddrTable"]["a"]["brokerAddrs"] == {"0": "10.0.0.1:10911"}


# Keys and values.


def carried_out(parts: NameServerParts, *requests: Command) -> list[Command]:
    """Handle these, let the file catch up, and return the answers that came later."""

    async def story() -> None:
        for request in requests:
            assert parts.handle(request) is None
            assert parts.connection.sent == []
        parts.kv.close()
        await parts.kv.run()

    asyncio.run(story())
    return parts.connection.sent


def put_request(*, is_one_way: bool = False) -> Command:
    ext = {"namespace": "N", "key": "k", "value": "v"}
    return Command.request(C.PUT_KV_CONFIG, ext=ext, opaque=7, is_one_way=is_one_way)


def test_a_value_is_answered_when_it_is_on_disk(parts: NameServerParts) -> None:
    [answer] = carried_out(parts, put_request())

    assert (answer.code, answer.opaque) == (ResponseCode.SUCCESS, 7)
    key = {"namespace": "N", "key": "k"}
    assert parts.ask(C.GET_KV_CONFIG, key).header(GetKVConfigResponse).value == "v"
    listed = parts.ask(C.GET_KVLIST_BY_NAMESPACE, {"namespace": "N"})
    assert decode_java_json(listed.body, KVTable).table == {"k": "v"}


def test_a_deleted_value_is_not_found(parts: NameServerParts) -> None:
    key = {"namespace": "N", "key": "k"}
    deletion = Command.request(C.DELETE_KV_CONFIG, ext=key)
    answers = carried_out(parts, put_request(), deletion)

    assert [answer.code for answer in answers] == [ResponseCode.SUCCESS, ResponseCode.SUCCESS]
    assert parts.ask(C.GET_KV_CONFIG, key).code == ResponseCode.QUERY_NOT_FOUND
    assert parts.ask(C.GET_KVLIST_BY_NAMESPACE, {"namespace": "M"}).code == ResponseCode.QUERY_NOT_FOUND


def test_a_value_that_can_not_be_kept_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    parts = NameServerParts(tmp_path / "file")
    [answer] = carried_out(parts, put_request())
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert parts.kv.current == KVConfig()


def test_a_one_way_change_is_made_and_not_answered(parts: NameServerParts) -> None:
    assert carried_out(parts, put_request(is_one_way=True)) == []
    assert parts.kv.current.value("N", "k") == "v"


def test_a_change_is_refused_while_the_name_server_stops(parts: NameServerParts) -> None:
    parts.kv.close()
    answer = parts.handle(put_request())
    assert answer is not None
    assert answer.code == ResponseCode.SYSTEM_BUSY


# Settings.


def test_settings_are_shown_as_text(parts: NameServerParts) -> None:
    shown = decode_config(parts.ask(C.GET_NAMESRV_CONFIG).body)
    assert (shown["listenPort"], shown["serverChannelMaxIdleTimeSeconds"]) == ("9876", "120")
    assert not any("password" in key.lower() for key in shown)


def test_settings_are_changed(parts: NameServerParts) -> None:
    answer = parts.ask(C.UPDATE_NAMESRV_CONFIG, body=b"orderMessageEnable=true\n")
    assert answer.code == ResponseCode.SUCCESS
    assert parts.settings.current.order_message_enable


@pytest.mark.parametrize(
    "key",
    [
        "kvConfigPath",
        "configStorePath",
        "configStorePathName",
        "rocketmqHome",
        "bindAddress",
        "productEnvName",
    ],
)
def test_no_path_or_address_is_changed_from_afar(parts: NameServerParts, key: str) -> None:
    answer = parts.ask(C.UPDATE_NAMESRV_CONFIG, body=f"orderMessageEnable=true\n{key}=/x\n".encode())
    assert answer.code == ResponseCode.NO_PERMISSION
    assert key in (answer.remark or "")
    assert parts.settings.current == NameServerSettings()


def test_a_wrong_value_is_refused_with_what_is_allowed(parts: NameServerParts) -> None:
    answer = parts.ask(C.UPDATE_NAMESRV_CONFIG, body=b"orderMessageEnable=maybe\n")
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "true or false" in (answer.remark or "")


def test_every_request_of_the_name_server_has_a_handler() -> None:
    kv_codes, broker_codes = {100, 101, 102, 219}, {103, 104, 322, 901, 904}
    route_codes = {105, 106, 205, 206, 216, 217, 224, 304, 311, 312, 313, 327}
    assert HANDLERS.keys() == kv_codes | broker_codes | route_codes | {318, 319}
