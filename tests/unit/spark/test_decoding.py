"""Records to columns: every field is what decoding one record alone gives."""

import random
import struct
import zlib
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tanist.model.epochs import Epoch
from tanist.model.host import host_and_port, pack_host, unpack_host
from tanist.model.message import Message, SysFlag
from tanist.model.offsets import LogOffset
from tanist.protocol.compression import Compression, compress_body
from tanist.protocol.message_id import encode_offset_id
from tanist.protocol.properties import decode_properties
from tanist.protocol.record import decode_record, encode_blank, encode_record
from tanist.spark.columns import FILE_COLUMNS
from tanist.spark.decoding import Stop, checksums, gather, have_sound_bodies, locate, walk
from tanist.spark.making import Origin, make_batch
from tests.support.messages import make_message
from tests.support.spark_stores import STORE_HOST, as_array, lay_out

pytestmark = pytest.mark.usefixtures("twin")

V6 = pack_host("2001:db8::7", 4660)


def rows_of(data: bytes, origin: Origin | None = None) -> list[dict[str, Any]]:
    raw = as_array(data)
    walked = walk(raw, 0, len(raw))
    located, is_sound = locate(raw, walked.starts, walked.starts)
    assert is_sound.all()
    return make_batch(located, FILE_COLUMNS, origin or Origin()).to_pylist()


messages = st.builds(
    Message,
    topic=st.sampled_from(["T", "Ünicode", "t" * 127, "%RETRY%" + "g" * 140]),
    queue_id=st.integers(0, 1000),
    body=st.binary(max_size=40),
    properties=st.sampled_from(
        [b"", b"TAGS\x01a\x02", b"KEYS\x01k1 k2\x02UNIQ_KEY\x01U7\x02TAGS\x01b", b"\x02x\x01y"]
    ),
    flag=st.integers(-5, 5),
    born_timestamp_ms=st.integers(0, 1 << 41),
    born_host=st.sampled_from([STORE_HOST, V6]),
    reconsume_times=st.integers(0, 16),
    prepared_transaction_offset=st.integers(0, 1 << 50),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(messages, st.sampled_from([STORE_HOST, V6])), max_size=8))
def test_a_column_holds_what_each_record_alone_does(given_messages: list[tuple[Message, bytes]]) -> None:
    data = b""
    for number, (message, store_host) in enumerate(given_messages):
        data += encode_record(
            message,
            queue_offset=number,
            log_offset=len(data),
            store_timestamp_ms=1_700_000_000_000 + number,
            store_host=store_host,
        )

    position = 0
    for row in rows_of(data):
        record = decode_record(data, position)
        found = decode_properties(record.properties)
        assert row["topic"] == record.topic
        assert (row["queueId"], row["queueOffset"]) == (record.queue_id, record.queue_offset)
        assert (row["commitLogOffset"], row["storeSize"]) == (position, record.size_bytes)
        assert round(row["bornTimestamp"].timestamp() * 1000) == record.born_timestamp_ms
        assert round(row["storeTimestamp"].timestamp() * 1000) == record.store_timestamp_ms
        assert row["bornHost"] == host_and_port(*unpack_host(record.born_host))
        assert row["storeHost"] == host_and_port(*unpack_host(record.store_host))
        assert row["msgId"] == found.get("UNIQ_KEY", encode_offset_id(record.store_host, record.log_offset))
        assert (row["tags"], row["keys"]) == (found.get("TAGS"), found.get("KEYS"))
        assert (row["sysFlag"], row["flag"], row["bodyCRC"]) == (
            record.sys_flag,
            record.flag,
            record.body_crc,
        )
        assert row["reconsumeTimes"] == record.reconsume_times
        assert row["preparedTransactionOffset"] == record.prepared_transaction_offset
        assert dict(row["properties"]) == found
        assert row["body"] == record.body
        assert (row["brokerName"], row["epoch"], row["broken"]) == (None, None, None)
        position += record.size_bytes
    assert position == len(data)


