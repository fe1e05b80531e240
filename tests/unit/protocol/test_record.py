import struct

import pytest

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.model.host import pack_host
from tanist.model.message import Message, SysFlag
from tanist.protocol.record import (
    MAGIC_BLANK,
    MAGIC_V2,
    MAX_PROPERTIES_BYTES,
    MIN_RECORD_BYTES,
    check_record,
    crc32,
    decode_record,
    encode_blank,
    encode_record,
    record_properties,
    record_store_time,
)

# Written by Apache RocketMQ 5.3.3.
GOLDEN = bytes.fromhex(
    "00000087daa320a73610a686000000010000000700000000000000000000000000000000000000000000018bcfe56800"
    "0102030400001234000001a1e093dab20102030400002a9f0000000200000000000000000000000568656c6c6f06546f"
    "7069634100214b455953016b31206b3202554e49515f4b45590155310254414753015461674102"
)
GOLDEN_MESSAGE = Message(
    topic="TopicA",
    queue_id=1,
    body=b"hello",
    properties=b"KEYS\x01k1 k2\x02UNIQ_KEY\x01U1\x02TAGS\x01TagA\x02",
    flag=7,
    born_timestamp_ms=1700000000000,
    born_host=pack_host("1.2.3.4", 4660),
    reconsume_times=2,
)
STORE_HOST = pack_host("1.2.3.4", 10911)
STORE_TIMESTAMP_MS = 1794769148594


def _encode(message: Message, *, log_offset: int = 0, store_host: bytes = STORE_HOST) -> bytes:
    return encode_record(
        message,
        queue_offset=0,
        log_offset=log_offset,
        store_timestamp_ms=STORE_TIMESTAMP_MS,
        store_host=store_host,
    )


def _message(topic: str = "TopicA", body: bytes = b"hello", properties: bytes = b"a\x01b\x02") -> Message:
    return Message(topic=topic, queue_id=0, body=body, properties=properties)


def _changed(record: bytes, position: int, raw: bytes) -> memoryview:
    return memoryview(record[:position] + raw + record[position + len(raw) :])


def test_the_golden_record_is_encoded_byte_for_byte() -> None:
    assert _encode(GOLDEN_MESSAGE).hex() == GOLDEN.hex()


def test_the_golden_record_decodes() -> None:
    record = decode_record(memoryview(GOLDEN))
    assert record.size_bytes == 135
    assert (record.queue_id, record.flag, record.reconsume_times) == (1, 7, 2)
    assert (record.born_timestamp_ms, record.store_timestamp_ms) == (1700000000000, STORE_TIMESTAMP_MS)
    assert (record.born_host, record.store_host) == (GOLDEN_MESSAGE.born_host, STORE_HOST)
    assert (record.topic, bytes(record.body)) == ("TopicA", b"hello")
    assert bytes(record.properties) == GOLDEN_MESSAGE.properties
    assert record.body_crc == crc32(b"hello") == 0x3610A686
    assert (record.queue_offset, record.log_offset, record.sys_flag) == (0, 0, 0)
    assert record.prepared_transaction_offset == 0


def test_the_golden_record_is_sound() -> None:
    assert check_record(memoryview(GOLDEN), 0, log_offset=0) == 135


def test_a_record_decodes_where_it_lies() -> None:
    view = memoryview(b"\xff" * 40 + GOLDEN + b"\xff" * 40)
    assert decode_record(view, 40).topic == "TopicA"
    assert check_record(view, 40, log_offset=0) == 135


def test_the_checksum_has_no_sign_bit() -> None:
    assert crc32(b"") == 0
    assert crc32(b"123456789") == 0xCBF43926 & 0x7FFFFFFF


@pytest.mark.parametrize(
    ("born", "store", "bits", "more_bytes"),
    [
        ("1.2.3.4", "1.2.3.4", 0, 0),
        ("fe80::1", "1.2.3.4", 0x10, 12),
        ("1.2.3.4", "fe80::1", 0x20, 12),
        ("fe80::1", "fe80::1", 0x30, 24),
    ],
)
def test_the_host_bits_follow_the_hosts(born: str, store: str, bits: int, more_bytes: int) -> None:
    message = Message(
        topic="TopicA", queue_id=0, body=b"", born_host=pack_host(born, 1), sys_flag=0x30 | SysFlag.COMMIT
    )
    raw = _encode(message, store_host=pack_host(store, 2))
    record = decode_record(memoryview(raw))
    assert len(raw) == 91 + 6 + more_bytes
    assert record.sys_flag == bits | SysFlag.COMMIT
    assert (record.born_host, record.store_host) == (pack_host(born, 1), pack_host(store, 2))
    assert check_record(memoryview(raw), 0, log_offset=0) == len(raw)


def test_a_topic_over_127_bytes_is_written_in_version_2() -> None:
    short, long = _encode(_message(topic="t" * 127)), _encode(_message(topic="t" * 128))
    assert len(long) == len(short) + 2
    assert struct.unpack_from(">i", long, 4) == (MAGIC_V2,)
    assert decode_record(memoryview(long)).topic == "t" * 128
    assert check_record(memoryview(long), 0, log_offset=0) == len(long)


