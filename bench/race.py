"""``python -m bench.race [--quick] [ROW ...]``: the race of Tanist, its peers and the bare machine.

Without a name all rows are run, which takes less than 40 minutes. What is known is written after each row
to ``build/race``, so that nothing is lost if it ends early. A full race of a tree without changes is kept as
``bench/race.json``, and the page about performance made from it. A row that has used up its time does
fewer rounds, and says so. ``--quick`` shows that all rows work; its figures are worth nothing.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.race_page import write_pages
from bench.race_record import RECORD, ROOT, Line, RaceRecord, RowRecord, new_record
from bench.race_rows import ROWS, Told
from bench.turns import Allowance
from tests.support.partners import PartnerMissing

_PLACE = ROOT / "build" / "race"
_LAST_BEGIN_S = 35 * 60.0
"""A row that would begin later is left out, and says so: a race takes less than 40 minutes."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("python -m bench.race")
    parser.add_argument("--quick", action="store_true", help="tiny amounts, one round: only to see it work")
    parser.add_argument("names", nargs="*", metavar="ROW", help=", ".join(ROWS))
    given = parser.parse_args(arguments)
    wanted = [name for names in given.names for name in names.split(",") if name] or list(ROWS)
    unknown = set(wanted) - set(ROWS)
    if unknown:
        print(f"no row {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}", file=sys.stderr)
        return 2
    began = datetime.now(UTC).strftime("%Y-%m-%dT%H%M%SZ")
    record = new_record(began=began, is_quick=given.quick)
    path = _PLACE / f"{began}.json"
    began_s = time.monotonic()
    for name in wanted:
        is_late = time.monotonic() - began_s > _LAST_BEGIN_S
        record.rows.append(_left_out(name) if is_late else _run(name, is_quick=given.quick))
        record.write(path)
    _print(record)
    print(f"{os.path.relpath(path)} is written")
    if wanted == list(ROWS) and not given.quick:
        _keep(record)
    return 0


def _run(name: str, *, is_quick: bool) -> RowRecord:
    row = ROWS[name]
    print(f"running {name}, about {row.limit_s:.0f} s …", file=sys.stderr)
    allowance = Allowance(row.limit_s, is_quick=is_quick)
    began_s = time.monotonic()
    told, lack = Told(), ""
    try:
        with tempfile.TemporaryDirectory(prefix="tanist-race-") as home:
            told = row.run(Path(home), allowance)
    except PartnerMissing as missing:
        lack = str(missing)
    except Exception as failure:  # The other rows are not to be lost with this one.
        first_line, *_ = str(failure).splitlines() or [""]
        lack = f"{type(failure).__name__}: {first_line}"
        print(f"{name} failed: {type(failure).__name__}: {failure}", file=sys.stderr)
    return RowRecord(
        name=name,
        took_s=round(time.monotonic() - began_s, 1),
        load=round(os.getloadavg()[0], 1),
        figures=tuple(told.figures),
        told=tuple(told.lines),
        notes=tuple(allowance.notes),
        lack=lack,
    )


def _left_out(name: str) -> RowRecord:
    lack = f"the rows before it took too long; make race ROWS={name} runs it alone"
    return RowRecord(name=name, took_s=0.0, load=round(os.getloadavg()[0], 1), lack=lack)


def _keep(record: RaceRecord) -> None:
    """Make a full race the one that the pages are about, unless nobody could run it again."""
    if not record.is_clean:
        print("not kept: the tree has changes that are not committed; commit them, then race again")
        return
    record.write(RECORD)
    for page in write_pages():
        print(f"{os.path.relpath(page)} is written")


def _print(record: RaceRecord) -> None:
    for row in record.rows:
        table = Table("what", "Tanist", "peers", "ours ÷ peer", "goal", "", title=row.name)
        for line in row.lines:
            table.add_row(*_cells(line))
        if row.lack:
            table.add_row(f"not run: {row.lack}")
        Console(width=170).print(table)
        for note in row.notes:
            print(f"  {note}")


def _cells(line: Line) -> tuple[str, ...]:
    columns = (line.peers, line.ratios, line.goals, line.verdicts)
    return line.what, line.ours, *("\n".join(column) for column in columns)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
