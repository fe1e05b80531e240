"""Frames, bodies, files and signatures that Apache RocketMQ's own classes wrote."""

import json
from typing import Any, cast

import pytest

from tanist.model.java_hash import java_hash
from tanist.model.route import ClusterInfo, TopicRouteData
from tanist.protocol.bodies import decode_java_json, encode_body
from tanist.protocol.bodies.client import HeartbeatData, QueueLocks
from tanist.protocol.bodies.registration import (
    RegisterBrokerBody,
    decode_registration,
    encode_registration,
    registration_crc,
)
from tanist.protocol.bodies.replication import HARuntimeInfo
from tanist.protocol.bodies.reset import OffsetTable
from tanist.protocol.bodies.running import ConsumerRunningInfo, ConsumerStatus
from tanist.protocol.bodies.stats import ConsumeStats, TopicStatsTable
from tanist.protocol.bodies.sync import (
    ConsumerOffsetTable,
    DelayOffsetTable,
    SubscriptionGroupTable,
    TopicConfigTable,
)
from tanist.protocol.codes import Language, RequestCode
from tanist.protocol.command import Command
from tanist.protocol.frame import FrameDecoder, encode_command
from tanist.protocol.headers import encode_header
from tanist.protocol.headers.nameserver import RegisterBrokerRequest
from tanist.protocol.headers.registry import EXCHANGES
from tanist.protocol.java_json import standard_json
from tanist.protocol.signature import sign
from tests.support import golden

FRAMES = golden.load("frames")
BODIES = golden.load("bodies")
FILES = golden.load("config_files")
IDS = golden.load("ids")
FORMS = ("json", "binary")
# Only requests tell by their code what their fields are, and one of these is made up.
REQUESTS = {
    name: case for name, case in FRAMES.items() if not case["flag"] & 1 and case["language"] == "JAVA"
}
# Where there are no ext fields, Java sometimes writes an empty object; we write nothing.
REPEATABLE = [
    pytest.param(case, form, id=f"{name}-{form}")
    for name, case in FRAMES.items()
    for form in FORMS
    if form == "binary" or case["ext_fields"] != {}
]

BODY_TYPES: dict[str, type[Any]] = {
    "topic_route_data": TopicRouteData,
    "topic_route_data_standard_json": TopicRouteData,
    "cluster_info": ClusterInfo,
    "heartbeat_data": HeartbeatData,
    "register_broker_body": RegisterBrokerBody,
    "topic_config_wrapper": TopicConfigTable,
    "subscription_group_wrapper": SubscriptionGroupTable,
    "consumer_offset_wrapper": ConsumerOffsetTable,
    "reset_offset_body": OffsetTable,
    "consumer_status_body": ConsumerStatus,
    "consumer_running_info": ConsumerRunningInfo,
    "consume_stats": ConsumeStats,
    "topic_stats_table": TopicStatsTable,
    "lock_batch_request_body": QueueLocks,
    "ha_runtime_info": HARuntimeInfo,
    "topics": TopicConfigTable,
    "subscription_group": SubscriptionGroupTable,
    "consumer_offset": ConsumerOffsetTable,
    "delay_offset": DelayOffsetTable,
    "broadcast_offsets": OffsetTable,
}
TEXTS = {name: case for name, case in {**BODIES, **FILES}.items() if "text" in case}
# Members that RocketMQ writes and that mean nothing to us: derived, or of features we do not have.
NOT_OURS = {"topicQueueMappingDetailMap", "groupTopicMap", "mqPopTable"}


def decode(frame: str) -> Command:
    (command,) = FrameDecoder().feed(bytes.fromhex(frame))
    return command


def ext_of(case: dict[str, Any]) -> dict[str, str]:
    return dict(case["ext_fields"] or {})


