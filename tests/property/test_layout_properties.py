"""The C twin lays out every message as Python does, or leaves it to Python."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.errors import ProtocolError
from tanist.model.message import Message
from tanist.protocol import layout
from tanist.protocol.batch import encode_batch
from tanist.protocol.layout import LaidOut, lay_out, lay_out_batch

pytestmark = pytest.mark.partner("native")

_text = st.text(st.characters(codec="utf-8"), max_size=12)
_names = st.sampled_from(["TAGS", "KEYS", "UNIQ_KEY", "KEY", "TAGSX", "", "W"])
_segments = st.tuples(_names, st.sampled_from(["\x01", "", "\x01\x01"]), _text).map("".join)
_properties = st.lists(_segments, max_size=6).map("\x02".join) | st.builds(
    "{}\x02".format, st.lists(_segments, max_size=6).map("\x02".join)
)
_raw = _properties.map(lambda text: text.encode()) | st.binary(max_size=40)
_hosts = st.sampled_from([bytes(8), b"\x7f\0\0\1\0\0\x2a\x9f", bytes(20), b"short"])
_int32 = st.integers(-(1 << 31), (1 << 31) - 1) | st.integers(-(1 << 33), 1 << 33)
_messages = st.builds(
    Message,
    topic=st.sampled_from(["T", "TopicA", "%RETRY%g", "t" * 127, "t" * 128, "Größe", "", "a\0"]),
    queue_id=_int32,
    body=st.binary(max_size=60),
    properties=_raw,
    flag=_int32,
    sys_flag=st.sampled_from([0, 1, 4, 8, 12, 0x30, 0x38, 0x301]) | _int32,
    born_timestamp_ms=st.integers(-(1 << 63), (1 << 63) - 1),
    born_host=_hosts,
    reconsume_times=_int32,
    prepared_transaction_offset=st.integers(-(1 << 63), (1 << 63) - 1),
)
_items = st.lists(st.tuples(st.integers(0, 99), st.binary(max_size=30), _raw), min_size=1, max_size=5)
_batches = st.builds(encode_batch, _items) | st.binary(max_size=80)


def _outcome(lay: Callable[..., LaidOut], message: Message, host: bytes) -> LaidOut | type[ProtocolError]:
    try:
        return lay(message, queue_offset=3, log_offset=1 << 40, store_timestamp_ms=99, store_host=host)
    except ProtocolError as error:
        return type(error)


def _assert_alike(lay: Callable[..., LaidOut], message: Message, host: bytes) -> None:
    quick = _outcome(lay, message, host)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "native", None)
        assert _outcome(lay, message, host) == quick


@given(_messages, _hosts)
def test_one_message_is_laid_out_alike(message: Message, host: bytes) -> None:
    _assert_alike(lay_out, message, host)


@given(_messages, _batches, _hosts)
def test_a_batch_is_laid_out_alike(message: Message, body: bytes, host: bytes) -> None:
    message.body = body
    _assert_alike(lay_out_batch, message, host)
