"""Laid out by C and by Python; what they do alike is in the property tests."""

from types import ModuleType

import pytest

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.model.message import Message, SysFlag
from tanist.protocol import layout
from tanist.protocol.batch import encode_batch
from tanist.protocol.key_index import key_hash
from tanist.protocol.layout import LaidOut, lay_out, lay_out_batch
from tanist.protocol.properties import encode_properties
from tanist.protocol.queue_entry import QueueEntry, decode_entries
from tanist.protocol.record import decode_record, encode_record
from tanist.protocol.tags import tags_code
from tests.support.partners import require

PLACE = {"queue_offset": 7, "log_offset": 4096, "store_timestamp_ms": 1_700_000_000_000}
HOST = bytes(8)


@pytest.fixture(params=["c", "python"], autouse=True)
def twin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test here is for both."""
    if request.param == "python":
        monkeypatch.setattr(layout, "native", None)
    else:
        require("native")


def make(properties: dict[str, str] | bytes = b"", **fields: object) -> Message:
    raw = properties if isinstance(properties, bytes) else encode_properties(properties)
    message = Message(topic="TopicA", queue_id=3, body=b"hello", properties=raw, flag=9, born_timestamp_ms=5)
    for name, value in fields.items():
        setattr(message, name, value)
    return message


def laid(message: Message) -> LaidOut:
    return lay_out(message, **PLACE, store_host=HOST)


def test_a_record_is_what_encode_record_makes() -> None:
    message = make({"TAGS": "A", "KEYS": "k"}, body=bytes(range(256)) * 5, sys_flag=int(SysFlag.COMMIT))
    assert laid(message).records == encode_record(message, **PLACE, store_host=HOST)


def test_the_entry_has_place_size_and_tag() -> None:
    found = laid(make({"TAGS": "TagA"}))
    assert decode_entries(found.entries) == [QueueEntry(4096, len(found.records), tags_code("TagA"))]
    assert decode_entries(laid(make()).entries)[0].tags_code == 0
    assert decode_entries(laid(make({"TAGS": "zzzzzzzzzz"})).entries)[0].tags_code == -1580979136


def test_the_keys_are_the_unique_one_and_each_word() -> None:
    found = laid(make({"KEYS": " a  bb ", "UNIQ_KEY": "U1", "TAGS": "t"}))
    assert found.keyed == [(key_hash("TopicA", key), 4096, 1_700_000_000_000) for key in ("U1", "a", "bb")]


def test_the_last_property_of_a_name_counts_unless_it_is_empty() -> None:
    raw = b"TAGS\x01A\x02UNIQ_KEY\x01old\x02TAGS\x01B\x02UNIQ_KEY\x01new\x02TAGS\x01\x02NOTAGS\x01C"
    found = laid(make(raw))
    assert decode_entries(found.entries)[0].tags_code == tags_code("B")
    assert [keyed[0] for keyed in found.keyed] == [key_hash("TopicA", "new")]


@pytest.mark.parametrize("kind", [SysFlag.PREPARED, SysFlag.ROLLBACK])
def test_what_enters_no_queue_has_no_entry(kind: SysFlag) -> None:
    found = laid(make({"KEYS": "k"}, sys_flag=int(kind)))
    assert found.entries == b""
    assert len(found.keyed) == (kind is SysFlag.PREPARED)


@pytest.mark.parametrize(
    "message",
    [
        make({"TAGS": "Größe", "KEYS": "schlüssel 键"}),
        make(born_host=bytes(20)),
        make(topic="t" * 200),
        make(topic="主题"),
        make(sys_flag=0x35),
        make(body=memoryview(b"view")),
        make(properties=b"A\x01b"),
    ],
)
def test_the_unusual_is_laid_out_as_well(message: Message) -> None:
    found = laid(message)
    assert found.records == encode_record(message, **PLACE, store_host=HOST)
    assert decode_record(memoryview(found.records)).topic == message.topic


@pytest.mark.parametrize(
    "message",
    [
        make(topic=""),
        make(topic="a\0b"),
        make(properties=b"A\x01\0\x02"),
        make(properties=b"p" * 40_000),
        make(queue_id=1 << 40),
        make(born_timestamp_ms=1 << 70),
        make(born_host=b"12345"),
    ],
)
def test_what_no_record_can_hold_is_refused(message: Message) -> None:
    with pytest.raises(LocalProtocolError):
        laid(message)


def test_a_batch_is_its_messages_one_behind_the_other() -> None:
    items = [(n, b"body %d" % n, b"" if n % 2 else b"KEYS\x01k%d" % n) for n in range(5)]
    batch = make(b"WAIT\x01true\x02TAGS\x01T\x02", body=encode_batch(items))
    found = lay_out_batch(batch, **PLACE, store_host=HOST)
    view, position = memoryview(found.records), 0
    for number, (flag, body, properties) in enumerate(items):
        record = decode_record(view[position:])
        closed = properties + b"\x02" if properties else b""
        assert (record.flag, bytes(record.body), record.queue_id) == (flag, body, 3)
        assert bytes(record.properties) == closed + b"WAIT\x01true\x02TAGS\x01T\x02"
        assert (record.queue_offset, record.log_offset) == (7 + number, 4096 + position)
        entry = decode_entries(found.entries)[number]
        assert entry == QueueEntry(record.log_offset, record.size_bytes, tags_code("T"))
        position += record.size_bytes
    assert position == len(found.records)
    assert [keyed[0] for keyed in found.keyed] == [key_hash("TopicA", f"k{n}") for n in (0, 2, 4)]


@pytest.mark.parametrize("damage", ["cut", "longer", "empty", "negative", "properties"])
def test_a_batch_that_does_not_add_up_is_refused(damage: str) -> None:
    body = bytearray(encode_batch([(0, b"one", b"A\x01b\x02"), (0, b"two", b"")]))
    match damage:
        case "cut":
            del body[-1]
        case "longer":
            body += b"\0"
        case "empty":
            body.clear()
        case "negative":
            body[0:4] = b"\xff\xff\xff\xff"
        case _:
            body[-2:] = b"\x00\x01"
    with pytest.raises(RemoteProtocolError):
        lay_out_batch(make(body=bytes(body)), **PLACE, store_host=HOST)


def test_a_batch_whose_joined_properties_are_too_long_is_refused() -> None:
    batch = make(b"p" * 20_000, body=encode_batch([(0, b"one", b"q" * 20_000)]))
    with pytest.raises(LocalProtocolError):
        lay_out_batch(batch, **PLACE, store_host=HOST)


def test_the_module_in_c_is_the_one_that_was_asked_for(request: pytest.FixtureRequest) -> None:
    is_python = request.node.callspec.params["twin"] == "python"
    assert (layout.native is None) == is_python
    assert is_python or isinstance(layout.native, ModuleType)
