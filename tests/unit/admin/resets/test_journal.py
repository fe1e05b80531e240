from pathlib import Path

import msgspec
import pytest

from tanist.admin.resets.journal import Journal, JournalEntry, fold, journal_path
from tanist.admin.resets.refused import ResetRefused
from tests.unit.admin.resets.test_plan_file import PLAN


def test_a_journal_lies_beside_its_plan() -> None:
    assert journal_path(Path("x/back.json")) == Path("x/back.applied.jsonl")


def test_what_was_written_first_of_a_queue_is_how_it_stood() -> None:
    entries = [
        JournalEntry(plan_id="p", at_ms=1, broker_name="a", way="15", before={0: 7, 1: 8}),
        JournalEntry(plan_id="p", at_ms=2, broker_name="a", way="15", done=[0]),
        JournalEntry(plan_id="p", at_ms=3, broker_name="a", way="15", before={1: 99}, done=[1]),
    ]
    (known,) = fold(entries).values()
    assert (known.before, known.done) == ({0: 7, 1: 8}, {0, 1})


def test_a_line_that_a_crash_cut_is_written_over_and_all_others_count(tmp_path: Path) -> None:
    path = tmp_path / "j"
    journal = Journal(path, PLAN)
    assert not journal.has_begun
    journal.write("a", at_ms=1, way="15", before={number: number for number in range(1_000)})
    for number in range(500):
        journal.write("a", at_ms=2, way="15", done=[number])
    whole = path.read_bytes()
    for cut in (1, 10):
        path.write_bytes(whole[:-cut])
        again = Journal(path, PLAN)
        assert again.has_begun
        assert again.done_at("a").done == set(range(499))
        assert len(again.done_at("a").before) == 1_000
        again.write("a", at_ms=3, way="15", done=[499])
        assert Journal(path, PLAN).done_at("a").done == set(range(500))


def test_another_plans_lines_do_not_count(tmp_path: Path) -> None:
    Journal(tmp_path / "j", PLAN).write("a", at_ms=1, way="15", done=[0])
    other = msgspec.structs.replace(PLAN, plan_id="other")
    assert not Journal(tmp_path / "j", other).has_begun


def test_a_journal_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "j").write_text("hello\n")
    with pytest.raises(ResetRefused, match="move it away to begin anew"):
        Journal(tmp_path / "j", PLAN)
