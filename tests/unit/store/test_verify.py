from pathlib import Path

from tanist.protocol.queue_entry import encode_entry
from tanist.store.reader import StoreReader
from tanist.store.verify import MAX_PROBLEMS, VerifyReport, verify
from tests.support.messages import TOPIC, make_message, open_store


def _filled(root: Path) -> tuple[list[int], int]:
    """Nine messages in one queue over three files; where each lies, and where the log ends."""
    with open_store(root) as store:
        starts: list[int] = [
            store.append(make_message(number, body_bytes=1000)).log_offset for number in range(9)
        ]
        return starts, store.log.log_end


def _verify(root: Path) -> VerifyReport:
    with StoreReader(root) as reader:
        return verify(reader, lambda _: None)


def test_a_sound_store_has_no_problem(tmp_path: Path) -> None:
    _, end = _filled(tmp_path)
    report = _verify(tmp_path)
    assert (report.problem_count, report.problems) == (0, [])
    assert (report.log_start, report.log_end) == (0, end)
    assert (report.record_count, report.queue_count, report.entry_count) == (9, 1, 9)


def test_what_was_checked_is_told_as_it_goes_on(tmp_path: Path) -> None:
    _filled(tmp_path)
    told: list[int] = []
    with StoreReader(tmp_path) as reader:
        verify(reader, told.append)
    assert told[:3] == [4096] * 3


def test_damage_in_the_log_is_a_problem_and_so_is_every_entry_that_points_at_it(tmp_path: Path) -> None:
    starts, _ = _filled(tmp_path)
    path = tmp_path / "commitlog" / f"{4096:020d}"
    content = bytearray(path.read_bytes())
    content[starts[4] % 4096 + 100] ^= 0xFF
    path.write_bytes(content)
    report = _verify(tmp_path)
    assert (report.log_end, report.record_count) == (starts[4], 4)
    assert report.problem_count == 2
    assert f"the log ends at {starts[4]}" in report.problems[0]
    assert "no crash explains that" in report.problems[0]
    assert f"{TOPIC}/0 offset 4 points at {starts[4]}" in report.problems[1]


def test_an_entry_that_points_at_another_message_is_a_problem(tmp_path: Path) -> None:
    starts, _ = _filled(tmp_path)
    path = tmp_path / "consumequeue" / TOPIC / "0" / ("0" * 20)
    content = bytearray(path.read_bytes())
    content[100:120] = encode_entry(starts[6], starts[1], 0)
    path.write_bytes(content)
    (problem,) = _verify(tmp_path).problems
    assert "offset 5" in problem


def test_problems_beyond_the_hundredth_are_only_counted() -> None:
    report = VerifyReport()
    for number in range(MAX_PROBLEMS + 5):
        report.add_problem(str(number))
    assert (report.problem_count, len(report.problems)) == (MAX_PROBLEMS + 5, MAX_PROBLEMS)
    assert VerifyReport().problems == []
