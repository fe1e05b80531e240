"""Every known bug that docs/known-bugs.md lists has the tests that it names, and these name the bug."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUG_COUNT = 18

_ROW = re.compile(r"\| (.+?) \| .+ \| (`tests/.+`) \|")


def rows() -> list[tuple[set[str], list[str]]]:
    """The ids and the tests of each row of the page."""
    page = (ROOT / "docs" / "known-bugs.md").read_text(encoding="utf-8")
    found = (_ROW.fullmatch(line) for line in page.splitlines())
    return [(set(row[1].split(", ")), re.findall(r"`(.+?)`", row[2])) for row in found if row]


def bugs_named_in(path: Path) -> dict[str, set[str]]:
    """The bugs that each test of a file names."""
    named: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            calls = [call for call in node.decorator_list if isinstance(call, ast.Call)]
            marks = [call for call in calls if ast.unparse(call.func) == "pytest.mark.known_bug"]
            if marks:
                named[node.name] = {str(ast.literal_eval(word)) for mark in marks for word in mark.args}
    return named


def test_the_page_has_every_bug() -> None:
    assert len(rows()) == BUG_COUNT


@pytest.mark.parametrize(("bugs", "tests"), rows(), ids=lambda value: "-".join(sorted(value)[:1]))
def test_every_test_of_a_bug_is_there_and_names_it(bugs: set[str], tests: list[str]) -> None:
    for test in tests:
        path, _, name = test.partition("::")
        assert bugs <= bugs_named_in(ROOT / path).get(name, set()), test


def test_no_test_names_a_bug_that_the_page_does_not_have() -> None:
    known = {(test, bug) for bugs, tests in rows() for test in tests for bug in bugs}
    named = {
        (f"{path.relative_to(ROOT)}::{name}", bug)
        for path in (ROOT / "tests").rglob("test_*.py")
        if "known_bug" in path.read_text(encoding="utf-8")
        for name, bugs in bugs_named_in(path).items()
        for bug in bugs
    }
    assert named == known
