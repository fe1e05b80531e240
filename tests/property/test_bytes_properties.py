"""Property strings, ids, batches and compressed bodies: what goes in comes out, and noise is refused."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.errors import RemoteProtocolError
from tanist.model.java_hash import java_hash
from tanist.protocol.batch import decode_batch, encode_batch
from tanist.protocol.compression import compress_body, decompress_body
from tanist.protocol.key_index import IndexHeader, decode_index_header, encode_index_header, key_hash
from tanist.protocol.message_id import (
    UniqueIds,
    decode_offset_id,
    decode_unique_id,
    encode_offset_id,
)
from tanist.protocol.properties import decode_properties, encode_properties, find_property
from tanist.protocol.queue_entry import QueueEntry, decode_entries, encode_entry
from tanist.protocol.tags import index_keys, tags_code

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
OFFSETS = st.integers(0, 2**63 - 1)

TEXTS = st.text(st.characters(exclude_characters="\0\1\2", codec="utf-8"), min_size=1, max_size=20)
# Few letters and many separators: so names repeat, are empty, and stand inside each other.
STRINGS = st.text("ab\1\2é", max_size=30).map(str.encode) | st.binary(max_size=30)
FLAGS = st.sampled_from([0x1, 0x101, 0x201, 0x301])


@settings(deadline=None)
@given(properties=st.dictionaries(TEXTS, TEXTS))
def test_properties_decode_to_what_was_encoded(properties: dict[str, str]) -> None:
    raw = encode_properties(properties)
    assert decode_properties(raw) == properties
    assert decode_properties(raw.removesuffix(b"\x02")) == properties


@settings(deadline=None, max_examples=500)
@given(raw=STRINGS, name=st.text("ab\1\2é", max_size=3))
def test_finding_one_property_agrees_with_decoding_all(raw: bytes, name: str) -> None:
    properties = decode_properties(raw)
    for wanted in {name, *properties} - {other for other in properties if "\ufffd" in other}:
        found = find_property(raw, wanted)
        assert find_property(raw, wanted.encode()) == found
        assert (None if found is None else found.decode("utf-8", "replace")) == properties.get(wanted)


@settings(deadline=None)
@given(raw=STRINGS, tag=st.text() | st.binary() | st.none())
def test_any_properties_can_be_indexed(raw: bytes, tag: str | bytes | None) -> None:
    assert all(index_keys(raw))
    assert -(2**31) <= tags_code(tag) < 2**31


@settings(deadline=None)
@given(topic=st.text(), key=st.text())
def test_the_hash_of_a_key_is_never_negative(topic: str, key: str) -> None:
    assert 0 <= key_hash(topic, key) < 2**31
    assert key_hash(topic, key) == abs(java_hash(f"{topic}#{key}")) % 2**31


@settings(deadline=None)
@given(
    address=st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16),
    port=st.integers(0, 65535),
    log_offset=OFFSETS,
)
def test_an_offset_id_decodes_to_what_was_encoded(address: bytes, port: int, log_offset: int) -> None:
    host = address + port.to_bytes(4)
    assert decode_offset_id(encode_offset_id(host, log_offset)) == (host, log_offset)


@settings(deadline=None)
@given(
    address=st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16),
    pid=st.integers(0, 2**22),
    discriminator=INT32,
    clock_ms=st.lists(st.integers(0, 4_000_000_000_000), min_size=1, max_size=20),
)
def test_unique_ids_hold_what_made_them_and_differ(
    address: bytes, pid: int, discriminator: int, clock_ms: list[int]
) -> None:
    ids = UniqueIds(address=address, pid=pid, discriminator=discriminator)
    made = [ids.next_id(now_ms) for now_ms in clock_ms]
    assert len(set(made)) == len(made)
    for number, text in enumerate(made):
        unique_id = decode_unique_id(text)
        assert (unique_id.address, unique_id.pid, unique_id.counter) == (address, pid & 0xFFFF, number)
        assert unique_id.discriminator == discriminator & 0xFFFFFFFF
        assert 0 <= unique_id.month_ms < 31 * 24 * 3600 * 1000


@settings(deadline=None)
@given(text=st.text(max_size=60) | st.text("0123456789abcdefABCDEF ", min_size=32, max_size=56))
def test_any_text_is_an_id_or_refused(text: str) -> None:
    for decode in (decode_offset_id, decode_unique_id):
        with suppress(RemoteProtocolError):
            decode(text)


@settings(deadline=None)
@given(
    items=st.lists(st.tuples(INT32, st.binary(max_size=50), st.binary(max_size=50)), min_size=1, max_size=5)
)
def test_a_batch_decodes_to_what_was_encoded(items: list[tuple[int, bytes, bytes]]) -> None:
    raw = encode_batch(items)
    assert [(item.flag, bytes(item.body), bytes(item.properties)) for item in decode_batch(raw)] == items


@settings(deadline=None)
@given(
    noise=st.binary(max_size=100), kept=st.integers(0, 60), place=st.integers(0, 59), byte=st.integers(0, 255)
)
def test_any_bytes_are_a_batch_or_refused(noise: bytes, kept: int, place: int, byte: int) -> None:
    broken = bytearray(encode_batch([(0, b"body", b"a\x01b\x02"), (1, b"next", b"")]))
    broken[place % len(broken)] = byte
    for raw in (noise, bytes(broken), bytes(broken[:kept]) + noise):
        try:
            items = decode_batch(raw)
        except RemoteProtocolError:
            continue
        assert sum(22 + len(item.body) + len(item.properties) for item in items) == len(raw)


@settings(deadline=None)
@given(body=st.binary(max_size=300), flag=FLAGS)
def test_a_body_decompresses_to_what_was_compressed(body: bytes, flag: int) -> None:
    packed = compress_body(body, flag)
    assert decompress_body(packed, flag, max_bytes=max(1, len(body))) == body
    if len(body) > 1:
        with pytest.raises(RemoteProtocolError):
            decompress_body(packed, flag, max_bytes=len(body) - 1)


@settings(deadline=None)
@given(
    body=st.binary(max_size=300),
    noise=st.binary(max_size=60),
    kept=st.integers(0, 60),
    flag=st.integers(0, 0x7FF),
)
def test_any_bytes_decompress_within_the_bound_or_are_refused(
    body: bytes, noise: bytes, kept: int, flag: int
) -> None:
    known = flag if flag & 0x700 <= 0x300 else 0x301
    for raw in (noise, compress_body(body, known)[:kept] + noise):
        try:
            plain = decompress_body(raw, flag | 0x1, max_bytes=1000)
        except RemoteProtocolError:
            continue
        assert len(plain) <= 1000


@settings(deadline=None)
@given(entries=st.lists(st.builds(QueueEntry, INT64, INT32, INT64), max_size=8), cut=st.binary(max_size=19))
def test_queue_entries_decode_to_what_was_encoded(entries: list[QueueEntry], cut: bytes) -> None:
    raw = b"".join(encode_entry(*entry) for entry in entries)
    assert decode_entries(raw + cut) == entries


@settings(deadline=None)
@given(
    header=st.builds(
        IndexHeader, OFFSETS, OFFSETS, OFFSETS, OFFSETS, st.integers(0, 2**31 - 1), st.integers(1, 2**31 - 1)
    )
)
def test_an_index_header_decodes_to_what_was_encoded(header: IndexHeader) -> None:
    assert decode_index_header(encode_index_header(header)) == header


@settings(deadline=None)
@given(raw=st.binary(max_size=60))
def test_any_bytes_are_an_index_header_or_refused(raw: bytes) -> None:
    with suppress(RemoteProtocolError):
        assert min(decode_index_header(raw)) >= 0
