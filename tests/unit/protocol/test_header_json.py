"""JSON headers."""

import json
from typing import Any

import pytest

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.model.offsets import QueueOffset
from tanist.protocol.codes import HeaderEncoding, Language, RequestCode
from tanist.protocol.command import Command
from tanist.protocol.header_json import decode_json_header, encode_json_header
from tanist.protocol.headers.base import MAX_EXT_FIELDS
from tanist.protocol.headers.pull import PullMessageRequest
from tanist.protocol.headers.send import SendMessageRequest, SendMessageRequestV2

NO_BODY = memoryview(b"")
SEND_V2: dict[str, Any] = {
    "a": "PG",
    "b": "T",
    "c": "TBW102",
    "d": "4",
    "e": "1",
    "f": "0",
    "g": "1700000000000",
    "h": "0",
    "i": "TAGS\x01A\x02",
    "j": "0",
    "k": "false",
    "m": "true",
    "n": "broker-a",
}

PULL: dict[str, Any] = {
    "consumerGroup": "G",
    "topic": "T",
    "queueId": "1",
    "queueOffset": "70",
    "maxMsgNums": "32",
    "sysFlag": "3",
    "commitOffset": "6",
    "suspendTimeoutMillis": "15000",
    "subVersion": "1700000000000",
    "expressionType": "TAG",
}


def decode(header: dict[str, Any]) -> Command:
    return decode_json_header(json.dumps(header, separators=(",", ":")).encode(), NO_BODY)


def send(**changes: Any) -> Command:
    return decode({"code": 310, "extFields": {**SEND_V2, **changes}, "flag": 0, "opaque": 9, "version": 479})


def pull(**changes: Any) -> Command:
    return decode({"code": 11, "extFields": {**PULL, **changes}, "flag": 0, "opaque": 9, "version": 479})


def test_a_header_is_written_with_javas_keys_in_javas_order() -> None:
    command = Command(105, 9, 0, Language.JAVA, 479, ext_fields={"topic": "T"})
    assert encode_json_header(command) == (
        b'{"code":105,"extFields":{"topic":"T"},"flag":0,"language":"JAVA","opaque":9,'
        b'"serializeTypeCurrentRPC":"JSON","version":479}'
    )


def test_what_is_absent_is_not_written() -> None:
    header = json.loads(encode_json_header(Command.request(106)))
    assert "extFields" not in header
    assert "remark" not in header


def test_missing_keys_get_defaults() -> None:
    command = decode({})
    assert command == Command(0, 0, 0, Language.JAVA, 0, None, ext_fields={})


def test_nulls_read_as_missing() -> None:
    keys = ("code", "extFields", "flag", "language", "opaque", "remark", "version")
    assert decode(dict.fromkeys(keys)) == decode({})


def test_unknown_keys_are_ignored() -> None:
    assert decode({"code": 34, "hashCode": {"deep": [1]}, "body": "x"}).code == 34


@pytest.mark.parametrize(
    ("language", "expected"),
    [("GO", Language.GO), (9, Language.GO), ("KLINGON", Language.OTHER), (99, Language.OTHER)],
)
def test_a_language_is_a_name_or_a_number_and_never_nothing(language: str | int, expected: Language) -> None:
    assert decode({"code": 1, "language": language}).language is expected


def test_numbers_and_booleans_in_ext_fields_become_text() -> None:
    command = decode({"code": 31, "extFields": {"queueId": 3, "order": True, "tps": 1.5, "topic": None}})
    assert command.ext == {"queueId": "3", "order": "true", "tps": "1.5"}


def test_escapes_are_read() -> None:
    command = decode_json_header(rb'{"code":1,"extFields":{"t":"\u4e2d\u6587\u0001"}}', NO_BODY)
    assert command.ext == {"t": "中文\x01"}


