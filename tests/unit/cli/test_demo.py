"""What ``tanist demo`` makes of its acts: a table, and an exit code."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from tanist.admin.asking import asking
from tanist.cli import demo, story_acts
from tanist.cli.main import tanist
from tanist.cli.story import Stage, StoryFailed, Told, Verdict
from tanist.cli.story_acts import Tell
from tanist.client.session.wire import Wire
from tanist.spark.audit.job import AuditReport
from tanist.up.plan import Mode, Ports


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


@pytest.mark.parametrize(
    ("code", "found", "told"),
    [
        (0, {}, "900 bytes are equal"),
        (
            1,
            {"different_blocks": 2, "first_difference": 500, "record": "StoryTopic-3 queue offset 7"},
            "2 blocks differ, first at log offset 500: StoryTopic-3 queue offset 7",
        ),
        (
            1,
            {"index_problems": ["StoryTopic-3 has 7 entries", "key index"]},
            "the logs are equal; of the indexes 2 are not: StoryTopic-3 has 7 entries",
        ),
        (2, None, "Error: there is no log"),
    ],
)
def test_the_table_says_what_an_audit_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int, found: dict[str, Any] | None, told: str
) -> None:
    async def tanist(*arguments: str | Path) -> tuple[int, str]:
        if "archive" in arguments:
            return 0, '{"rows": 3}'
        if found is None:
            return code, "Error: there is no log\n"
        equal = AuditReport(
            stores=("a", "b"),
            log_start=100,
            log_end=1_000,
            ends=(1_000, 1_000),
            root="00",
            different_blocks=0,
        )
        report = msgspec.structs.replace(equal, **found)
        return code, msgspec.json.format(msgspec.json.encode(report), indent=2).decode()

    async def stored(_wire: Wire, _up: Stage) -> int:
        return 3

    async def audited() -> list[Verdict]:
        up = Stage(tmp_path, Mode.AUTO_SWITCH, Ports())
        async with asking() as wire:
            return await story_acts.archive_and_audit(up, wire, tmp_path, lambda _: None)

    monkeypatch.setattr(story_acts, "tanist", tanist)
    monkeypatch.setattr(story_acts, "_stored", stored)
    archived, compared = asyncio.run(audited())
    assert archived.is_kept
    assert (compared.measured, compared.is_kept) == (told, code == 0)
