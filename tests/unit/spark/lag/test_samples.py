from pathlib import Path

import pytest

from tanist.spark.errors import SparkError
from tanist.spark.lag.analysis import analyse
from tanist.spark.lag.latency import Latency, by_reach, reach_of, steps
from tanist.spark.lag.page import make_page
from tanist.spark.lag.samples import append_samples, read_samples
from tests.support.lag_samples import sample


def test_samples_are_added_to_a_file_and_a_line_that_was_cut_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "lag.jsonl"
    append_samples(path, [sample(0, 1, 2)])
    append_samples(path, [sample(1, 2, 3)])
    with path.open("ab") as file:
        file.write(b'{"atMs": 2000, "gro')

    assert read_samples(path) == [sample(0, 1, 2), sample(1, 2, 3)]
    # Nor does it spoil what is added after it.
    append_samples(path, [sample(3, 3, 4)])
    assert read_samples(path) == [sample(0, 1, 2), sample(1, 2, 3), sample(3, 3, 4)]


def test_a_first_line_that_was_cut_is_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "lag.jsonl"
    path.write_bytes(b"{" + b" " * 10_000)

    append_samples(path, [sample(0, 1, 2)])

    assert read_samples(path) == [sample(0, 1, 2)]


def test_what_is_no_sample_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "lag.jsonl"
    path.write_text("hello\n")

    with pytest.raises(SparkError, match=r"lag.jsonl:1 is no sample"):
        read_samples(path)
    with pytest.raises(SparkError, match="tanist spark lag collect --to"):
        read_samples(tmp_path / "none")


def test_a_step_is_from_where_to_where_a_group_went_between_two_samples() -> None:
    taken = [sample(0, 5, 9), sample(1, 5, 9), sample(2, 8, 9), sample(3, 2, 9)]

    assert steps(taken) == [("billing", "Orders", "broker-a", 0, 5, 8, 1000, 2000)]


def test_a_message_looks_at_few_steps_and_finds_all_that_passed_it() -> None:
    taken = steps([sample(at, 10 * at, 9000) for at in range(500)] + [sample(500, 20, 9000)])
    taken += steps([sample(501, 20, 9000), sample(502, 8000, 9000)])
    size = reach_of(taken)

    found = list(by_reach(taken, size))

    assert len(found) <= 4 * len(taken)
    for offset in (0, 19, 20, 4989, 7999, 8000):
        passed = [step for step in taken if step[4] <= offset < step[5]]
        near = [one[:-1] for one in found if one[-1] == offset // size]
        assert [step for step in near if step[4] <= offset < step[5]] == passed
        assert len(near) <= 6


def test_the_page_draws_each_group_and_says_what_is_wrong() -> None:
    groups = analyse([sample(0, 0, 100), sample(10, 10, 200)])
    times = [1.0, 2.0, 3.0, 4.0]
    latency = Latency(
        group="billing",
        topic="Orders",
        messages=10,
        born_to_stored_ms=times,
        stored_to_consumed_ms=times,
        born_to_consumed_ms=times,
    )

    page = make_page(groups, [latency])

    assert page.count("<polyline") == 1
    assert 'points="8.0,76.2 712.0,8.0"' in page
    assert "at these rates it is never gone" in page
    assert "not faster than its producers" in page
    assert "<td>born to stored, ms</td><td>1</td>" in page
    assert make_page([]).count("<svg") == 0