def test_a_command_keeps_its_encoding() -> None:
    assert decode({"code": 1}).encoding is HeaderEncoding.JSON


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"GET / HTTP/1.1",
        b'{"code":"x"}',
        b'{"code":2147483648}',
        b'{"opaque":1e400}',
        b'{"code":NaN}',
        b'{"remark":"\xff"}',
        b'{"remark":"\\ud800"}',
        b'{"code":' + b"9" * 5000 + b"}",
        b'{"x":' + b"[" * 100_000,
    ],
    ids=lambda header: header[:24],
)
def test_what_is_no_header_is_refused(header: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_json_header(header, NO_BODY)


@pytest.mark.parametrize("ext", [7, [], {"k": []}, {"k": {}}])
def test_ext_fields_that_are_none_are_refused_when_they_are_read(ext: object) -> None:
    command = decode({"code": 1, "extFields": ext})
    with pytest.raises(RemoteProtocolError, match="ext fields"):
        _ = command.ext


def test_as_many_ext_fields_as_allowed_are_read() -> None:
    fields = {f"field{number}": '"\\' * 10 for number in range(MAX_EXT_FIELDS)}
    assert decode({"code": 1, "extFields": fields}).ext == fields


@pytest.mark.parametrize("value", ["", 1])
def test_far_too_many_ext_fields_are_refused_unread(value: object) -> None:
    with pytest.raises(RemoteProtocolError, match="256 ext fields"):
        decode({"code": 1, "extFields": {f"f{number}": value for number in range(10_000)}})


def test_one_ext_field_too_many_is_refused() -> None:
    fields = {f"f{number}": 1 for number in range(MAX_EXT_FIELDS + 1)}
    with pytest.raises(RemoteProtocolError):
        _ = decode({"code": 1, "extFields": fields}).ext


def test_a_send_is_typed_at_once() -> None:
    command = send()
    assert command.code == RequestCode.SEND_MESSAGE_V2
    assert command.ext_fields is None
    assert command.typed_header == SendMessageRequestV2(
        producer_group="PG",
        topic="T",
        default_topic="TBW102",
        default_topic_queue_count=4,
        queue_id=1,
        sys_flag=0,
        born_timestamp_ms=1700000000000,
        flag=0,
        properties="TAGS\x01A\x02",
        reconsume_times=0,
        is_unit_mode=False,
        is_batch=True,
        broker_name="broker-a",
    )


def test_the_fields_of_a_typed_send_are_all_there_for_a_signature() -> None:
    assert send(AccessKey="k", ns="x").ext == {**SEND_V2, "AccessKey": "k", "ns": "x"}


def test_an_untidy_send_is_read_all_the_same() -> None:
    command = send(b=5, e=2, k=None, m=False)
    assert command.typed_header is None
    header = command.header(SendMessageRequestV2)
    assert (header.topic, header.queue_id, header.is_unit_mode, header.is_batch) == ("5", 2, None, False)


def test_a_send_without_a_mandatory_field_names_it() -> None:
    command = decode({"code": 310, "extFields": {"a": "PG"}, "opaque": 3})
    assert command.opaque == 3
    with pytest.raises(RemoteProtocolError, match="mandatory field b is missing"):
        command.header(SendMessageRequestV2)


def test_a_send_in_letters_is_a_send() -> None:
    assert isinstance(send().header(SendMessageRequestV2), SendMessageRequest)


def test_a_pull_is_typed_at_once() -> None:
    command = pull()
    assert (command.code, command.opaque, command.ext_fields) == (RequestCode.PULL_MESSAGE, 9, None)
    assert command.typed_header == PullMessageRequest(
        consumer_group="G",
        topic="T",
        queue_id=1,
        queue_offset=QueueOffset(70),
        max_message_count=32,
        sys_flag=3,
        consumer_offset=QueueOffset(6),
        suspend_timeout_ms=15_000,
        sub_version=1700000000000,
        expression_type="TAG",
    )


def test_an_untidy_pull_is_read_all_the_same() -> None:
    command = pull(topic=5, queueId=2, subscription=None)
    assert command.typed_header is None
    header = command.header(PullMessageRequest)
    assert (header.topic, header.queue_id, header.subscription) == ("5", 2, None)


def test_a_pull_without_a_mandatory_field_names_it() -> None:
    command = decode({"code": 11, "extFields": {"topic": "T"}, "opaque": 3})
    assert command.opaque == 3
    with pytest.raises(RemoteProtocolError, match="mandatory field consumerGroup is missing"):
        command.header(PullMessageRequest)


@pytest.mark.parametrize(("code", "opaque"), [(2**31, 0), (0, 2**31), (0, -(2**31) - 1)])
def test_a_number_over_32_bits_is_not_written(code: int, opaque: int) -> None:
    with pytest.raises(LocalProtocolError):
        encode_json_header(Command(code, opaque))


def test_text_that_utf_8_cannot_carry_is_not_written() -> None:
    with pytest.raises(LocalProtocolError, match="UTF-8"):
        encode_json_header(Command(1, remark="\ud800"))
