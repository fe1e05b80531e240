"""A send that C takes at once is the send that Python takes step by step; whatever is odd C leaves alone."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.broker.delays.rules import DelayRules
from tanist.broker.intake import Intake
from tanist.broker.placing import Placing
from tanist.errors import ProtocolError, ResponseError
from tanist.model.topics import TopicConfig
from tanist.protocol import header_json, layout
from tanist.protocol.command import Command
from tanist.protocol.frame import SEND_ANSWER_TEXTS, encode_send_answer
from tanist.protocol.header_json import decode_json_header
from tanist.protocol.headers.send import SendMessageRequestV2
from tanist.protocol.layout import lay_out
from tanist.protocol.message_id import encode_offset_id
from tests.support.broker_tables import SETTINGS
from tests.support.lane_scene import FIELDS, HOST, NOW_MS, QUEUES, TOPIC

pytestmark = pytest.mark.partner("native")
native = pytest.importorskip("tanist.protocol._native")

NEXT_OFFSET, LOG_OFFSET = 77, 1 << 33
INTAKE = Intake(cluster="C", max_body_bytes=64)
PLACING = Placing(delays=DelayRules.of(SETTINGS, (1, 5)))
JAVA_ENVELOPE = {"language": "JAVA", "opaque": 9, "serializeTypeCurrentRPC": "JSON", "version": 479}
GOOD = {**FIELDS, "n": "broker-a"}

_numbers = st.sampled_from(["0", "1", "3", "4", "-1", "-0", "007", "", " 1", "1.0", "2147483648", "9" * 19])
_numbers |= st.integers(-(1 << 33), 1 << 33).map(str)
_words = st.sampled_from(["UNIQ_KEY", "TAGS", "KEYS", "DELAY", "TRAN_MSG", "TIMER_DELIVER_MS", "W", ""])
_texts = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(["AB12", "", "\0", "a b"])
_properties = st.lists(st.tuples(_words, st.sampled_from(["\x01", ""]), _texts).map("".join), max_size=4).map(
    "\x02".join
)
_fields = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys("acn", _texts),
        "b": st.sampled_from([TOPIC, "Other", "", "Größe"]),
        **dict.fromkeys("defghjl", _numbers),
        **{name: st.sampled_from(["true", "false", "TRUE", "1", ""]) for name in "km"},
        "i": _properties | st.builds("UNIQ_KEY\x01K1\x02{}".format, _properties),
        "x": _texts,
        "zone": _texts,
    },
)
_envelopes = st.fixed_dictionaries(
    {},
    optional={
        "flag": st.sampled_from([0, 2, -1, 1 << 31, "0", None]),
        "opaque": st.integers(-(1 << 32), 1 << 32) | st.sampled_from(["5", 1.5]),
        "language": st.sampled_from(["JAVA", "GO", "NONE", "", 'q"', 7]),
        "version": st.integers(-5, 500),
        "remark": st.sampled_from([None, "r"]),
    },
)


def make_header(fields: dict[str, Any], envelope: dict[str, Any], is_ascii: bool) -> bytes:
    header = {"code": 310, "extFields": {**GOOD, **fields}, "flag": 0, **JAVA_ENVELOPE, **envelope}
    return json.dumps(header, separators=(",", ":"), ensure_ascii=is_ascii).encode("utf-8", "replace")


_headers = st.builds(make_header, _fields, _envelopes, st.booleans())


def splice(header: bytes, position: int, cut: int, added: bytes) -> bytes:
    position %= len(header) + 1
    return header[:position] + added + header[position + cut :]


_bits = st.binary(max_size=3) | st.sampled_from(
    [b'"', b"\\", b"\\u0001", b"\\u00", b'","a":"', b"}", b",", b" "]
)
_spliced = st.builds(splice, _headers, st.integers(0, 2000), st.integers(0, 4), _bits)
mixed_headers = _headers | _spliced


def by_python(header: bytes, body: bytes) -> tuple[Any, ...]:
    """What SendHandler does with a send to a known topic and queue, as ``take_send`` returns it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(header_json, "native", None)
        patch.setattr(layout, "native", None)
        command = decode_json_header(header, memoryview(b""))
        request = command.header(SendMessageRequestV2)
        topic = TopicConfig(topic_name=TOPIC, read_queue_count=QUEUES, write_queue_count=QUEUES)
        assert (request.topic, request.is_batch or False) == (TOPIC, False)
        assert 0 <= request.queue_id < QUEUES
        message, unique_key = INTAKE.accept(
            request, body, topic=topic, queue_id=request.queue_id, born_host=HOST, make_id=None
        )
        assert unique_key
        assert PLACING.place(message, NOW_MS) is message
        place = {"queue_offset": NEXT_OFFSET, "log_offset": LOG_OFFSET, "store_timestamp_ms": NOW_MS}
        laid = lay_out(message, **place, store_host=HOST)
        answer = encode_send_answer(
            command,
            code=0,
            msg_id=encode_offset_id(HOST, LOG_OFFSET),
            queue_id=request.queue_id,
            queue_offset=NEXT_OFFSET,  # pyright: ignore[reportArgumentType]
            unique_key=unique_key,
        )
        return (*laid, (TOPIC, request.queue_id), NEXT_OFFSET, answer, command.flag)


