import struct

import pytest

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.protocol.batch import MIN_ITEM_BYTES, decode_batch, encode_batch


def _item(body: bytes, properties: bytes, *, size: int | None = None, body_bytes: int | None = None) -> bytes:
    real = 22 + len(body) + len(properties)
    head = struct.pack(
        ">iiiii", real if size is None else size, 0, 0, 7, len(body) if body_bytes is None else body_bytes
    )
    return head + body + struct.pack(">h", len(properties)) + properties


def test_a_batch_is_its_messages_back_to_back() -> None:
    raw = encode_batch([(7, b"hello", b"TAGS\x01A\x02"), (7, b"", b"")])
    assert raw == _item(b"hello", b"TAGS\x01A\x02") + _item(b"", b"")


def test_items_are_views_of_the_request() -> None:
    raw = encode_batch([(7, b"hello", b"a\x01b\x02"), (-1, b"x", b"")])
    first, second = decode_batch(raw)
    assert (first.flag, bytes(first.body), bytes(first.properties)) == (7, b"hello", b"a\x01b\x02")
    assert (second.flag, bytes(second.body), bytes(second.properties)) == (-1, b"x", b"")
    assert first.body.obj is raw


def test_magic_and_checksum_are_not_read_as_in_rocketmq() -> None:
    raw = bytearray(encode_batch([(0, b"x", b"")]))
    raw[4:12] = b"\xff" * 8
    assert bytes(decode_batch(bytes(raw))[0].body) == b"x"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\0" * (MIN_ITEM_BYTES - 1),
        b"\0" * MIN_ITEM_BYTES,
        _item(b"x", b"", size=22),
        _item(b"x", b"", size=24),
        _item(b"x", b"", size=-1),
        _item(b"x", b"", body_bytes=-1),
        _item(b"x", b"", body_bytes=2**31 - 1),
        _item(b"x", b"", body_bytes=0),
        _item(b"x", b"") + b"\0",
        _item(b"x", b"ab")[:-1],
    ],
)
def test_lengths_that_do_not_add_up_are_refused(raw: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_batch(raw)


def test_a_negative_properties_length_is_refused() -> None:
    raw = bytearray(_item(b"x", b""))
    raw[-2:] = b"\xff\xff"
    with pytest.raises(RemoteProtocolError):
        decode_batch(bytes(raw))


def test_a_batch_of_too_many_messages_is_refused() -> None:
    raw = encode_batch([(0, b"x", b"")] * 3)
    assert len(decode_batch(raw, max_items=3)) == 3
    with pytest.raises(RemoteProtocolError, match="more than 2"):
        decode_batch(raw, max_items=2)


def test_a_batch_that_could_not_be_stored_is_not_sent() -> None:
    with pytest.raises(LocalProtocolError):
        encode_batch([])
    with pytest.raises(LocalProtocolError):
        encode_batch([(0, b"x", b"p" * 32768)])
