"""The JSON that Java writes."""

import json

import msgspec
import pytest

from tanist.errors import RemoteProtocolError
from tanist.model.route import BrokerData, MessageQueue
from tanist.protocol import java_json
from tanist.protocol.bodies.base import encode_body
from tanist.protocol.bodies.reset import OffsetTable
from tanist.protocol.java_json import ObjectKeyed, decode_java_json, standard_json

OFFSETS_FILE = b"""{
\t"offsetTable":{{
\t\t\t"brokerName":"broker-a",
\t\t\t"queueId":3,
\t\t\t"topic":"TopicA"
\t\t}:42
\t}
}"""
QUEUE = MessageQueue(topic="TopicA", broker_name="broker-a", queue_id=3)


class Shape(msgspec.Struct, kw_only=True):
    """A body with one member of each kind."""

    name: str = "unnamed"
    counts: dict[int, int] = {}
    tags: list[str] = []


@pytest.mark.parametrize(
    ("dialect", "standard"),
    [
        (b"{0:5,1:7}", b'{"0":5,"1":7}'),
        (b"{-1:{ 2 :3}}", b'{"-1":{"2" :3}}'),
        (b'{"a":{\n\t10:1,\n\t11:2}}', b'{"a":{"10":1,"11":2}}'),
        (b'[1,2,{3:[4,5]},"6,7:8"]', b'[1,2,{"3":[4,5]},"6,7:8"]'),
        (b'{"text":"{0:1,{\\"a\\":2}:3"}', b'{"text":"{0:1,{\\"a\\":2}:3"}'),
        (b'{{"q":1}:2}', b'{"{\\"q\\":1}":2}'),
        (b'{{"q":1} : 2,{"q":2}:3}', b'{"{\\"q\\":1}" : 2,"{\\"q\\":2}":3}'),
        (b'{"c":{{"q":{7:[{}]}}:{{"r":1}:2}}}', b'{"c":{"{\\"q\\":{\\"7\\":[{}]}}":{"{\\"r\\":1}":2}}}'),
        (b'{{{"in":1}:2}:3}', rb'{"{\"{\\\"in\\\":1}\":2}":3}'),
        (b'{{"t":"}:{"}:1}', b'{"{\\"t\\":\\"}:{\\"}":1}'),
        (b'[{"a":1},{"b":2}]', b'[{"a":1},{"b":2}]'),
        (b'"\xe4\xb8\xad"', b'"\xe4\xb8\xad"'),
    ],
)
def test_the_dialect_is_rewritten_as_standard_json(dialect: bytes, standard: bytes) -> None:
    assert standard_json(dialect) == standard
    json.loads(standard_json(dialect))


def test_standard_json_is_left_as_it_is() -> None:
    text = b'{ "a" : [1, -2.5e3, true, null, "\\"{1:2}" ],\t"0":{"":{}} }'
    assert standard_json(text) == text


def test_a_view_is_read_like_bytes() -> None:
    assert standard_json(memoryview(b"{1:2}")) == b'{"1":2}'
    assert decode_java_json(memoryview(b"{1:2}"), dict[int, int]) == {1: 2}


def test_integer_keys_become_integers_quoted_or_not() -> None:
    bare = b'{"brokerAddrs":{0:"a",1:"b"},"brokerName":"n","cluster":"c"}'
    quoted = bare.replace(b"0:", b'"0":').replace(b"1:", b'"1":')
    assert decode_java_json(bare, BrokerData) == decode_java_json(quoted, BrokerData)
    assert decode_java_json(bare, BrokerData).broker_addrs == {0: "a", 1: "b"}


def test_the_offsets_a_broadcasting_client_keeps_are_read() -> None:
    assert decode_java_json(OFFSETS_FILE, OffsetTable).offset_table == {QUEUE: 42}


def test_a_map_with_objects_for_keys_is_written_in_the_form_java_also_reads() -> None:
    body = encode_body(decode_java_json(OFFSETS_FILE, OffsetTable))
    assert json.loads(body) == {"offsetTable": {'{"brokerName":"broker-a","queueId":3,"topic":"TopicA"}': 42}}
    assert decode_java_json(body, OffsetTable).offset_table == {QUEUE: 42}


