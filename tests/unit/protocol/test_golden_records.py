"""Records, batches, ids and index files that Apache RocketMQ's own classes wrote."""

from typing import Any

import pytest

from tanist.model.host import pack_host
from tanist.model.message import Message
from tanist.model.property_names import RECORD_CRC
from tanist.protocol.batch import decode_batch, encode_batch
from tanist.protocol.compression import decompress_body
from tanist.protocol.key_index import HEADER_BYTES, INDEX_ENTRY, SLOT_BYTES, IndexEntry, decode_index_header
from tanist.protocol.message_id import decode_offset_id, decode_unique_id, encode_offset_id
from tanist.protocol.properties import decode_properties, find_property
from tanist.protocol.queue_entry import FILLER, decode_entries, encode_entry
from tanist.protocol.record import (
    MAGIC_BLANK,
    check_record,
    crc32,
    decode_record,
    encode_blank,
    encode_record,
)
from tanist.protocol.tags import tags_code
from tests.support import golden

RECORDS = golden.load("records")
BATCHES = golden.load("batches")
IDS = golden.load("ids")
STORE_FILES = golden.load("store_files")

Case = dict[str, Any]


@pytest.mark.parametrize("case", RECORDS.values(), ids=RECORDS)
def test_a_record_of_rocketmq_is_encoded_byte_for_byte(case: Case) -> None:
    raw = bytes.fromhex(case["record"])
    message = Message(
        topic=case["topic"],
        queue_id=case["queue_id"],
        body=bytes.fromhex(case["stored_body"]),
        properties=bytes(decode_record(memoryview(raw)).properties),
        flag=case["flag"],
        sys_flag=case["sys_flag"],
        born_timestamp_ms=case["born_timestamp"],
        born_host=pack_host(case["born_address"], case["born_port"]),
        reconsume_times=case["reconsume_times"],
        prepared_transaction_offset=case["prepared_transaction_offset"],
    )
    encoded = encode_record(
        message,
        queue_offset=case["queue_offset"],
        log_offset=case["log_offset"],
        store_timestamp_ms=case["store_timestamp"],
        store_host=pack_host(case["store_address"], case["store_port"]),
    )
    assert encoded.hex() == raw.hex()


@pytest.mark.parametrize("case", RECORDS.values(), ids=RECORDS)
def test_a_record_of_rocketmq_is_sound(case: Case) -> None:
    raw = bytes.fromhex(case["record"])
    assert check_record(memoryview(raw), 0, log_offset=case["log_offset"]) == len(raw)


@pytest.mark.parametrize("case", RECORDS.values(), ids=RECORDS)
def test_a_record_of_rocketmq_decodes(case: Case) -> None:
    record = decode_record(memoryview(bytes.fromhex(case["record"])))
    assert record.topic == case["topic"]
    assert record.body_crc == case["body_crc"]
    assert bytes(record.body) == bytes.fromhex(case["stored_body"])
    assert decompress_body(record.body, record.sys_flag, max_bytes=1 << 20) == bytes.fromhex(case["body"])
    assert decode_properties(record.properties) == case["properties"]
    assert encode_offset_id(record.store_host, record.log_offset) == case["offset_message_id"]


@pytest.mark.parametrize("case", RECORDS.values(), ids=RECORDS)
def test_the_properties_of_rocketmq_are_found_one_by_one(case: Case) -> None:
    raw = bytes(decode_record(memoryview(bytes.fromhex(case["record"]))).properties)
    for name, value in case["properties"].items():
        assert find_property(raw, name) == value.encode()
    if not case["has_crc"]:
        assert raw == case["given_properties"].encode()
        assert find_property(raw, RECORD_CRC) is None


@pytest.mark.parametrize("case", BATCHES.values(), ids=BATCHES)
def test_a_batch_of_rocketmq_is_read_and_written(case: Case) -> None:
    raw = bytes.fromhex(case["request_body"])
    messages = [
        (given["flag"], bytes.fromhex(given["body"]), given["properties"].encode())
        for given in case["messages"]
    ]
    assert [(item.flag, bytes(item.body), bytes(item.properties)) for item in decode_batch(raw)] == messages
    assert encode_batch(messages).hex() == raw.hex()


