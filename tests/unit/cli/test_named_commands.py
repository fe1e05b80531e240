"""Every command that a page, a rule, a template or a text of ours names is one that there is."""

import re
from collections.abc import Iterator
from pathlib import Path

import click

from tanist.cli.main import tanist

ROOT = Path(__file__).parents[3]
_NAMED = re.compile(r"\btanist ((?:[a-z][A-Za-z-]* ?)+)")
_PLACES = (
    "*.md",
    "docs/**/*.md",
    "newsfragments/*.md",
    "deploy/**/*.*",
    "conf/**/*.*",
    "src/**/*.py",
    "src/**/*.html",
)


def find(words: list[str]) -> str | None:
    """The first word that should be a command and is none. Prose may follow what runs without one."""
    command: click.Command = tanist
    for number, word in enumerate(words):
        if not isinstance(command, click.Group):
            return None
        within = command.get_command(click.Context(command), word)
        if within is None:
            # "tanist the broker" is prose, "tanist admin the" is not.
            return None if number == 0 or command.invoke_without_command else word
        command = within
    return None


def named() -> Iterator[tuple[Path, str]]:
    for place in _PLACES:
        for path in ROOT.glob(place):
            for found in _NAMED.finditer(path.read_text(encoding="utf-8")):
                yield path, found[1]


def test_a_command_that_is_named_exists() -> None:
    every = list(named())
    assert len(every) > 200
    missing = {
        f"{path.relative_to(ROOT)}: tanist {words}"
        for path, words in every
        if find(words.split()) is not None
    }
    assert not missing


def test_one_that_does_not_exist_is_found() -> None:
    assert find(["admin", "resetOffset", "status", "tells"]) == "status"
    assert find(["store", "messages"]) == "messages"
    assert find(["up", "status"]) is None
