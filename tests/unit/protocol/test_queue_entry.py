import pytest

from tanist.protocol.queue_entry import (
    ENTRY_BYTES,
    FILLER,
    QueueEntry,
    decode_entries,
    encode_entry,
    total_size_bytes,
)


def test_the_entry_of_the_golden_record() -> None:
    raw = encode_entry(0, 135, 2598919)
    assert raw.hex() == "0000000000000000" + "00000087" + "000000000027a807"
    assert decode_entries(raw) == [QueueEntry(0, 135, 2598919)]


def test_a_negative_tags_code_keeps_its_sign() -> None:
    assert encode_entry(0, 1, -1)[12:] == b"\xff" * 8
    assert decode_entries(encode_entry(2**62, 1, -(2**31))) == [QueueEntry(2**62, 1, -(2**31))]


def test_entries_stand_back_to_back_and_a_cut_one_is_left_out() -> None:
    raw = encode_entry(0, 135, 1) + encode_entry(135, 100, 2)
    assert len(raw) == 2 * ENTRY_BYTES
    assert decode_entries(memoryview(raw + b"\0" * 19)) == [QueueEntry(0, 135, 1), QueueEntry(135, 100, 2)]
    assert decode_entries(b"") == []


def test_a_filler_is_no_message() -> None:
    (filler,) = decode_entries(FILLER)
    assert FILLER.hex() == "00000000000000007fffffff0000000000000000"
    assert filler.is_filler
    assert not QueueEntry(0, 135, 0).is_filler


def test_zeros_behind_the_last_entry_are_not_written() -> None:
    assert not QueueEntry(0, 0, 0).is_written
    assert not QueueEntry(-1, 135, 0).is_written
    assert not QueueEntry(0, -1, 0).is_written
    assert QueueEntry(0, 135, 0).is_written


@pytest.mark.parametrize("count", [0, 1, 127, 128, 129, 300])
def test_the_messages_of_many_entries_are_added_up_without_the_fillers(count: int) -> None:
    entries = [encode_entry(n, n + 1, -1) for n in range(count)]
    expected = count * (count + 1) // 2
    assert total_size_bytes(b"".join(entries)) == expected
    assert total_size_bytes(FILLER + b"".join(entries) + FILLER) == expected
