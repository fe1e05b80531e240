"""Java's JSON: its dialect means what it should, and nothing hostile gets further than an error."""

import json
import time
from contextlib import suppress
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.errors import RemoteProtocolError
from tanist.model.integers import INT64_MAX, INT64_MIN
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue, TopicRouteData
from tanist.protocol.bodies import ObjectKeyed, client, encode_body, replication, running, stats, sync, tables
from tanist.protocol.bodies.config_text import decode_config
from tanist.protocol.bodies.registration import RegisterBrokerBody, decode_registration
from tanist.protocol.bodies.reset import OffsetTable
from tanist.protocol.java_json import MAX_DIALECT_BYTES, decode_java_json, standard_json

BODIES: list[type[msgspec.Struct]] = [
    TopicRouteData,
    RegisterBrokerBody,
    OffsetTable,
    client.HeartbeatData,
    client.ConsumerConnections,
    running.ConsumerRunningInfo,
    stats.ConsumeStats,
    stats.BrokerConsumeStats,
    sync.ConsumerOffsetTable,
    sync.SubscriptionGroupTable,
    tables.KVTable,
    replication.SyncStateData,
]

TEXT = st.text(max_size=8) | st.sampled_from(
    ["", '"', "\\", "{", "}", "}:", "{1:2}", ',{"a":1}:', "\n\t", "😀"]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | TEXT.map(lambda text: text.encode("utf-8", "replace").decode())
)
BLANKS = st.sampled_from(["", "", "", " ", "\n\t"])


class Written:
    """A value as Java writes it, and the standard JSON it means."""

    def __init__(self, dialect: str, standard: str) -> None:
        self.dialect = dialect
        self.standard = standard


def scalar(value: object) -> Written:
    return Written(json.dumps(value), json.dumps(value))


@st.composite
def objects(draw: st.DrawFn, members: st.SearchStrategy[Written], *, may_have_object_keys: bool) -> Written:
    dialect: list[str] = []
    standard: list[str] = []
    kinds = ["string", "integer", "object"] if may_have_object_keys else ["string", "integer"]
    for value in draw(st.lists(members, max_size=4)):
        match draw(st.sampled_from(kinds)):
            case "integer":
                key = str(draw(st.integers(-5, 100)))
                quoted = json.dumps(key)
            case "object":
                flat = draw(objects(SCALARS.map(scalar), may_have_object_keys=False))
                key = flat.dialect
                quoted = json.dumps(flat.standard)
            case _:
                key = quoted = json.dumps(draw(TEXT))
        before, after = draw(BLANKS), draw(BLANKS)
        dialect.append(f"{before}{key}{after}:{value.dialect}")
        standard.append(f"{quoted}:{value.standard}")
    return Written("{" + ",".join(dialect) + "}", "{" + ",".join(standard) + "}")


def arrays(members: st.SearchStrategy[Written]) -> st.SearchStrategy[Written]:
    return st.lists(members, max_size=3).map(
        lambda items: Written(
            "[" + ", ".join(item.dialect for item in items) + "]",
            "[" + ",".join(item.standard for item in items) + "]",
        )
    )


DOCUMENTS = st.recursive(
    SCALARS.map(scalar),
    lambda members: arrays(members) | objects(members, may_have_object_keys=True),
    max_leaves=20,
)
FRAGMENTS = st.sampled_from(
    [
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b",",
        b'"',
        b"\\",
        b"1",
        b"-",
        b" ",
        b'"a"',
        b"null",
        b"}:",
        b"{{",
        b'"$ref":',
        b"\xff",
    ]
)
SOUP = st.lists(FRAGMENTS, max_size=40).map(b"".join) | st.binary(max_size=60)
QUEUES = st.builds(MessageQueue, topic=TEXT, broker_name=TEXT, queue_id=st.integers(-1, 9))
OFFSETS = st.integers(INT64_MIN, INT64_MAX).map(QueueOffset)


def pairs(value: Any) -> Any:
    """Parse JSON text that serves as a key, so that blanks and escapes in it do not matter."""
    if isinstance(value, dict):
        return [(key_of(key), pairs(member)) for key, member in cast("dict[str, Any]", value).items()]
    if isinstance(value, list):
        return [pairs(item) for item in cast("list[Any]", value)]
    return value


def key_of(key: str) -> Any:
    with suppress(ValueError, RecursionError):
        parsed = json.loads(key)
        if isinstance(parsed, dict):
            return json.dumps(parsed)
    return key


@settings(deadline=None)
@given(document=DOCUMENTS)
def test_the_dialect_means_its_standard_form(document: Written) -> None:
    rewritten = json.loads(standard_json(document.dialect.encode()))
    assert pairs(rewritten) == pairs(json.loads(document.standard))


@settings(deadline=None)
@given(document=DOCUMENTS)
def test_standard_json_comes_out_as_it_went_in(document: Written) -> None:
    text = document.standard.encode()
    assert standard_json(text) == text


@settings(deadline=None)
@given(table=st.dictionaries(QUEUES, OFFSETS, max_size=5).map(ObjectKeyed))
def test_a_table_by_queue_comes_back(table: ObjectKeyed[MessageQueue, QueueOffset]) -> None:
    body = OffsetTable(offset_table=table)
    assert decode_java_json(encode_body(body), OffsetTable) == body


@pytest.mark.parametrize("body_type", BODIES, ids=lambda body_type: body_type.__name__)
@settings(max_examples=50, deadline=None)
@given(text=SOUP | DOCUMENTS.map(lambda document: document.dialect.encode()))
def test_any_bytes_give_a_body_or_an_error(body_type: type[msgspec.Struct], text: bytes) -> None:
    with suppress(RemoteProtocolError):
        assert isinstance(decode_java_json(text, body_type), body_type)


@settings(deadline=None)
@given(text=SOUP, is_compressed=st.booleans(), version=st.sampled_from([0, 409, 413, 479]))
def test_any_bytes_give_a_registration_or_an_error(text: bytes, is_compressed: bool, version: int) -> None:
    with suppress(RemoteProtocolError):
        decode_registration(text, is_compressed=is_compressed, version=version)


@given(text=st.binary(max_size=60))
def test_any_bytes_give_settings_or_an_error(text: bytes) -> None:
    with suppress(RemoteProtocolError):
        decode_config(text)


@pytest.mark.parametrize(
    "piece",
    [b"{", b"[", b'"', b'\\"', b"{1:", b"{}:", b"{},", b"1,", b" ", b'{"a":', b'{{"a":1}:1},', b"-"],
    ids=repr,
)
def test_the_longest_hostile_text_takes_linear_time(piece: bytes) -> None:
    started = time.process_time()
    with suppress(RemoteProtocolError):
        standard_json(piece * (MAX_DIALECT_BYTES // 8 // len(piece)))
    assert time.process_time() - started < 5
