"""``tanist demo``: the whole story without hands, and a table of what was promised and what was measured."""

import asyncio
import logging
import shutil
import tempfile
import time
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from tanist.cli.story import Verdict
from tanist.cli.story_acts import Tell, auto_switch, fixed_roles
from tanist.errors import MQError
from tanist.log import ProcessLog

EXIT_BROKEN = 1
TOLD_S = 120.0


@click.command()
@click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    help="A new folder for stores and logs, which are kept; without it they are removed.",
)
@click.option(
    "--spark/--no-spark",
    "has_spark",
    default=True,
    show_default=True,
    help="Archive and compare the replicas with Spark, which takes most of the time.",
)
@click.pass_obj
def demo(process_log: ProcessLog, *, home: Path | None, has_spark: bool) -> None:
    """Tell the whole story: send, kill the master, read on, hand back, reset, undo, switch, archive, audit.

    Exit code 1 if a promise was not kept.
    """
    if home is not None and home.exists() and any(home.iterdir()):
        raise click.ClickException(f"{home} is not empty; name a new folder")
    root = Path(tempfile.mkdtemp(prefix="tanist-demo-")) if home is None else home.absolute()
    # That a broker is gone is what the story is about, and no news to its clients.
    process_log.set_level(logging.ERROR)
    began_s = time.monotonic()

    def tell(line: str) -> None:
        click.echo(f"{time.monotonic() - began_s:6.1f} s  {line}")

    try:
        verdicts = asyncio.run(_play(root, tell, has_spark=has_spark))
    finally:
        if home is None:
            shutil.rmtree(root, ignore_errors=True)
    took_s = time.monotonic() - began_s
    verdicts.append(Verdict(f"told within {TOLD_S:g} s", f"{took_s:.0f} s", took_s <= TOLD_S))
    table = Table("what was promised", "what was measured", "", title="Tanist")
    for verdict in verdicts:
        table.add_row(verdict.promise, verdict.measured, "kept" if verdict.is_kept else "NOT KEPT")
    Console().print(table)
    if not all(verdict.is_kept for verdict in verdicts):
        raise SystemExit(EXIT_BROKEN)


async def _play(root: Path, tell: Tell, *, has_spark: bool) -> list[Verdict]:
    """Both acts. What can not go on is a promise that was not kept, and the other act is played still."""
    verdicts: list[Verdict] = []
    for name, act in (
        ("fixed roles", fixed_roles(root / "fixed", tell)),
        ("elected master", auto_switch(root / "switch", tell, has_spark=has_spark)),
    ):
        tell(f"--- {name}")
        try:
            verdicts += await act
        except* MQError as errors:
            verdicts.append(Verdict(f"the story of {name} comes to its end", _words(errors), False))
    return verdicts


def _words(errors: ExceptionGroup[MQError]) -> str:
    leaves: list[str] = []
    for error in errors.exceptions:
        leaves += [_words(error)] if isinstance(error, ExceptionGroup) else [str(error)]
    return "; ".join(leaves)
