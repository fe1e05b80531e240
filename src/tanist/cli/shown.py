"""What a command of ``tanist admin`` has to show: once as JSON, once as lines and tables for people."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tanist.admin.parallel import Told
from tanist.admin.rows import Row
from tanist.cli.exit_codes import Exit, exit_code_of, in_one_line
from tanist.cli.ha_views import print_whole, time_of
from tanist.protocol.bodies import encode_body

_AT_MS = "_at_ms"
_NOTHING = "-"


Part = str | Table | Callable[[Console], None]
"""A line, a table, or what prints itself."""


class Shown(NamedTuple):
    """What a command found out."""

    value: object
    """For ``--json``."""
    parts: Sequence[Part]
    """For a terminal."""
    exit_code: Exit = Exit.DONE


def listing(rows: Sequence[Row], kind: type[Row], *, none: str = "nothing is there") -> Shown:
    """Rows of one kind: a JSON array of them, and a table."""
    return Shown(list(rows), [table_of(rows, kind)] if rows else [none])


def table_of(rows: Iterable[Row], kind: type[Row]) -> Table:
    """A column a field. Times, whose fields end in ``_at_ms``, are shown as times."""
    names = kind.__struct_fields__
    table = Table(*(name.removesuffix(_AT_MS).replace("_", " ") for name in names), box=None)
    for row in rows:
        # Brackets in a name are no markup.
        table.add_row(*(Text(cell(name, getattr(row, name))) for name in names))
    return table


def cell(name: str, value: object) -> str:
    """One value as a terminal shows it."""
    match value:
        case None:
            return _NOTHING
        case bool():
            return "yes" if value else "no"
        case int() if name.endswith(_AT_MS):
            return time_of(value)
        case float():
            return f"{value:.2f}"
        case list() | tuple() | set() | frozenset():
            return ", ".join(sorted(map(str, value))) or _NOTHING  # pyright: ignore[reportUnknownArgumentType]
        case _:
            return str(value)


def settings_lines(settings: Mapping[str, object]) -> list[str]:
    """``key=value`` a line, by key: what can be pasted into a config file."""
    return [f"{key}={value}" for key, value in sorted(settings.items())]


def done_at(told: Sequence[Told[object]], done: str) -> Shown:
    """What came of an order to one broker or to several."""
    parts = [
        f"{each.address}: {done if each.failure is None else in_one_line(each.failure)}" for each in told
    ]
    value = [
        {"brokerAddr": each.address, "isDone": each.failure is None, "failure": _text(each.failure)}
        for each in told
    ]
    return Shown(value, parts, outcome_of(told))


def outcome_of(told: Sequence[Told[object]]) -> Exit:
    """0 if all answered, the number of the first failure if none did."""
    failures = [each.failure for each in told if each.failure is not None]
    if not failures:
        return Exit.DONE
    return exit_code_of(failures[0]) if len(failures) == len(told) else Exit.PARTLY


def failed_lines(told: Sequence[Told[object]]) -> list[str]:
    """Who did not answer, and why."""
    return [f"{each.address}: {in_one_line(each.failure)}" for each in told if each.failure is not None]


def to_json(value: object, *, is_pretty: bool = True) -> str:
    text = encode_body(value)
    return (msgspec.json.format(text, indent=2) if is_pretty else text).decode()


def print_shown(shown: Shown, console: Console) -> None:
    """Tables wider than the terminal go on in the next line: what is cut off tells nothing."""
    for part in shown.parts:
        match part:
            case str():
                console.print(part, markup=False, highlight=False, soft_wrap=True)
            case Table():
                print_whole(console, part)
            case _:
                part(console)


def _text(failure: Exception | None) -> str | None:
    return None if failure is None else str(failure)
