"""The behaviours that docs/behaviours.md promises, and the tests that name them.

As a pytest plugin this module stops a run in which a test names a behaviour that the page does not have:
a misspelt id would otherwise leave a promise without its test, and nobody would notice. The script
``scripts/behaviours.py`` counts with the same functions; it imports them before pytest could rewrite
their assertions, of which there are none, and PYTEST_DONT_REWRITE keeps pytest from warning about that.
"""

import re
from collections.abc import Container, Generator, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "behaviours.md"
BEHAVIOUR_COUNT = 324

_HEADING = re.compile(r"## ([A-Z])\. (.+)")
_ROW = re.compile(r"\| (S\d+-\d+) \| (.+?) \| .+ \|")


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One row of the page, and the group it stands in."""

    id: str
    statement: str
    group: str
    subject: str


_BEHAVIOURS = pytest.StashKey[dict[str, Behaviour]]()


def parse_page(text: str) -> list[Behaviour]:
    """Take the rows out of the page, in its order; whatever is no row under a group's heading is prose."""
    behaviours: list[Behaviour] = []
    group = subject = ""
    for line in text.splitlines():
        if heading := _HEADING.fullmatch(line):
            group, subject = heading.groups()
        elif group and (row := _ROW.fullmatch(line)):
            behaviours.append(Behaviour(row[1], row[2], group, subject))
    return behaviours


def read_page(path: Path = PAGE) -> dict[str, Behaviour]:
    """Read the page by id. A page that lost, doubled or gained a row is a ValueError."""
    behaviours: dict[str, Behaviour] = {}
    for behaviour in parse_page(path.read_text(encoding="utf-8")):
        if behaviour.id in behaviours:
            raise ValueError(f"{path.name} has {behaviour.id} twice")
        behaviours[behaviour.id] = behaviour
    if len(behaviours) != BEHAVIOUR_COUNT:
        raise ValueError(f"{path.name} has {len(behaviours)} behaviours instead of {BEHAVIOUR_COUNT}")
    return behaviours


def named_by(item: pytest.Item) -> list[str]:
    """List the ids that a test's markers name, those of its class and module included."""
    # A marker without an id names the empty one, which no page has, so it is reported as a mistake.
    return [str(name) for marker in item.iter_markers("behaviour") for name in marker.args or ("",)]


def is_proof(item: pytest.Item) -> bool:
    """Tell whether a passing run says anything: a test that never runs, or is to fail, proves nothing."""
    return not any(item.get_closest_marker(name) for name in ("skip", "xfail"))


def mistakes(items: Iterable[pytest.Item], behaviours: Container[str]) -> list[str]:
    """Say which tests name a behaviour that does not exist."""
    return [
        f"{item.nodeid} names behaviour {name!r}, which {PAGE.name} does not have"
        for item in items
        for name in named_by(item)
        if name not in behaviours
    ]


def pytest_configure(config: pytest.Config) -> None:
    """Read the page once, and refuse to start with a damaged one."""
    try:
        config.stash[_BEHAVIOURS] = read_page()
    except ValueError as error:
        raise pytest.UsageError(str(error)) from error


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn an unknown id into a collection error: no test starts, or, on several cores, the run fails.

    A UsageError raised later, with all items at hand, would crash the workers of pytest-xdist unexplained.
    """
    report = yield
    items = [node for node in report.result or () if isinstance(node, pytest.Item)]
    if found := mistakes(items, collector.config.stash[_BEHAVIOURS]):
        report.outcome = "failed"
        report.longrepr = "\n".join(found)
    return report
