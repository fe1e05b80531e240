"""``tanist store``: look into the folders of a broker's messages, Tanist's or RocketMQ's, and mend them."""

import sys
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tanist.cli.describe import describe_record, describe_store
from tanist.cli.diverged import diverged
from tanist.cli.repair import repair
from tanist.cli.store_demo import demo
from tanist.store.reader import StoreReader
from tanist.store.verify import VerifyReport, verify

EXIT_DAMAGED = 1

_FOLDER = click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


@click.group()
def store() -> None:
    """Look into a broker's store folder, check it, read messages from it, mend it.

    A store is the folder that holds commitlog and consumequeue. All but repair and demo change
    nothing, and work while a broker runs.
    """


store.add_command(demo)
store.add_command(diverged)
store.add_command(repair)


@store.command()
@_FOLDER
@_JSON
def info(folder: Path, *, as_json: bool) -> None:
    """Show what a store holds: log range, queues, epochs, checkpoint."""
    with StoreReader(folder) as reader:
        found = describe_store(reader)
    if as_json:
        _print_json(found)
        return
    click.echo(f"{folder}: {'closed properly' if found.was_closed else 'not closed properly, or open now'}")
    files = f"{found.segment_count} files of {found.segment_bytes} bytes"
    click.echo(f"log [{found.log_start}, {found.log_end}) in {files}")
    click.echo(f"checked from {found.scanned_from} on; the log ends there because {found.end_reason}")
    if found.truncate_to is not None:
        click.echo(f"a truncation to {found.truncate_to} was begun; the next start finishes it")
    if found.flushed_to is not None:
        click.echo(f"on disk for sure up to {found.flushed_to}, indexed up to {found.indexed_to}")
    for epoch in found.epochs:
        click.echo(f"epoch {epoch.epoch} from {epoch.start}")
    table = Table("topic", "queue", "first", "next", "messages")
    for queue in found.queues:
        row = (queue.queue_id, queue.min_offset, queue.max_offset, queue.max_offset - queue.min_offset)
        table.add_row(queue.topic, *map(str, row))
    Console().print(table)


@store.command(name="verify")
@_FOLDER
@_JSON
def verify_store(folder: Path, *, as_json: bool) -> None:
    """Check every record and every queue entry; exit code 1 if anything is wrong."""
    with StoreReader(folder) as reader:
        total = reader.segments.end - reader.segments.start
        columns = (TextColumn("checking"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task("check", total=total)
            report = verify(reader, lambda done: progress.advance(task, done))
    if as_json:
        _print_json(report)
    else:
        _print_report(report)
    if report.problem_count:
        sys.exit(EXIT_DAMAGED)


@store.command()
@_FOLDER
@click.option("-t", "--topic", required=True, help="The topic to read.")
@click.option(
    "-q", "--queue", "queue_id", type=int, default=None, help="One queue; all of the topic if not said."
)
@click.option("--from", "queue_offset", type=click.IntRange(min=0), help="The first queue offset.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="How many messages a queue at most.",
)
@_JSON
def cat(
    folder: Path, *, topic: str, queue_id: int | None, queue_offset: int | None, limit: int, as_json: bool
) -> None:
    """Print messages of a topic straight from the files, with or without a broker."""
    with StoreReader(folder) as reader:
        queue_ids = sorted(
            key[1] for key, _ in reader.queues if key[0] == topic and queue_id in (None, key[1])
        )
        if not queue_ids:
            topics = sorted({key[0] for key, _ in reader.queues})
            raise click.ClickException(
                f"no such queue of {topic!r} in {folder}; its topics: {', '.join(topics)}"
            )
        for found_id in queue_ids:
            for count, record in enumerate(reader.queue_records(topic, found_id, queue_offset)):
                if count >= limit:
                    break
                message = describe_record(record)
                click.echo(msgspec.json.encode(message) if as_json else message.one_line())


def _print_json(value: msgspec.Struct) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def _print_report(report: VerifyReport) -> None:
    click.echo(
        f"log [{report.log_start}, {report.log_end}): {report.record_count} records, "
        f"{report.queue_count} queues with {report.entry_count} entries; "
        f"the log ends there because {report.end_reason}"
    )
    for problem in report.problems:
        click.echo(f"problem: {problem}")
    count = report.problem_count
    click.echo(f"{count} problem{'s' if count > 1 else ''}" if count else "everything is sound")