def by_c(header: bytes, body: bytes) -> tuple[Any, ...] | None:
    next_offsets = {(TOPIC, queue_id): NEXT_OFFSET for queue_id in range(QUEUES)}
    plan = ({TOPIC: QUEUES}, next_offsets, HOST, INTAKE.stamp, INTAKE.max_body_bytes, SEND_ANSWER_TEXTS)
    return native.take_send(header, body, HOST, plan, LOG_OFFSET, NOW_MS)


@given(_headers | _spliced, st.binary(max_size=70))
def test_what_is_taken_at_once_is_taken_as_step_by_step(header: bytes, body: bytes) -> None:
    taken = by_c(header, body)
    if taken is not None:
        assert taken == by_python(header, body)


@given(_headers | _spliced | st.binary(max_size=60))
def test_an_envelope_is_read_alike(header: bytes) -> None:
    quick = _decoded(header)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(header_json, "native", None)
        careful = _decoded(header)
    assert quick == careful


def _decoded(header: bytes) -> tuple[Command, SendMessageRequestV2 | None] | str | None:
    """The command, and its fields if they are those of a send; if none can be read, why not."""
    try:
        command = decode_json_header(header, memoryview(b""))
    except (ProtocolError, ResponseError):
        return None
    try:
        # They are read when they are needed, here to compare.
        _ = command.ext
    except ProtocolError as error:
        return str(error)
    try:
        return command, command.header(SendMessageRequestV2)
    except ProtocolError:
        return command, None


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"e": "3", "h": "-5", "j": "2", "f": "1"},
        {"i": 'a\x01"\\/\b\f\n\r\t\x02UNIQ_KEY\x017F00\x02KEYS\x01k1 k2\x02WAIT\x01true'},
        {"bname": "broker-a", "g": "-1"},
    ],
)
def test_plain_sends_are_taken_at_once(changes: dict[str, str]) -> None:
    header = make_header(changes, {}, True)
    assert by_c(header, b"body") == by_python(header, b"body")


@pytest.mark.parametrize(
    "changes",
    [
        {"b": "Other"},
        {"e": "4"},
        {"e": "-1"},
        {"f": "4"},
        {"f": "8"},
        {"m": "true"},
        {"i": "TAGS\x01t"},
        {"i": "UNIQ_KEY\x01K\x02DELAY\x013"},
        {"i": "UNIQ_KEY\x01K\x02TIMER_DELAY_MS\x013"},
        {"i": "UNIQ_KEY\x01K\x02TRAN_MSG\x01true"},
        {"i": "UNIQ_KEY\x01K\x02a\x01\0"},
        {"i": "UNIQ_KEY\x01K\x02a\x01é"},
        {"i": "UNIQ_KEY\x01K-1"},
        {"i": "UNIQ_KEY\x01K\x02a\x01" + "x" * 32_700},
    ],
)
def test_all_others_are_left_alone(changes: dict[str, str]) -> None:
    assert by_c(make_header(changes, {}, True), b"body") is None


def test_no_body_and_one_too_long_are_left_alone() -> None:
    header = make_header({}, {}, True)
    assert by_c(header, b"") is None
    assert by_c(header, bytes(65)) is None
    assert by_c(header, bytes(64)) is not None


def test_what_is_no_plan_is_left_alone() -> None:
    header = make_header({}, {}, True)
    plans: list[Any] = [None, (), ({}, {}, HOST, b"", 9, ()), ([], {}, HOST, b"", 9, SEND_ANSWER_TEXTS)]
    for plan in plans:
        assert native.take_send(header, b"body", HOST, plan, LOG_OFFSET, NOW_MS) is None
    with pytest.raises(TypeError, match="are needed"):
        native.take_send(header)
