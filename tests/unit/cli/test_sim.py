"""``tanist sim``: what it says of histories, and how one is told again."""

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from tanist.cli import sim as command
from tanist.sim import WORLDS, Story, tell


def test_a_few_histories_are_counted_and_sound() -> None:
    done = CliRunner().invoke(command.sim, ["--count", "3", "--jobs", "1", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["histories"] == 3 * len(WORLDS)
    assert told["broken"] == []
    assert told["coreSeconds"] > 0


@pytest.mark.parametrize("world", WORLDS)
def test_the_same_seed_tells_the_same_story(world: str) -> None:
    story = tell(world, 7)
    assert story.transcript
    assert tell(world, 7) == story
    assert tell(world, 8).transcript != story.transcript


def test_a_trace_is_the_story_of_one_seed() -> None:
    done = CliRunner().invoke(command.sim, ["--world", "reading", "--seed", "7", "--trace"])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("reading seed 7: all rules held\n")
    story = tell("reading", 7)
    assert len(done.stdout.splitlines()) == 1 + len(story.troubles) + len(story.transcript)


def test_what_befell_a_group_is_told_with_its_story() -> None:
    story = tell("group", 7)
    assert story.troubles
    for option in ("--trace", "--shrink"):
        done = CliRunner().invoke(command.sim, ["--world", "group", "--seed", "7", option])
        assert done.exit_code == 0, done.output
        assert all(f"trouble: {trouble}" in done.stdout for trouble in story.troubles)


def test_a_broken_rule_is_named_with_its_seed_and_ends_with_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Story("reading", 17, "R1: two are readable", 1, ("0.00 ...",))

    def tell_it(*_worlds: object, **_jobs: object) -> Iterator[Story]:
        return iter([broken])

    monkeypatch.setattr(command, "tell_many", tell_it)
    done = CliRunner().invoke(command.sim, ["--count", "1"])
    assert done.exit_code == 1
    assert "reading seed 17: R1: two are readable" in done.stdout
    assert "1 broke a rule" in done.stdout