@pytest.mark.parametrize("kind", [0, Compression.ZLIB, Compression.LZ4, Compression.ZSTD])
def test_a_compressed_body_comes_as_it_was_sent(kind: int) -> None:
    sent = b"many words " * 100
    flag = int(SysFlag.COMPRESSED) | kind
    message = make_message(0, sys_flag=flag)
    packed = msgspec.structs.replace(message, body=compress_body(sent, flag))

    assert [row["body"] for row in rows_of(lay_out([message, packed][1:]))] == [sent]


def test_a_record_is_of_the_epoch_that_wrote_it() -> None:
    data = lay_out([make_message(number) for number in range(3)])
    size = len(data) // 3
    epochs = (Epoch(4, LogOffset(size)), Epoch(7, LogOffset(2 * size)))

    assert [row["epoch"] for row in rows_of(data, Origin(epochs=epochs))] == [None, 4, 7]


def test_a_walk_ends_before_what_is_no_whole_record() -> None:
    data = lay_out([make_message(0), make_message(1)])
    size = len(data) // 2

    def end(raw: bytes, limit: int | None = None) -> tuple[int, int, Stop]:
        found = walk(as_array(raw), 0, len(raw) if limit is None else limit)
        return len(found.starts), found.position, found.stop

    assert end(data) == (2, 2 * size, Stop.LIMIT)
    assert end(data, size) == (1, size, Stop.LIMIT)
    assert end(data[:-1]) == (1, size, Stop.CUT)
    assert end(data + bytes(3)) == (2, 2 * size, Stop.CUT)
    assert end(data + bytes(8)) == (2, 2 * size, Stop.NO_RECORD)
    assert end(data + encode_blank(100) + bytes(92)) == (2, 2 * size, Stop.BLANK)
    assert end(data + struct.pack(">ii", 0, -626843481)) == (2, 2 * size, Stop.NO_RECORD)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_whatever_stands_in_a_record_only_a_sound_one_is_located(data: st.DataObject) -> None:
    records = bytearray(lay_out([make_message(number, keys="k", body_bytes=30) for number in range(3)]))
    size = len(records) // 3
    place = data.draw(st.integers(size + 4, 2 * size - 1))
    records[place] ^= data.draw(st.integers(1, 255))
    raw = as_array(bytes(records))
    starts = np.array([0, size, 2 * size], np.int64)

    located, is_sound = locate(raw, starts, starts)

    assert is_sound[0]
    assert is_sound[2]
    if is_sound[1]:
        record = decode_record(bytes(records), size)
        assert record.size_bytes == size
        assert bytes(raw[located.body_starts[1] : located.body_ends[1]]) == record.body


def test_a_body_that_was_changed_does_not_match() -> None:
    records = bytearray(lay_out([make_message(0), make_message(1)]))
    records[90] ^= 1
    raw = as_array(bytes(records))
    walked = walk(raw, 0, len(raw))
    located, _ = locate(raw, walked.starts, walked.starts)

    assert have_sound_bodies(located).tolist() == [False, True]


def test_checksums_of_bodies_of_every_length_are_those_of_zlib() -> None:
    data = random.Random(7).randbytes(4096)
    starts = np.arange(0, 400, dtype=np.int64)
    ends = starts + np.append(np.arange(0, 399), 3000)

    expected = [zlib.crc32(data[start:end]) & 0x7FFFFFFF for start, end in zip(starts, ends, strict=True)]
    assert checksums(as_array(data), starts, ends).tolist() == expected


def test_numbers_are_found_at_any_place_and_none_outside_of_the_buffer() -> None:
    raw = as_array(bytes(range(0xF0, 0x100)))
    places = np.array([8, 0, 3], np.int64)

    assert gather(raw, places, ">u2").tolist() == [0xF8F9, 0xF0F1, 0xF3F4]
    for kind, width in ((">i4", 4), (">i8", 8)):
        expected = [int.from_bytes(raw[at : at + width].tobytes(), "big", signed=True) for at in (8, 0, 3)]
        assert gather(raw, places, kind).tolist() == expected
    for outside in (9, 1 << 40, -(1 << 40)):
        with pytest.raises(IndexError):
            gather(raw, np.array([outside], np.int64), ">i8")
