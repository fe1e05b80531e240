from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.errors import RemoteProtocolError
from tanist.ha.record_walk import RecordWalk, walk_to_end
from tanist.protocol.record import encode_blank
from tests.support.messages import SMALL, make_message, open_store

_FILE_BYTES = SMALL.mapped_file_size_commit_log


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a log of several files, with blanks between them."""
    return _log_bytes(tmp_path_factory.mktemp("log"))


def _log_bytes(root: Path) -> bytes:
    with open_store(root) as store:
        for number in range(40):
            store.append(make_message(number, body_bytes=number * 10))
        pieces: list[bytes] = []
        while (start := sum(map(len, pieces))) < store.log.log_end:
            pieces.append(bytes(store.log.read_ahead(start, _FILE_BYTES)))
        return b"".join(pieces)


def _feed(log: bytes, cuts: list[int]) -> None:
    walk = RecordWalk(0, file_bytes=_FILE_BYTES)
    ends = [*sorted({cut for cut in cuts if cut < len(log)}), len(log)]
    for start, end in zip([0, *ends], ends, strict=False):
        walk.feed(log[start:end])


@given(cuts=st.lists(st.integers(0, 12_000), max_size=20))
def test_a_log_is_sound_however_it_is_cut(log: bytes, cuts: list[int]) -> None:
    _feed(log, cuts)


@given(cuts=st.lists(st.integers(0, 12_000), max_size=20))
def test_a_damaged_body_is_found_however_the_log_is_cut(log: bytes, cuts: list[int]) -> None:
    damaged = log.replace(b"message 30 ", b"massage 30 ")
    with pytest.raises(RemoteProtocolError, match="it is damaged in the master's log"):
        _feed(damaged, cuts)


def test_a_body_that_has_no_room_in_its_record_is_found(log: bytes) -> None:
    for size in (-1, 1 << 20):
        raw = bytearray(log)
        raw[84:88] = size.to_bytes(4, "big", signed=True)
        with pytest.raises(RemoteProtocolError, match=f"with a body of {size}"):
            RecordWalk(0, file_bytes=_FILE_BYTES).feed(bytes(raw))


def test_a_walk_begins_with_any_file(log: bytes) -> None:
    RecordWalk(_FILE_BYTES, file_bytes=_FILE_BYTES).feed(log[_FILE_BYTES:])


def test_records_of_another_place_are_found(log: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="says it lies at 0: it is another log than ours"):
        RecordWalk(2 * _FILE_BYTES, file_bytes=_FILE_BYTES).feed(log)


@pytest.mark.parametrize("size", [_FILE_BYTES * 2, _FILE_BYTES // 2])
def test_files_of_another_size_are_found(log: bytes, size: int) -> None:
    with pytest.raises(RemoteProtocolError, match=f"than mappedFileSizeCommitLog={size}"):
        RecordWalk(0, file_bytes=size).feed(log)


@pytest.mark.parametrize("junk", [bytes(40), b"GET / HTTP/1.1\r\n\r\n".ljust(40), b"\xff" * 40])
def test_what_is_no_record_is_found(log: bytes, junk: bytes) -> None:
    walk = RecordWalk(0, file_bytes=_FILE_BYTES)
    with pytest.raises(RemoteProtocolError, match="no record begins with"):
        walk.feed(junk)


def test_a_blank_that_does_not_fill_the_file_is_found() -> None:
    with pytest.raises(RemoteProtocolError, match="a blank of 100 bytes where 4096 are left"):
        RecordWalk(0, file_bytes=_FILE_BYTES).feed(encode_blank(100))


def test_a_record_with_an_absurd_size_is_found(log: bytes) -> None:
    for size in (0, 12, 1 << 30, -5):
        raw = size.to_bytes(4, "big", signed=True) + log[4:]
        with pytest.raises(RemoteProtocolError, match=f"a record of {size} bytes"):
            RecordWalk(0, file_bytes=_FILE_BYTES).feed(raw)


def test_a_walk_over_a_log_goes_to_its_end_across_files(tmp_path: Path) -> None:
    raw = _log_bytes(tmp_path / "log")
    with open_store(tmp_path / "log") as store:
        walk = walk_to_end(store.log, 0, file_bytes=_FILE_BYTES)
        store.append(make_message())
        walk.feed(store.log.read_ahead(len(raw), 1000))
        with pytest.raises(RemoteProtocolError, match="another log than ours"):
            walk.feed(raw)
