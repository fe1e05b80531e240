"""Records: what is written is read back, and what a disk or a network breaks is noticed."""

from contextlib import suppress

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tanist.errors import RemoteProtocolError
from tanist.model.message import Message
from tanist.protocol.record import SECTOR_BYTES, check_record, decode_record, encode_record

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
OFFSETS = st.integers(0, 2**63 - 1)
HOSTS = st.binary(min_size=8, max_size=8) | st.binary(min_size=20, max_size=20)
TOPICS = st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=200)
PROPERTIES = st.binary(max_size=1500).map(lambda raw: raw.replace(b"\0", b"x"))
# Long runs of zeros are what a lost sector looks like, so bodies have many.
BODIES = st.binary(max_size=64) | st.lists(
    st.sampled_from([bytes(300), b"x" * 300, bytes(700), b"body", b""]), max_size=5
).map(b"".join)

MESSAGES = st.builds(
    Message,
    topic=TOPICS,
    queue_id=INT32,
    body=BODIES,
    properties=PROPERTIES,
    flag=INT32,
    sys_flag=INT32,
    born_timestamp_ms=INT64,
    born_host=HOSTS,
    reconsume_times=INT32,
    prepared_transaction_offset=INT64,
)


def _encode(message: Message, *, log_offset: int, store_host: bytes = bytes(8)) -> bytes:
    return encode_record(
        message,
        queue_offset=7,
        log_offset=log_offset,
        store_timestamp_ms=1700000000000,
        store_host=store_host,
    )


@settings(deadline=None)
@given(message=MESSAGES, queue_offset=OFFSETS, log_offset=OFFSETS, store_timestamp_ms=INT64, store_host=HOSTS)
def test_a_record_decodes_to_its_message(
    message: Message, queue_offset: int, log_offset: int, store_timestamp_ms: int, store_host: bytes
) -> None:
    raw = encode_record(
        message,
        queue_offset=queue_offset,
        log_offset=log_offset,
        store_timestamp_ms=store_timestamp_ms,
        store_host=store_host,
    )
    view = memoryview(raw)
    assert check_record(view, 0, log_offset=log_offset) == len(raw)
    record = decode_record(view)
    assert record.size_bytes == len(raw)
    assert (record.queue_offset, record.log_offset) == (queue_offset, log_offset)
    assert (record.store_timestamp_ms, record.store_host) == (store_timestamp_ms, store_host)
    host_bits = (0x10 if len(message.born_host) == 20 else 0) | (0x20 if len(store_host) == 20 else 0)
    again = Message(
        topic=record.topic,
        queue_id=record.queue_id,
        body=bytes(record.body),
        properties=bytes(record.properties),
        flag=record.flag,
        sys_flag=record.sys_flag,
        born_timestamp_ms=record.born_timestamp_ms,
        born_host=record.born_host,
        reconsume_times=record.reconsume_times,
        prepared_transaction_offset=record.prepared_transaction_offset,
    )
    message.sys_flag = message.sys_flag & ~0x30 | host_bits
    assert again == message


@settings(deadline=None)
@given(raw=st.binary(max_size=400), position=st.integers(0, 8))
def test_any_bytes_are_a_record_or_refused(raw: bytes, position: int) -> None:
    _refuses_or_answers(raw, position)


@settings(deadline=None)
@given(message=MESSAGES, data=st.data())
def test_a_record_with_any_bytes_changed_is_a_record_or_refused(
    message: Message, data: st.DataObject
) -> None:
    raw = bytearray(_encode(message, log_offset=0))
    # The heads and lengths, where a wrong byte leads furthest astray, lie at both ends.
    places = st.integers(0, min(len(raw), 120) - 1) | st.integers(0, len(raw) - 1)
    for place, byte in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=4)):
        raw[place] = byte
    _refuses_or_answers(bytes(raw), 0)


def _refuses_or_answers(raw: bytes, position: int) -> None:
    view = memoryview(raw)
    with suppress(RemoteProtocolError):
        assert decode_record(view, position).size_bytes <= len(raw)
    with suppress(RemoteProtocolError):
        assert check_record(view, position, log_offset=0) <= len(raw)


@settings(deadline=None)
@given(message=MESSAGES, log_offset=OFFSETS, data=st.data())
def test_a_flipped_bit_of_the_body_is_found(message: Message, log_offset: int, data: st.DataObject) -> None:
    assume(len(message.body) > 0)
    raw = bytearray(_encode(message, log_offset=log_offset))
    body = decode_record(memoryview(bytes(raw))).body
    body_start = len(raw) - len(message.properties) - 2 - len(body)
    body_start -= len(message.topic.encode()) + (1 if len(message.topic.encode()) < 128 else 2)
    bit = data.draw(st.integers(body_start * 8, (body_start + len(body)) * 8 - 1))
    raw[bit // 8] ^= 1 << bit % 8
    with pytest.raises(RemoteProtocolError):
        check_record(memoryview(bytes(raw)), 0, log_offset=log_offset)


@settings(deadline=None, max_examples=300)
@given(message=MESSAGES, position=st.integers(0, 2 * SECTOR_BYTES), data=st.data())
def test_sectors_that_were_never_written_are_found(
    message: Message, position: int, data: st.DataObject
) -> None:
    # A file starts at a multiple of its size, so a record's place in it are its offset's low bits.
    log_offset = (1 << 30) + position
    record = _encode(message, log_offset=log_offset)
    whole = bytes(position) + record + bytes(SECTOR_BYTES)
    sectors = range(position // SECTOR_BYTES, (position + len(record) - 1) // SECTOR_BYTES + 1)
    torn = bytearray(whole)
    for sector in data.draw(st.sets(st.sampled_from(sectors), min_size=1)):
        torn[sector * SECTOR_BYTES : (sector + 1) * SECTOR_BYTES] = bytes(SECTOR_BYTES)
    assume(bytes(torn[position : position + len(record)]) != record)
    with pytest.raises(RemoteProtocolError):
        check_record(memoryview(torn), position, log_offset=log_offset)


@settings(deadline=None)
@given(message=MESSAGES, data=st.data())
def test_a_tail_that_was_never_written_is_found(message: Message, data: st.DataObject) -> None:
    record = _encode(message, log_offset=1 << 30)
    kept = data.draw(st.integers(0, len(record) - 1))
    torn = record[:kept] + bytes(len(record) - kept)
    assume(torn != record)
    with pytest.raises(RemoteProtocolError):
        check_record(memoryview(torn), 0, log_offset=1 << 30)
