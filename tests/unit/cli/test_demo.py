"""What ``tanist demo`` makes of its acts: a table, and an exit code."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from tanist.cli import demo
from tanist.cli.main import tanist
from tanist.cli.story import StoryFailed, Told, Verdict
from tanist.cli.story_acts import Tell


def play(monkeypatch: pytest.MonkeyPatch, home: Path, verdict: Verdict | StoryFailed) -> tuple[int, str]:
    async def first(_home: Path, _tell: Tell) -> list[Verdict]:
        if isinstance(verdict, StoryFailed):
            raise verdict
        return [verdict]

    async def second(_home: Path, tell: Tell, *, has_spark: bool) -> list[Verdict]:
        tell(f"spark {has_spark}")
        return [Verdict("second", "2", True)]

    monkeypatch.setattr(demo, "fixed_roles", first)
    monkeypatch.setattr(demo, "auto_switch", second)
    done = CliRunner().invoke(tanist, ["demo", "--no-spark", "--home", str(home)])
    return done.exit_code, done.output


def test_promises_that_are_kept_end_it_with_0(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, output = play(monkeypatch, tmp_path / "new", Verdict("first", "1", True))
    assert code == 0
    assert "spark False" in output
    assert "told within 120 s" in output
    assert "NOT KEPT" not in output


def test_one_that_is_not_kept_ends_it_with_1(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, output = play(monkeypatch, tmp_path / "new", Verdict("first", "1", False))
    assert code == 1
    assert "NOT KEPT" in output


def test_a_story_that_takes_too_long_breaks_a_promise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(demo, "TOLD_S", 0.0)
    code, output = play(monkeypatch, tmp_path / "new", Verdict("first", "1", True))
    assert code == 1
    assert output.count("NOT KEPT") == 1


def test_an_act_that_fails_is_a_promise_not_kept_and_the_next_is_played(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code, output = play(monkeypatch, tmp_path / "new", StoryFailed("nobody came"))
    assert code == 1
    assert "nobody came" in output
    assert "second" in output


def test_a_folder_with_something_in_it_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = CliRunner().invoke(tanist, ["demo", "--home", str(tmp_path)])
    assert "is not empty" in done.output


def test_what_came_twice_and_what_is_lost_is_counted() -> None:
    told = Told(acked=["a", "b", "c"])
    told.got.update(["a", "a", "b"])
    assert (told.lost, told.twice) == (1, 1)
