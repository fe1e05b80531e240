import struct

import pytest

from tanist.errors import RemoteProtocolError
from tanist.model.java_hash import java_hash
from tanist.protocol.key_index import (
    HEADER_BYTES,
    INDEX_ENTRY,
    INDEX_ENTRY_BYTES,
    SLOT,
    SLOT_BYTES,
    IndexEntry,
    IndexHeader,
    decode_index_header,
    encode_index_header,
    key_hash,
)


def test_the_hash_of_a_key_is_taken_with_its_topic() -> None:
    assert key_hash("TopicA", "U1") == 1903241331
    assert key_hash("TopicA", "U1") % 100 == 31


def test_the_hash_of_a_key_is_never_negative() -> None:
    assert java_hash("TopicA#k3") < 0
    assert key_hash("TopicA", "k3") == -java_hash("TopicA#k3")


def test_the_one_hash_that_has_no_positive_twin_becomes_0() -> None:
    assert java_hash("TopicA#Fmprtfl") == -(2**31)
    assert key_hash("TopicA", "Fmprtfl") == 0


def test_the_header_has_six_fields_in_40_bytes() -> None:
    header = IndexHeader(1, 2, 3, 4, 5, 6)
    assert encode_index_header(header) == struct.pack(">qqqqii", 1, 2, 3, 4, 5, 6)
    assert len(encode_index_header(header)) == HEADER_BYTES
    assert decode_index_header(encode_index_header(header)) == header


def test_the_count_of_an_empty_file_starts_at_1() -> None:
    assert IndexHeader().entry_count == 1
    assert decode_index_header(bytes(HEADER_BYTES)) == IndexHeader()


def test_an_entry_is_hash_offset_seconds_and_the_one_before_it() -> None:
    raw = INDEX_ENTRY.pack(*IndexEntry(key_hash=1903241331, log_offset=406, seconds=7, previous=3))
    assert raw.hex() == "71712873" + "0000000000000196" + "00000007" + "00000003"
    assert len(raw) == INDEX_ENTRY_BYTES
    assert SLOT.size == SLOT_BYTES


@pytest.mark.parametrize("size", [0, HEADER_BYTES - 1])
def test_a_short_header_is_refused(size: int) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_index_header(bytes(size))


@pytest.mark.parametrize("position", range(6))
def test_a_header_with_a_negative_field_is_refused(position: int) -> None:
    fields = [1, 2, 3, 4, 5, 6]
    fields[position] = -1
    with pytest.raises(RemoteProtocolError):
        decode_index_header(struct.pack(">qqqqii", *fields))
