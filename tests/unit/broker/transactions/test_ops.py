import pytest

from tanist.broker.transactions.ops import MAX_GATHERED, OpNotes, named_offsets
from tanist.model.host import pack_host
from tanist.model.message import Message
from tanist.model.topics import HALF_OP_TOPIC
from tanist.protocol.record import Record, decode_record, encode_record

HOST = pack_host("127.0.0.1", 10911)


def gathered(*offsets: int, max_bytes: int = 4096, now_ms: int = 1_000) -> OpNotes:
    notes = OpNotes(max_bytes=max_bytes, interval_ms=3_000)
    for offset in offsets:
        notes.gather(offset, now_ms=now_ms)
    return notes


def note_of(notes: OpNotes) -> tuple[Message, int]:
    return notes.next_note(born_host=HOST, now_ms=1_000)


def recorded(message: Message) -> Record:
    data = encode_record(message, queue_offset=0, log_offset=0, store_timestamp_ms=1, store_host=HOST)
    return decode_record(memoryview(data))


def test_a_note_names_offsets_as_rocketmq_writes_them() -> None:
    note, count = note_of(gathered(7, 12, 9))
    assert (note.topic, note.queue_id, note.body, count) == (HALF_OP_TOPIC, 0, b"7,12,9,", 3)
    assert note.properties == b"WAIT\x01true\x02TAGS\x01d\x02"
    assert list(named_offsets(recorded(note))) == [7, 12, 9]


@pytest.mark.parametrize("body", [b"", b",", b"x,-1,1.5,9999999999999999999999,"])
def test_what_is_no_offset_is_passed_over(body: bytes) -> None:
    note = Message(topic=HALF_OP_TOPIC, queue_id=0, body=body, properties=b"TAGS\x01d\x02")
    assert list(named_offsets(recorded(note))) == []


def test_a_message_with_another_tag_is_no_note() -> None:
    other = Message(topic=HALF_OP_TOPIC, queue_id=0, body=b"1,", properties=b"TAGS\x01e\x02")
    assert list(named_offsets(recorded(other))) == []


def test_a_note_is_due_a_while_after_its_first_offset_or_when_it_is_full() -> None:
    notes = OpNotes(max_bytes=6, interval_ms=3_000)
    assert notes.due_ms is None
    notes.gather(1, now_ms=1_000)
    notes.gather(2, now_ms=3_000)
    assert notes.due_ms == 4_000
    notes.gather(3, now_ms=3_500)
    assert notes.due_ms == 1_000


def test_what_does_not_fit_into_a_note_goes_into_the_next() -> None:
    notes = gathered(10, 11, 12, 13, max_bytes=6)
    note, count = note_of(notes)
    assert (note.body, count) == (b"10,11,", 2)
    assert note_of(notes)[0].body == note.body
    notes.on_written(0, count)
    note, count = note_of(notes)
    assert note.body == b"12,13,"
    notes.on_written(1, count)
    assert notes.due_ms is None


def test_notes_are_needed_until_all_that_they_name_is_done_with() -> None:
    notes = OpNotes(max_bytes=6, interval_ms=1)
    notes.start_at(40)
    assert notes.first_needed(0) == 40
    notes.on_found(40, 9)
    notes.on_found(41, 5)
    notes.on_found(42, 20)
    assert notes.first_needed(9) == 40
    assert notes.first_needed(10) == 42
    assert notes.first_needed(21) == 43


def test_there_is_a_bound_to_what_waits_for_the_disk() -> None:
    assert not gathered(*range(MAX_GATHERED - 1)).is_overfull
    assert gathered(*range(MAX_GATHERED)).is_overfull
