"""What users changed stays written down."""

import stat
from pathlib import Path

import pytest

from tanist.console.access.audit import AuditEntry, AuditFailed, AuditLog


def entry(subject: str) -> AuditEntry:
    return AuditEntry(
        at_ms=1,
        user="ann",
        address="127.0.0.1",
        action="end slave consumption",
        subject=subject,
        outcome="asked",
    )


def test_what_was_written_is_there_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    AuditLog(file).write(entry("one"))
    log = AuditLog(file)
    log.write(entry("two"))
    assert [each.subject for each in AuditLog(file).last] == ["two", "one"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_line_that_a_crash_cut_short_hides_no_other(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    AuditLog(file).write(entry("one"))
    with file.open("ab") as damaged:
        damaged.write(b'{"atMs": 3, "us\n')
    log = AuditLog(file)
    log.write(entry("two"))
    assert [each.subject for each in log.last] == ["two", "one"]


def test_a_log_that_can_not_be_written_says_that_nothing_was_done(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "missing" / "audit.jsonl")
    with pytest.raises(AuditFailed, match="nothing was done"):
        log.write(entry("one"))
    assert log.last == []


def test_what_users_send_is_cut_before_it_is_written() -> None:
    log = AuditLog()
    log.write(entry("x" * 100_000))
    assert len(log.last[0].subject) == 2_000


def test_without_a_file_the_last_changes_are_remembered() -> None:
    log = AuditLog()
    log.write(entry("one"))
    assert [each.subject for each in log.last] == ["one"]