def test_such_a_map_can_lie_in_another_and_hold_structs() -> None:
    text = b'{"client":{{"brokerName":"b","queueId":0,"topic":"T"}:{"name":"x","counts":{-1:2}}}}'
    table = decode_java_json(text, dict[str, ObjectKeyed[MessageQueue, Shape]])
    queue = MessageQueue(topic="T", broker_name="b", queue_id=0)
    assert table == {"client": {queue: Shape(name="x", counts={-1: 2})}}


def test_null_stands_for_a_member_that_is_absent() -> None:
    text = b'{"name":null,"counts":{1:2,3:null},"tags":null,"more":[null]}'
    assert decode_java_json(text, Shape) == Shape(counts={1: 2})


def test_unknown_members_are_ignored() -> None:
    assert decode_java_json(b'{"name":"x","later":{0:{}}}', Shape) == Shape(name="x")


@pytest.mark.parametrize(
    "text", [b'{"name":{"$ref":"$.x"}}', b'{"counts":{"1":{"$ref" : ".."}}}', b'{{"$ref":"$"}:1}']
)
def test_a_reference_is_refused_by_name(text: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match=r"\$ref"):
        decode_java_json(text, Shape)


def test_text_that_speaks_of_references_is_no_reference() -> None:
    assert decode_java_json(rb'{"name":"\"$ref\":1"}', Shape).name == '"$ref":1'


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"}",
        b"{{",
        b'{"',
        b'{"\\',
        b"{1:}",
        b"{1}",
        b"{,1:2}",
        b'{{"a":1}}',
        b'{"name":"\xff"}',
        b'{{"\xff":1}:2}',
        b'{"name":5}',
        b'{"counts":{"x":1}}',
        b'{"counts":{"1":1e400}}',
        b"NaN",
    ],
)
def test_what_is_neither_is_refused(text: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_java_json(text, Shape)


def test_a_key_that_is_not_the_object_it_should_be_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="queueId"):
        decode_java_json(b'{"offsetTable":{{"brokerName":"b","queueId":"x","topic":"T"}:1}}', OffsetTable)
    with pytest.raises(RemoteProtocolError):
        decode_java_json(b'{"offsetTable":{"b-0":1}}', OffsetTable)
    with pytest.raises(RemoteProtocolError, match="Expected `object`"):
        decode_java_json(b'{"offsetTable":[1]}', OffsetTable)


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 1_000_000,
        b'{"a":' * 200_000,
        b"{" * 1_000_000 + b"}:",
        b"{{" * 100 + b"}:1}" * 100,
        b'"' * 1_000_001,
        b'"' + b'\\"' * 500_000 + b"\\",
        b"{" + b" " * 1_000_000,
        b"{" + b"1" * 1_000_000,
        b"," * 1_000_000,
    ],
    ids=["arrays", "objects", "braces", "keys", "quotes", "escapes", "blanks", "digits", "commas"],
)
def test_hostile_text_is_refused_in_no_time(text: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_java_json(text, Shape)


def test_keys_inside_of_keys_end_somewhere() -> None:
    with pytest.raises(RemoteProtocolError, match="keys inside keys"):
        standard_json(b'{{{{{"a":1}:1}:1}:1}:1}')


def test_sizes_end_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_json, "MAX_OBJECT_KEYS", 3)
    with pytest.raises(RemoteProtocolError, match="objects for keys"):
        standard_json(b"{%b}" % b",".join([b"{}:1"] * 4))
    monkeypatch.setattr(java_json, "MAX_DIALECT_BYTES", 5)
    with pytest.raises(RemoteProtocolError, match="too many to rewrite"):
        decode_java_json(b'{1:"abc"}', dict[int, str])
    monkeypatch.setattr(java_json, "MAX_JSON_BYTES", 8)
    with pytest.raises(RemoteProtocolError, match="over the limit"):
        decode_java_json(b'{"1":"abc"}', dict[int, str])


def test_a_trusted_file_may_be_larger_than_any_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_json, "MAX_JSON_BYTES", 8)
    monkeypatch.setattr(java_json, "MAX_DIALECT_BYTES", 8)
    text = b'{"offsets":{1:2,3:4}}'
    assert decode_java_json(text, dict[str, dict[int, int]], is_trusted=True) == {"offsets": {1: 2, 3: 4}}
    with pytest.raises(RemoteProtocolError):
        decode_java_json(text, dict[str, dict[int, int]])