def means(value: Any) -> Any:
    """Bring a body into the form that the golden files give it: objects as keys become pairs."""
    if isinstance(value, list):
        return [means(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    members = {key: means(member) for key, member in cast("dict[str, Any]", value).items()}
    if any(key.startswith("{") for key in members):
        return [[json.loads(key), member] for key, member in members.items()]
    return {key: member for key, member in members.items() if key not in NOT_OURS}


def in_any_order(value: Any) -> Any:
    """Sort the lists in a value: where Java has a set or a map, their order is left to chance."""
    if isinstance(value, dict):
        return {key: in_any_order(member) for key, member in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return sorted((in_any_order(item) for item in cast("list[Any]", value)), key=repr)
    return value


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", FRAMES.values(), ids=FRAMES)
def test_a_frame_is_read(case: dict[str, Any], form: str) -> None:
    command = decode(case[form])
    assert (command.code, command.opaque, command.flag) == (case["code"], case["opaque"], case["flag"])
    assert (command.language, command.version) == (Language[case["language"]], case["version"])
    assert command.remark == case["remark"]
    assert bytes(command.body).hex() == case["body"]
    ext = ext_of(case)
    assert command.ext == (ext if form == "json" else {key: value for key, value in ext.items() if value})


@pytest.mark.parametrize(("case", "form"), REPEATABLE)
def test_a_frame_is_written_byte_for_byte(case: dict[str, Any], form: str) -> None:
    command = decode(case[form])
    # In a binary header an empty value is written, as no bytes, but read as no field at all.
    command.ext.update({key: value for key, value in ext_of(case).items() if not value})
    assert encode_command(command).hex() == case[form]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", REQUESTS.values(), ids=REQUESTS)
def test_a_typed_header_says_all_that_was_sent(case: dict[str, Any], form: str) -> None:
    header_type = EXCHANGES[RequestCode(case["code"])].request
    written = encode_header(decode(case[form]).header(header_type))
    sent = ext_of(case)
    if "bname" not in header_type.__struct_encode_fields__:
        sent.pop("bname", None)
    assert {name: written.get(name) for name in sent} == sent


@pytest.mark.parametrize("name", TEXTS)
def test_a_body_is_rewritten_as_the_standard_json_it_means(name: str) -> None:
    rewritten = json.loads(standard_json(TEXTS[name]["text"].encode()))
    assert in_any_order(means(rewritten)) == in_any_order(means(TEXTS[name]["value"]))


@pytest.mark.parametrize("name", TEXTS)
def test_a_body_is_read_and_written_without_losing_a_member(name: str) -> None:
    body = decode_java_json(TEXTS[name]["text"].encode(), BODY_TYPES[name])
    written = encode_body(body)
    assert decode_java_json(written, BODY_TYPES[name]) == body
    expected = in_any_order(means(TEXTS[name]["value"]))
    found = in_any_order(means(json.loads(written)))
    assert found == {**found, **expected}


def test_a_compressed_registration_is_read_and_written() -> None:
    command = decode(FRAMES["register_broker_compressed"]["json"])
    header = command.header(RegisterBrokerRequest)
    assert header.is_compressed
    assert registration_crc(command.body) == header.body_crc32
    body = decode_registration(command.body, is_compressed=True, version=command.version)
    plain = decode(FRAMES["register_broker"]["json"])
    expected = decode_registration(plain.body, is_compressed=False, version=plain.version)
    assert body.topic_configs.topics == expected.topic_configs.topics
    assert body.topic_configs.data_version == expected.topic_configs.data_version
    again = encode_registration(body, is_compressed=True, version=command.version)
    assert decode_registration(again, is_compressed=True, version=command.version) == body


@pytest.mark.parametrize("name", ["signature", "signature_with_token"])
def test_a_signature_is_the_one_rocketmq_gives(name: str) -> None:
    case = IDS[name]
    ext = dict(case["signed_ext_fields"])
    signature = ext.pop("Signature")
    assert sign(ext, bytes.fromhex(case["body"]), case["secret_key"]) == signature


@pytest.mark.parametrize(("tag", "code"), IDS["tag_codes"].items())
def test_a_tag_has_the_code_rocketmq_gives_it(tag: str, code: int) -> None:
    assert java_hash(tag) == code