@pytest.mark.parametrize("case", BATCHES.values(), ids=BATCHES)
def test_the_records_of_a_batch_follow_each_other_and_end_with_its_properties(case: Case) -> None:
    view = memoryview(bytes.fromhex(case["records"]))
    position = 0
    ids: list[str] = []
    for number, given in enumerate(case["messages"]):
        position_in_log = case["log_offset"] + position
        size = check_record(view, position, log_offset=position_in_log)
        record = decode_record(view, position)
        assert (record.queue_offset, record.flag) == (number, given["flag"])
        properties = (given["properties"] + case["batch_properties"]).encode()
        assert bytes(record.properties)[: len(properties)] == properties
        ids.append(encode_offset_id(record.store_host, record.log_offset))
        position += size
    assert position == len(view)
    assert ",".join(ids) == case["offset_message_ids"]


@pytest.mark.parametrize("name", ["offset_id_ipv4", "offset_id_ipv6"])
def test_an_offset_id_of_rocketmq(name: str) -> None:
    case = IDS[name]
    host = pack_host(case["address"], case["port"])
    assert encode_offset_id(host, case["log_offset"]) == case["id"]
    assert decode_offset_id(case["id"]) == (host, case["log_offset"])


def test_a_unique_id_of_rocketmq_holds_what_we_read_from_it() -> None:
    case = IDS["unique_id"]
    unique_id = decode_unique_id(case["id"])
    assert unique_id.address == pack_host(case["address"], 0)[:4]
    assert unique_id.pid == case["process_id"] & 0xFFFF
    assert case["made_from_ms"] <= case["month_start_ms"] + unique_id.month_ms <= case["made_to_ms"]
    assert unique_id.counter == 0


@pytest.mark.parametrize(("tag", "code"), IDS["tag_codes"].items())
def test_a_tag_code_of_rocketmq(tag: str, code: int) -> None:
    assert tags_code(tag) == code
    assert tags_code(tag.encode()) == code


@pytest.mark.parametrize(("text", "checksum"), IDS["checksums"].items())
def test_a_checksum_of_rocketmq(text: str, checksum: int) -> None:
    assert crc32(text.encode()) == checksum


def test_the_end_of_a_log_file_of_rocketmq_is_a_blank() -> None:
    case = STORE_FILES["log_file_end"]
    first, second = (memoryview(bytes.fromhex(file)) for file in case["files"])
    position = 0
    while size := check_record(first, position, log_offset=position):
        position += size
    assert bytes(first[position : position + 8]) == encode_blank(case["file_bytes"] - position)
    assert int.from_bytes(first[position + 4 : position + 8], signed=True) == MAGIC_BLANK
    assert check_record(second, 0, log_offset=case["file_bytes"]) > 0


def test_the_entries_of_a_consume_queue_of_rocketmq() -> None:
    case = STORE_FILES["consume_queues"]
    queued = b""
    for raw in map(bytes.fromhex, case["records"]):
        record = decode_record(memoryview(raw))
        if record.topic == "TopicA":
            code = tags_code(find_property(bytes(record.properties), "TAGS"))
            queued += encode_entry(record.log_offset, record.size_bytes, code)
    assert queued.hex() == case["queue_of_topic"]


def test_a_consume_queue_of_rocketmq_that_starts_late_is_filled() -> None:
    case = STORE_FILES["consume_queue_starting_late"]
    raw = bytes.fromhex(case["file"])
    late = case["first_queue_offset"]
    assert raw.startswith(FILLER * late)
    entries = decode_entries(raw)
    assert all(entry.is_filler for entry in entries[:late])
    assert entries[late] == (case["log_offset"], case["stored_bytes"], case["tags_code"])
    assert not entries[late].is_filler


def test_an_index_file_of_rocketmq() -> None:
    case = STORE_FILES["index"]
    raw = bytes.fromhex(case["file"])
    header = decode_index_header(raw)
    assert header.entry_count == len(case["entries"]) + 1
    assert header.begin_timestamp_ms == case["entries"][0]["store_timestamp"]
    assert header.end_log_offset == case["entries"][-1]["log_offset"]
    entries_start = HEADER_BYTES + case["slots"] * SLOT_BYTES
    for number, given in enumerate(case["entries"], start=1):
        entry = IndexEntry._make(INDEX_ENTRY.unpack_from(raw, entries_start + number * INDEX_ENTRY.size))
        assert (entry.key_hash, entry.log_offset) == (given["key_hash"], given["log_offset"])