def test_a_blank_ends_a_file() -> None:
    assert encode_blank(37) == struct.pack(">ii", 37, MAGIC_BLANK)
    assert encode_blank(37)[4:].hex() == "cbd43194"
    assert check_record(memoryview(encode_blank(37) + bytes(29)), 0, log_offset=4059) == 0


def test_a_blank_that_does_not_fill_its_file_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="blank"):
        check_record(memoryview(encode_blank(37) + bytes(30)), 0, log_offset=0)


@pytest.mark.parametrize(
    "message",
    [
        _message(topic=""),
        _message(topic="a\0b"),
        _message(topic="t" * 32768),
        _message(properties=b"a\x01\0\x02"),
        _message(properties=b"p" * (MAX_PROPERTIES_BYTES + 1)),
    ],
)
def test_what_a_record_can_not_hold_is_not_encoded(message: Message) -> None:
    with pytest.raises(LocalProtocolError):
        _encode(message)


@pytest.mark.parametrize(
    ("position", "raw"),
    [
        (0, b"\x00\x00\x00\x86"),  # one byte short
        (0, b"\x00\x00\x00\x88"),  # one byte long
        (0, b"\xff\xff\xff\xff"),
        (0, b"\x00\x00\x00\x00"),
        (4, b"\x00\x00\x00\x00"),
        (39, b"\x30"),  # hosts of other lengths
        (84, b"\x00\x00\x00\x06"),  # body length
        (84, b"\xff\xff\xff\xff"),
        (84, b"\x7f\xff\xff\xff"),
        (93, b"\x05"),  # topic length
        (93, b"\xff"),
        (100, b"\x00\x20"),  # properties length
        (100, b"\xff\xff"),
    ],
)
def test_lengths_that_do_not_add_up_are_refused(position: int, raw: bytes) -> None:
    view = _changed(GOLDEN, position, raw)
    with pytest.raises(RemoteProtocolError):
        decode_record(view)
    with pytest.raises(RemoteProtocolError):
        check_record(view, 0, log_offset=0)


@pytest.mark.parametrize("size", range(len(GOLDEN)))
def test_a_record_that_is_cut_is_refused(size: int) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_record(memoryview(GOLDEN)[:size])
    with pytest.raises(RemoteProtocolError):
        check_record(memoryview(GOLDEN)[:size], 0, log_offset=0)


def test_a_record_that_lies_elsewhere_than_it_says_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="lies at 0"):
        check_record(memoryview(GOLDEN), 0, log_offset=135)


def test_a_changed_body_is_refused_by_the_check_and_not_by_decoding() -> None:
    view = _changed(GOLDEN, 88, b"j")
    assert bytes(decode_record(view).body) == b"jello"
    with pytest.raises(RemoteProtocolError, match="checksum"):
        check_record(view, 0, log_offset=0)


def test_properties_whose_end_was_never_written_are_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="never written"):
        check_record(_changed(GOLDEN, 134, b"\0"), 0, log_offset=0)


def test_properties_whose_middle_sector_was_never_written_are_refused() -> None:
    raw = _encode(_message(properties=b"a\x01" + b"v" * 2000 + b"\x02"))
    with pytest.raises(RemoteProtocolError, match="never written"):
        check_record(_changed(raw, 1024, bytes(512)), 0, log_offset=0)


def test_a_topic_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="UTF-8"):
        decode_record(_changed(GOLDEN, 94, b"\xff"))


def test_the_properties_are_found_without_the_rest() -> None:
    assert bytes(record_properties(memoryview(GOLDEN + b"more"))) == GOLDEN_MESSAGE.properties
    for topic in ("t" * 127, "t" * 128):
        for host in (STORE_HOST, pack_host("::1", 10911)):
            raw = _encode(_message(topic, body=b"x" * 999), store_host=host)
            assert bytes(record_properties(memoryview(raw))) == b"a\x01b\x02"


def test_what_is_no_record_has_no_properties() -> None:
    for raw in (encode_blank(100).ljust(100, b"\0"), GOLDEN[:-1], b"", bytes(200)):
        with pytest.raises(RemoteProtocolError):
            record_properties(memoryview(raw))


@pytest.mark.parametrize("born_host", [pack_host("1.2.3.4", 7), pack_host("2001:db8::1", 7)])
def test_when_a_record_was_stored_stands_in_its_first_bytes(born_host: bytes) -> None:
    message = _message(body=b"x" * 5000)
    message.born_host = born_host
    record = _encode(message, store_host=pack_host("2001:db8::2", 8))
    assert record_store_time(memoryview(record)[:MIN_RECORD_BYTES]) == STORE_TIMESTAMP_MS


@pytest.mark.parametrize(
    ("position", "raw"), [(4, b"\0\0\0\0"), (0, struct.pack(">i", MIN_RECORD_BYTES - 1))]
)
def test_what_is_no_record_has_no_store_time(position: int, raw: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        record_store_time(_changed(_encode(_message()), position, raw))
    with pytest.raises(RemoteProtocolError):
        record_store_time(_encode(_message())[: MIN_RECORD_BYTES - 1])
