"""Every command of ``tanist admin`` is run by a test; that its flags are looked at is not enough."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from tanist.cli.admin import admin

TESTS = Path(__file__).parents[2]
NAMES_ONLY = ("test_commands.py", "test_named_commands.py", Path(__file__).name)
"""Modules that are about the commands' names and flags."""
RUNNERS = ("CliRunner", "PlayedFleet")
"""What a module has that runs commands."""


def first_words(source: str) -> Iterator[str]:
    """What command lines in a test begin with.

    They are given to a call, ``asks("topicList", "-c")``, stand in a tuple or a list, or are keys of a table
    with the options as values.
    """
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(args=given) | ast.Tuple(elts=given) | ast.List(elts=given):
                yield from first_text(given)
            case ast.Dict(keys=names, values=options):
                for name, option in zip(names, options, strict=True):
                    if name is not None and isinstance(option, ast.Tuple):
                        yield from first_text([name])
            case _:
                pass


def first_text(nodes: Iterable[ast.expr]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value != "admin":
            yield node.value
            return


def test_every_command_is_run_by_a_test() -> None:
    sources = [
        path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py") if path.name not in NAMES_ONLY
    ]
    run = {
        word
        for source in sources
        if any(runner in source for runner in RUNNERS)
        for word in first_words(source)
    }
    never = sorted(name for name, each in admin.commands.items() if not each.hidden and name not in run)
    assert not never, f"no test runs {', '.join(never)}; test_admin_commands.py has a broker for it"


def test_a_command_counts_as_run_only_where_its_line_begins() -> None:
    assert set(first_words('runs(fleet, "topicList", "-c")')) == {"topicList"}
    assert set(first_words('words = ("topicList", "-t", "producer")')) == {"topicList"}
    assert set(first_words('invoke(tanist, ["admin", "drill", "-b"])')) == {"drill"}
    assert set(first_words('table = {"producer": ("-b", "x"), "topic": 1}')) == {"producer", "-b"}
    assert set(first_words('name = "topicList"; assert name in "producer"')) == set()
