"""Who may follow a master, and from where: what the links in memory do not reach."""

import zlib

import pytest

from tanist.ha.admission import TAIL_BYTES, MasterLog, deleted_before, judge_log, tail_bytes
from tanist.model.offsets import LogOffset
from tanist.protocol.ha_hello import (
    MAX_REASON_BYTES,
    NO_INCARNATION,
    Accepted,
    MasterHello,
    Refusal,
    Refused,
    SlaveProof,
)
from tanist.protocol.ha_link import AckKind

_FILE_BYTES = 1024
_OURS, _OTHER = b"i" * 16, b"o" * 16
_LOG = bytes(range(250)) * 20


def _crc_before(log_offset: int, size_bytes: int) -> int:
    return zlib.crc32(_LOG[log_offset - size_bytes : log_offset])


def _log(*, log_start: int = 0, is_last_file_first: bool = False) -> MasterLog:
    return MasterLog(_OURS, log_start, len(_LOG), _FILE_BYTES, is_last_file_first, _crc_before)


def _proof(
    log_end: int,
    *,
    tail: int = 0,
    log_start: int = 0,
    incarnation: bytes = _OURS,
    tail_crc: int | None = None,
) -> SlaveProof:
    crc = _crc_before(log_end, tail) if tail_crc is None else tail_crc
    return SlaveProof(
        incarnation, LogOffset(log_start), LogOffset(log_end), 0, crc, tail, AckKind.RECEIVED, _FILE_BYTES
    )


def _reason(verdict: Accepted | Refused) -> Refusal | None:
    return verdict.reason if isinstance(verdict, Refused) else None


@pytest.mark.parametrize(
    ("is_last_file_first", "log_start", "start"),
    [(False, 0, 0), (False, 2048, 2048), (True, 0, 4096), (True, 4096, 4096)],
)
def test_an_empty_slave_begins_with_the_first_file_or_as_told_with_the_newest(
    is_last_file_first: bool, log_start: int, start: int
) -> None:
    log = _log(log_start=log_start, is_last_file_first=is_last_file_first)
    # Whatever it followed before: it has nothing of it.
    for incarnation in (NO_INCARNATION, _OURS, _OTHER):
        assert judge_log(_proof(0, incarnation=incarnation), log) == Accepted(LogOffset(start))


def test_a_slave_that_ends_where_the_master_begins_is_let_in_if_both_are_of_one_incarnation() -> None:
    log = _log(log_start=2048)
    assert judge_log(_proof(2048, tail=1), log) == Accepted(LogOffset(2048))
    assert _reason(judge_log(_proof(2048, tail=1, incarnation=NO_INCARNATION), log)) is Refusal.DIVERGED_LOG


def test_a_slave_that_ends_before_the_master_begins_is_refused() -> None:
    verdict = judge_log(_proof(2047, tail=100), _log(log_start=2048))
    assert verdict == deleted_before(2047)
    assert _reason(verdict) is Refusal.BEFORE_LOG_START


def test_a_slave_without_incarnation_is_let_in_by_its_bytes_alone() -> None:
    assert judge_log(_proof(3000, tail=500, incarnation=NO_INCARNATION), _log()) == Accepted(LogOffset(3000))
    wrong = _proof(3000, tail=500, incarnation=NO_INCARNATION, tail_crc=1)
    assert _reason(judge_log(wrong, _log())) is Refusal.DIVERGED_LOG


def test_what_the_slave_is_told_fits_on_the_wire() -> None:
    far = 1 << 62
    refusals = [
        judge_log(_proof(far, tail=1, tail_crc=0), _log()),
        judge_log(_proof(4000, tail=1, incarnation=_OTHER), _log()),
        judge_log(_proof(4000, tail=1, tail_crc=0), _log()),
        judge_log(_proof(0)._replace(file_bytes=far), _log()),
        deleted_before(far),
    ]
    for refusal in refusals:
        assert isinstance(refusal, Refused)
        assert len(refusal.text.encode()) <= MAX_REASON_BYTES


@pytest.mark.parametrize(
    ("log_start", "log_end", "master_start", "size_bytes"),
    [
        (0, 0, 0, 0),
        (0, 100, 0, 100),
        (0, 5 * TAIL_BYTES, 0, TAIL_BYTES),
        (0, 3000, 2048, 952),
        (1024, 3000, 0, 1976),
        # Of what both have there is nothing; one byte stands for it, as a log that is not empty shows some.
        (0, 2048, 2048, 1),
        (0, 1000, 2048, 1),
    ],
)
def test_a_slave_shows_as_much_as_both_have_before_its_end(
    log_start: int, log_end: int, master_start: int, size_bytes: int
) -> None:
    master = MasterHello(b"m" * 16, _OURS, LogOffset(master_start), LogOffset(1 << 40), 0)
    assert tail_bytes(master, log_start=log_start, log_end=log_end) == size_bytes
