"""Count the behaviours of docs/behaviours.md that have a test, and list those that have none.

What counts is what pytest collects, not what the files say: a marker on something that is no test, or
in a module that does not import, proves nothing.
"""

import argparse
import contextlib
import io
import json
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.behaviours import PAGE, Behaviour, is_proof, named_by, read_page

ROOT = PAGE.parents[1]
STATEMENT_WIDTH = 100


class _Collector:
    """A pytest plugin that keeps each test as it is collected, before anything can deselect it."""

    def __init__(self) -> None:
        self.items: list[pytest.Item] = []
        self.failures: list[str] = []

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        self.items.append(item)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failures.append(report.longreprtext)


def collect() -> tuple[list[pytest.Item], str]:
    """Let pytest collect the tests. The text tells of modules that do not import and of unknown ids."""
    collector = _Collector()
    said = io.StringIO()
    settings = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "-p", "no:cacheprovider"]
    options = ["--collect-only", "-p", "tests.support.behaviours", *settings]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = pytest.main([*options, str(ROOT / "tests")], plugins=[collector])
    if status in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
        return collector.items, ""
    return [], "\n".join(collector.failures) or said.getvalue()


def tests_by_behaviour(items: Iterable[pytest.Item]) -> dict[str, list[str]]:
    """Say for each behaviour that has a test which tests prove it."""
    tests: dict[str, list[str]] = {}
    for item in filter(is_proof, items):
        for name in dict.fromkeys(named_by(item)):
            tests.setdefault(name, []).append(item.nodeid)
    return tests


def report(behaviours: Sequence[Behaviour], tests: dict[str, list[str]]) -> Iterable[str]:
    """Lay out the table of groups, then the behaviours without a test."""
    totals = Counter((behaviour.group, behaviour.subject) for behaviour in behaviours)
    covered = Counter(behaviour.group for behaviour in behaviours if behaviour.id in tests)
    yield "group  covered    of  subject"
    for (group, subject), total in totals.items():
        yield f"{group:<5}  {covered[group]:>7}  {total:>4}  {subject}"
    missing = [behaviour for behaviour in behaviours if behaviour.id not in tests]
    if missing:
        yield "without a test:"
    for behaviour in missing:
        statement = textwrap.shorten(behaviour.statement, STATEMENT_WIDTH, placeholder=" ...")
        yield f"  {behaviour.id:<6}  {statement}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Count the behaviours that have a test.")
    parser.add_argument("--group", choices=list("ABCDEFGHIJKLMNO"), help="show one group only")
    parser.add_argument("--json", action="store_true", help="print the tests of each behaviour as JSON")
    options = parser.parse_args()
    try:
        page = read_page()
    except ValueError as error:
        return _refuse(str(error))
    items, failure = collect()
    if failure:
        return _refuse(failure)

    tests = tests_by_behaviour(items)
    shown = [behaviour for behaviour in page.values() if options.group in {None, behaviour.group}]
    if options.json:
        print(json.dumps({behaviour.id: tests.get(behaviour.id, []) for behaviour in shown}, indent=2))
        return 0
    print(*report(shown, tests), sep="\n")
    print(f"behaviours: {len(tests)} of {len(page)} covered")
    return 0


def _refuse(reason: str) -> int:
    print(reason, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
