"""``tanist store diverged``: what was cut off a log because no other replica had it."""

from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.table import Table

from tanist.cli.describe import describe_record
from tanist.store.diverged import DivergedReport, diverged_folders, read_diverged, read_report


class DivergedView(msgspec.Struct, rename="camel"):
    """One folder; without a report if a crash came before the copy was whole."""

    folder: str
    report: DivergedReport | None


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--cat", "name", help="Print the messages of this one instead of the list.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def diverged(folder: Path, *, name: str | None, as_json: bool) -> None:
    """List what was cut off a store's log when a new master did not have it, or print it.

    The messages were never confirmed. They are kept until somebody deletes their folder.
    """
    found = {path.name: read_report(path) for path in diverged_folders(folder)}
    if name is not None:
        _print_messages(folder, found, name, as_json=as_json)
    elif as_json:
        views = [DivergedView(at, report) for at, report in found.items()]
        click.echo(msgspec.json.format(msgspec.json.encode(views), indent=2))
    elif not found:
        click.echo(f"nothing was ever cut off the log in {folder}")
    else:
        _print_table(found)


def _print_table(found: dict[str, DivergedReport | None]) -> None:
    table = Table("folder", "cut at", "from", "to", "epochs", "messages", "topics")
    for name, report in found.items():
        if report is None:
            table.add_row(name, "not whole: its messages are still in the log, or in a later folder")
            continue
        time = datetime.fromtimestamp(report.cut_ms / 1000, UTC).isoformat(timespec="seconds")
        epochs = ", ".join(str(part.epoch) for part in report.epochs)
        topics = ", ".join(f"{topic} {count}" for topic, count in sorted(report.topics.items()))
        row = (report.start, report.end, epochs, report.message_count, topics)
        table.add_row(name, time, *map(str, row))
    Console().print(table)


def _print_messages(
    folder: Path, found: dict[str, DivergedReport | None], name: str, *, as_json: bool
) -> None:
    report = found.get(name)
    if report is None:
        whole = [other for other, told in found.items() if told is not None]
        raise click.ClickException(
            f"no {name!r} that is whole in {folder}; there is: {', '.join(whole) or '-'}"
        )
    for record in read_diverged(folder / "diverged" / name, report):
        message = describe_record(record)
        click.echo(msgspec.json.encode(message) if as_json else message.one_line())
