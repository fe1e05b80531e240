"""A walk over a part of the log: what it finds, what it calls broken, and where it says that the log ends."""

import numpy as np
import pytest

from tanist.protocol.record import encode_blank
from tanist.spark.arrow import Bytes
from tanist.spark.commitlog import walking
from tanist.spark.commitlog.walking import FileRange, walk_range
from tanist.spark.making import Broken
from tests.support.messages import make_message
from tests.support.spark_stores import as_array, lay_out

FILE_START = 4096
FILE_BYTES = 4096


def make_file(count: int = 5, *, is_full: bool = False, body_bytes: int = 50) -> bytearray:
    """A file of the log, not the first one."""
    data = lay_out((make_message(n, body_bytes=body_bytes) for n in range(count)), first_offset=FILE_START)
    rest = FILE_BYTES - len(data)
    return bytearray(data + (encode_blank(rest) if is_full else bytes(8)) + bytes(rest - 8))


RECORD = len(make_file(1).rstrip(b"\0")) + 2
"""What one record takes: it has no properties, so it ends with the two zeros of their length."""


def span_of(**changes: int | bool) -> FileRange:
    fields: dict[str, int | bool] = {
        "start": FILE_START,
        "end": FILE_START + FILE_BYTES,
        "log_end": FILE_START + FILE_BYTES,
        "sound_to": FILE_START + FILE_BYTES,
        "is_last": True,
    }
    return FileRange("file", FILE_START, FILE_START + FILE_BYTES, **(fields | changes))  # pyright: ignore[reportArgumentType]


def read(
    data: bytes | bytearray, span: FileRange | None = None, *, checks_bodies: bool = True
) -> list[int | Broken]:
    """The numbers of the records that were found, counted from the file's start, and what is broken."""
    raw = as_array(bytes(data))

    def read_at(position: int, size: int) -> Bytes:
        return raw[position : position + size]

    found: list[int | Broken] = []
    for one in walk_range(read_at, span or span_of(), checks_bodies=checks_bodies):
        if isinstance(one, Broken):
            found.append(one)
        else:
            found += ((one.log_offsets - FILE_START) // RECORD).tolist()
    return found


def test_a_walk_finds_every_record_up_to_the_zeros_behind_the_last() -> None:
    assert read(make_file()) == [0, 1, 2, 3, 4]


def test_a_blank_ends_a_full_file() -> None:
    assert read(make_file(is_full=True), span_of(is_last=False)) == [0, 1, 2, 3, 4]


def test_a_range_has_the_records_that_begin_in_it() -> None:
    span = span_of(start=FILE_START + RECORD, end=FILE_START + 2 * RECORD + 1)

    assert read(make_file(), span) == [1, 2]


def test_a_record_larger_than_what_is_read_at_once_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walking, "WINDOW_BYTES", 16)

    assert read(make_file()) == [0, 1, 2, 3, 4]


def test_a_broken_record_is_told_with_its_place_and_the_next_is_found() -> None:
    data = make_file()
    data[2 * RECORD + 30] ^= 1

    found = read(data)

    assert found[:2] == [0, 1]
    assert isinstance(found[2], Broken)
    assert (found[2].log_offset, found[2].size_bytes) == (FILE_START + 2 * RECORD, RECORD)
    assert "the record says it lies at" in found[2].reason
    assert found[3:] == [3, 4]


def test_a_broken_size_does_not_hide_what_comes_behind_it() -> None:
    data = make_file()
    data[RECORD + 3] += 5

    found = read(data)

    assert [one for one in found if not isinstance(one, Broken)] == [0, 2, 3, 4]


def test_a_body_that_was_changed_is_broken_and_nothing_else() -> None:
    data = make_file()
    data[RECORD + 90] ^= 1

    found = read(data)

    assert Broken(FILE_START + RECORD, RECORD, "the body does not match its checksum") in found
    assert [one for one in found if not isinstance(one, Broken)] == [0, 2, 3, 4]
    assert read(data, checks_bodies=False) == [0, 1, 2, 3, 4]


def test_a_message_can_not_pass_for_a_record_by_what_its_body_says() -> None:
    """A record within a body does not lie where it says."""
    inner = lay_out([make_message(7)])
    data = lay_out([make_message(0, body_bytes=50)], first_offset=FILE_START)
    data += b"\xff" * 20 + inner

    found = read(data.ljust(FILE_BYTES, b"\0"), span_of(is_last=False))

    assert found[0] == 0
    assert [type(one) for one in found[1:]] == [Broken]


def test_what_a_crash_left_behind_the_last_record_is_the_end() -> None:
    data = make_file(4)
    data[4 * RECORD : 4 * RECORD + 20] = b"\x00\x00\x00\x90\xda\xa3\x20\xa7" + b"\x01" * 12

    assert read(data, span_of(sound_to=FILE_START)) == [0, 1, 2, 3]


def test_damage_behind_the_last_record_of_a_closed_store_is_broken() -> None:
    data = make_file(5)
    data[4 * RECORD + 30] ^= 1

    found = read(data)

    assert found[:4] == [0, 1, 2, 3]
    assert isinstance(found[4], Broken)


def test_what_ends_behind_the_confirmed_end_is_not_read() -> None:
    assert read(make_file(), span_of(log_end=FILE_START + 3 * RECORD)) == [0, 1, 2]
    assert read(make_file(), span_of(log_end=FILE_START + 3 * RECORD + 1)) == [0, 1, 2]
    assert read(make_file(), span_of(log_end=FILE_START + 4 * RECORD - 1)) == [0, 1, 2]


def test_a_hole_in_the_middle_of_the_log_is_broken() -> None:
    data = make_file()
    data[RECORD : 3 * RECORD] = bytes(2 * RECORD)

    assert read(data) == [0, Broken(FILE_START + RECORD, 2 * RECORD, "nothing is written here"), 3, 4]


def test_any_byte_of_a_record_may_be_broken_and_no_other_record_is_lost() -> None:
    whole = make_file()
    for place in range(RECORD, 2 * RECORD):
        data = bytearray(whole)
        data[place] ^= 0x55
        found = [one for one in read(data) if not isinstance(one, Broken)]
        assert found in ([0, 2, 3, 4], [0, 1, 2, 3, 4]), place


def test_a_file_that_was_cut_short_meanwhile_is_broken_there() -> None:
    found = read(make_file()[: 2 * RECORD + 40], span_of(is_last=False))

    assert found[:2] == [0, 1]
    assert isinstance(found[2], Broken)
    assert np.all([isinstance(one, Broken) for one in found[2:]])
