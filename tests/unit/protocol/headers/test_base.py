"""Typed headers: ext fields in and out."""

import pytest

from tanist.errors import RemoteProtocolError
from tanist.model.offsets import LogOffset, QueueOffset
from tanist.protocol.headers import NoFields, decode_header, encode_header
from tanist.protocol.headers.base import ext_from_json, header_from_json
from tanist.protocol.headers.common import TopicQueueRequest
from tanist.protocol.headers.groups import DeleteGroupRequest
from tanist.protocol.headers.offsets import GetMaxOffsetRequest
from tanist.protocol.headers.reset import ResetOffsetRequest
from tanist.protocol.headers.send import ConsumerSendBackRequest


def test_every_field_goes_out_as_text_under_its_wire_name() -> None:
    header = ResetOffsetRequest(
        topic="T", group="G", timestamp_ms=-1, is_force=True, queue_offset=QueueOffset(7)
    )
    assert encode_header(header) == {
        "topic": "T",
        "group": "G",
        "timestamp": "-1",
        "isForce": "true",
        "queueId": "-1",
        "offset": "7",
        "appliedMillis": "0",
    }


def test_a_field_that_is_none_is_not_written() -> None:
    header = ConsumerSendBackRequest(log_offset=LogOffset(5), group="G", delay_level=0)
    assert encode_header(header) == {"offset": "5", "group": "G", "delayLevel": "0", "unitMode": "false"}


def test_a_header_without_fields_is_empty() -> None:
    assert encode_header(NoFields()) == {}
    assert decode_header({"ReqT": "0"}, NoFields) == NoFields()


def test_text_becomes_what_the_type_says_and_extra_fields_are_ignored() -> None:
    ext = {"topic": "123", "queueId": "3", "committed": "false", "bname": "broker-a", "ns": ""}
    assert decode_header(ext, GetMaxOffsetRequest) == GetMaxOffsetRequest(
        topic="123", queue_id=3, is_committed=False
    )


def test_a_default_stands_in_for_a_field_that_is_not_sent() -> None:
    assert decode_header({"topic": "T", "queueId": "3"}, GetMaxOffsetRequest).is_committed


@pytest.mark.parametrize("text", ["true", "TRUE", "True", "1"])
def test_a_boolean_is_read_in_any_case(text: str) -> None:
    assert decode_header({"groupName": "G", "cleanOffset": text}, DeleteGroupRequest).clean_offset


def test_a_missing_mandatory_field_is_named() -> None:
    with pytest.raises(RemoteProtocolError, match="TopicQueueRequest: mandatory field queueId is missing"):
        decode_header({"topic": "T"}, TopicQueueRequest)


@pytest.mark.parametrize("value", ["", "three", "3.5", "2147483648", "-2147483649", "9" * 5000, "0x3", " 3"])
def test_a_field_that_does_not_parse_is_named_with_its_value(value: str) -> None:
    with pytest.raises(RemoteProtocolError) as refused:
        decode_header({"topic": "T", "queueId": value}, TopicQueueRequest)
    assert f"TopicQueueRequest: field queueId={value[:80]!r}" in str(refused.value)
    assert len(str(refused.value)) < 250


def test_a_header_is_read_from_json_text_as_from_its_fields() -> None:
    text = b'{"code":31,"extFields":{"topic":"T","queueId":"3","x":"y"},"flag":0}'
    assert header_from_json(text, TopicQueueRequest) == decode_header(ext_from_json(text), TopicQueueRequest)


@pytest.mark.parametrize("text", [b"{}", b'{"extFields":null}', b'{"extFields":{}}'])
def test_json_text_without_ext_fields_has_none(text: bytes) -> None:
    assert ext_from_json(text) == {}
    assert header_from_json(text, NoFields) == NoFields()


def test_either_switch_deletes_the_offsets_of_a_group() -> None:
    assert DeleteGroupRequest(group_name="G", clean_offset=True).are_offsets_deleted
    assert DeleteGroupRequest(group_name="G", remove_offset=True).are_offsets_deleted
    assert not DeleteGroupRequest(group_name="G").are_offsets_deleted
