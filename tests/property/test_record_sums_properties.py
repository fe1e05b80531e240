"""Passing sound records in C against the same in Python: sound ones, cut ones, and damaged ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.model.message import Message
from tanist.protocol import record_sums
from tanist.protocol.record import encode_record
from tanist.protocol.record_sums import pass_sound
from tests.support.messages import TOPIC

pytestmark = pytest.mark.partner("native")

_HOSTS = st.sampled_from([bytes(8), bytes(20)])
_MESSAGES = st.builds(
    Message,
    topic=st.just(TOPIC),
    queue_id=st.integers(0, 3),
    body=st.binary(max_size=200),
    properties=st.sampled_from([b"", b"KEYS\x01k\x02"]),
    born_host=_HOSTS,
)


def _log_of(messages: list[Message], log_offset: int, store_host: bytes) -> bytearray:
    log = bytearray()
    for message in messages:
        log += encode_record(
            message,
            queue_offset=1,
            log_offset=log_offset + len(log),
            store_timestamp_ms=1,
            store_host=store_host,
        )
    return log


@given(
    messages=st.lists(_MESSAGES, max_size=5),
    log_offset=st.integers(0, 2**60),
    store_host=_HOSTS,
    cut=st.integers(0, 1500),
    flip=st.none() | st.tuples(st.integers(0, 1500), st.integers(1, 255)),
)
def test_c_passes_what_python_passes(
    messages: list[Message], log_offset: int, store_host: bytes, cut: int, flip: tuple[int, int] | None
) -> None:
    log = _log_of(messages, log_offset, store_host)
    if flip is not None and flip[0] < len(log):
        log[flip[0]] ^= flip[1]
    view = memoryview(bytes(log[:cut]))
    passed = pass_sound(view, log_offset)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_sums, "native", None)
        assert pass_sound(view, log_offset) == passed
    if flip is None and len(log) <= cut:
        assert passed == len(log)


def test_a_changed_byte_of_a_body_is_not_passed() -> None:
    messages = [Message(topic=TOPIC, queue_id=0, body=body) for body in (b"first", b"second")]
    log = _log_of(messages, 7, bytes(8))
    assert pass_sound(bytes(log), 7) == len(log)
    first = log.index(b"second") - 88
    log[log.index(b"second")] ^= 1
    assert pass_sound(bytes(log), 7) == first
    assert pass_sound(bytes(log), 8) == 0


def test_what_is_no_place_is_refused() -> None:
    native = pytest.importorskip("tanist.protocol._native")
    for wrong in ((b"", -1), (b"",), (b"", "0"), (5, 0)):
        with pytest.raises(TypeError):
            native.pass_sound(*wrong)
