"""``docs/performance.md``, its plots and the short table of the README, made from the last full race.

``python -m bench.race_page`` writes them, ``--check`` says whether they are what it would write. Nothing is
left out: a row that is lost stands where it would stand if it was won.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from bench.figures import OURS, Verdict
from bench.race_plots import curve_plot, ratio_plot
from bench.race_record import ROOT, Line, RaceRecord, RowRecord, line_of, read_record
from bench.race_rows import ROWS

_PAGE = ROOT / "docs" / "performance.md"
_PLOTS = ROOT / "docs" / "performance"
_README = ROOT / "README.md"
_BEGIN, _END = "<!-- race: begin -->", "<!-- race: end -->"
_SHORT_ROWS = ("java-sends", "lean-sends", "sync-flush", "double-write", "catch-up", "failover")
_HEAD = "| what | Tanist | peers | ours ÷ peer | goal | |\n| --- | --- | --- | --- | --- | --- |"
_ABOUT = (
    "This page is made by `make race` from its last full run; `make race ROWS=lean-sends` runs some of it. "
    "The sides take turns on the same cores, and each figure is the median of the rounds, ± half their "
    "range. A ratio is the median of the ratios of each round, with their range. A goal is **won** or "
    "**lost** if all rounds say so; if they do not agree it is **unclear**: the spread is too wide to judge."
)
_PROFILES = (
    "Where the time of a push consumer and its broker goes: [profiles/push.txt](profiles/push.txt), which "
    "`python -m bench.push_profile` prints. One thread of the client reads all that comes from a broker, and "
    "bounds what either of them can reach."
)
_NONE = (
    "No full race has been recorded yet. `make race` runs one, in less than 40 minutes; "
    "`make race ROWS=bare,lean-sends` some of it."
)


def pages(record: RaceRecord | None) -> dict[Path, str]:
    """All files that are made from a race, with their text."""
    if record is None:
        return {_PAGE: f"# Performance\n\n{_NONE}\n", _README: _readme(_NONE)}
    plots = dict(_plots(record))
    return {
        _PAGE: _page(record, plots),
        **{_PLOTS / f"{name}.svg": plot for name, plot in plots.items()},
        _README: _readme(_short(record)),
    }


def write_pages() -> list[Path]:
    written = pages(read_record())
    for path, text in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for plot in _PLOTS.glob("*.svg"):
        if plot not in written:
            plot.unlink()
    return list(written)


def outdated() -> list[Path]:
    """The files that are not what would be written."""
    wanted = pages(read_record())
    changed = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    return changed + [plot for plot in _PLOTS.glob("*.svg") if plot not in wanted]


def _page(record: RaceRecord, plots: dict[str, str]) -> str:
    counts = Counter(verdict for row in record.rows for line in row.lines for verdict in line.verdicts)
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict)
    machine = ", ".join(f"{name} {value}" for name, value in record.machine.items())
    versions = ", ".join(f"{name} {value}" for name, value in record.versions.items())
    parts = [
        "# Performance",
        _ABOUT,
        f"Of the goals: {told}.{_missing(record)}",
        _PROFILES,
        f"Commit {record.commit}, {record.began}. Machine: {machine}. Versions: {versions}.",
        "![the ratios and their goals](performance/ratios.svg)" if "ratios" in plots else "",
        *(_section(row, plots) for row in record.rows),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(row: RowRecord, plots: dict[str, str]) -> str:
    about = ROWS[row.name].about if row.name in ROWS else ""
    parts = [f"## {row.name}", about]
    if row.lack:
        parts.append(f"**Not run:** {row.lack.splitlines()[0]}")
    if row.lines:
        parts.append("\n".join([_HEAD, *map(_cells, row.lines)]))
    parts += [f"- {note}" for note in row.notes]
    curves = dict.fromkeys(figure.curve for figure in row.figures if figure.curve)
    parts += [f"![{curve}](performance/{_file(curve)}.svg)" for curve in curves if _file(curve) in plots]
    parts.append(f"Took {row.took_s:.0f} s; load of the machine at the end {row.load:g}.")
    return "\n\n".join(part for part in parts if part)


def _short(record: RaceRecord) -> str:
    """Of each main row the figures that have a goal."""
    lines = [
        msgspec.structs.replace(line, what=f"{row.name}: {line.what}")
        for row in record.rows
        if row.name in _SHORT_ROWS
        for line in (line_of(figure) for figure in row.figures if figure.goals and figure.is_more_better)
    ]
    where = f"{record.machine['cores']} cores of {record.machine['cpu']}, commit {record.commit}"
    more = "All rows, the lost ones too: [docs/performance.md](docs/performance.md)."
    return f"{_HEAD}\n" + "\n".join(map(_cells, lines)) + f"\n\nOn {where}.{_missing(record)} {more}"


def _missing(record: RaceRecord) -> str:
    names = [row.name for row in record.rows if row.lack]
    return f" Without a figure are the rows that did not run: {', '.join(names)}." if names else ""


def _cells(line: Line) -> str:
    verdicts = [f"**{verdict}**" if verdict is Verdict.LOST else str(verdict) for verdict in line.verdicts]
    columns: Iterable[Iterable[str]] = (line.peers, line.ratios, line.goals, verdicts)
    cells = [line.what, line.ours, *("<br>".join(column) for column in columns)]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _plots(record: RaceRecord) -> Iterator[tuple[str, str]]:
    figures = [figure for row in record.rows for figure in row.figures]
    judged = [figure for figure in figures if any(goal.peer for goal in figure.goals)]
    if judged:
        yield "ratios", ratio_plot(judged)
    for curve in dict.fromkeys(figure.curve for figure in figures if figure.curve):
        points = [figure for figure in figures if figure.curve == curve and figure.side(OURS)]
        if points:
            yield _file(curve), curve_plot(curve, points)


def _file(curve: str) -> str:
    return "-".join("".join(one if one.isalnum() else " " for one in curve.lower()).split())


def _readme(table: str) -> str:
    before, _, rest = _README.read_text(encoding="utf-8").partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n{table}\n{_END}{after}"


def main(arguments: list[str]) -> int:
    if "--check" in arguments:
        changed = outdated()
        for path in changed:
            print(f"{path.relative_to(ROOT)} is not what bench/race.json says", file=sys.stderr)
        return 1 if changed else 0
    write_pages()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
