"""``tanist spark archive``: messages kept for good, as Parquet for every reader or as a Delta table."""

import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from rich.console import Console
from rich.table import Table

from tanist.admin.asking import Access
from tanist.cli.asked import JSON
from tanist.cli.spark_job import CONF, MASTER, echo_json, read_conf, show_progress
from tanist.spark.archive.records import CLUSTER, DELTA, PARQUET, STORE
from tanist.spark.progress import shown_bytes
from tanist.spark.running import Workers, spark_workers
from tanist.spark.session import check_installed
from tanist.spark.watching import watched

if TYPE_CHECKING:
    from tanist.spark.archive.folder import ArchiveFolder
    from tanist.spark.archive.from_cluster import ClusterSource
    from tanist.spark.archive.job import ArchiveReport, Pause
    from tanist.spark.archive.sources import Source

_ARCHIVE = click.argument("archive", type=click.Path(path_type=Path, resolve_path=True), metavar="DIR")
_SHOWN_RANGES = 3


@click.group(name="archive", invoke_without_command=True, subcommand_metavar="[compact|list]")
@click.option(
    "--to",
    "root",
    type=click.Path(path_type=Path, resolve_path=True),
    metavar="DIR",
    help="The archive, or a new folder.",
)
@click.option("-n", "--namesrv", envvar="NAMESRV_ADDR", help="Read from brokers: the name server, host:port.")
@click.option(
    "--from-store",
    type=click.Path(resolve_path=True),
    metavar="DIR",
    help="Read a store's files instead, of a broker that runs or not.",
)
@click.option("--topics", help="Topics, separated by commas.")
@click.option("--pattern", help="Topics whose whole name matches this regular expression.")
@click.option("--broker-name", help="With --from-store: whose files these are, for the column brokerName.")
@click.option(
    "--read-from", type=click.Choice(["master", "slave", "any"]), help="Whom to read.  [default: master]"
)
@click.option("--once", is_flag=True, help="Take all that is there now, and end.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    default=60.0,
    show_default=True,
    help="Seconds between batches.",
)
@click.option(
    "--batch-messages",
    type=click.IntRange(min=1),
    help="Take so many messages at once, at most.  [default: 500000]",
)
@click.option("--allow-loss", is_flag=True, help="Go on if messages were deleted before they were archived.")
@click.option(
    "--format",
    "table_format",
    type=click.Choice([PARQUET, DELTA]),
    default=PARQUET,
    show_default=True,
    help="Files for everybody, or a Delta table, for which Spark needs Delta's jars.",
)
@MASTER
@CONF
@JSON
@click.pass_context
def archive(
    context: click.Context,
    *,
    root: Path | None,
    namesrv: str | None,
    from_store: str | None,
    topics: str | None,
    pattern: str | None,
    broker_name: str | None,
    read_from: str | None,
    once: bool,
    interval: float,
    batch_messages: int | None,
    allow_loss: bool,
    table_format: str,
    master: str,
    conf: tuple[str, ...],
    as_json: bool,
) -> None:
    """Archive messages as Parquet files by topic and day, or as a Delta table, each once, until Ctrl-C.

    \b
    tanist spark archive --namesrv 127.0.0.1:9876 --pattern 'Order.*' --to /archive
    tanist spark archive --from-store /var/lib/tanist/store --broker-name broker-a --to /archive --once
    tanist spark archive list /archive
    tanist spark archive compact /archive

    What was archived is remembered in the archive: called again, it goes on from there.
    """
    if context.invoked_subcommand is not None:
        return
    access: Access = context.obj
    if root is None:
        raise click.UsageError("--to says where the archive is")
    if from_store is not None and context.get_parameter_source("namesrv") is ParameterSource.ENVIRONMENT:
        # It is there for all commands, and whoever names a store means the store.
        namesrv = None
    if (namesrv is None) == (from_store is None):
        raise click.UsageError("give either --namesrv, to read brokers, or --from-store, to read files")
    if from_store is None and (topics is None) == (pattern is None):
        raise click.UsageError("give either --topics or --pattern, which say what to archive")
    if from_store is not None and pattern is not None:
        raise click.UsageError("--pattern is for --namesrv; name --topics, or none for all of a store")
    check_installed()
    from tanist.spark.archive.delta import appended_by, delta_settings  # noqa: PLC0415 - they need Arrow.
    from tanist.spark.archive.folder import new_about, open_for_writing  # noqa: PLC0415
    from tanist.spark.archive.from_store import StoreSource  # noqa: PLC0415

    settings = read_conf(conf)
    if table_format == DELTA:
        settings = delta_settings(settings)
    names = None if topics is None else [name.strip() for name in topics.split(",")]
    source: Source
    if from_store is not None:
        about = new_about(STORE, table_format=table_format, topics=names)
        source = StoreSource(from_store, broker=broker_name, topics=names, may_lose=allow_loss)
    else:
        assert namesrv is not None
        source = _cluster_source(
            namesrv=namesrv,
            access=access,
            topics=names or (),
            pattern=pattern,
            batch_messages=batch_messages,
            read_from=read_from,
            may_lose=allow_loss,
            until_now=once,
        )
        about = new_about(CLUSTER, table_format=table_format, clusters=source.clusters())
    with open_for_writing(root, about) as folder:
        # Whatever is wrong is said before Spark is started, which takes a while.
        source.check(folder.positions)
        with spark_workers(master, job="archive", settings=settings) as workers:
            if table_format == DELTA:
                folder.append_with(appended_by(workers.session, root))
            report = _run(folder, source, workers, _pause(once=once, interval_s=interval))
    if as_json:
        echo_json(report)
    else:
        _print(report)


def _cluster_source(*, batch_messages: int | None, **given: Any) -> "ClusterSource":
    from tanist.spark.archive.from_cluster import BATCH_MESSAGES, ClusterSource  # noqa: PLC0415

    return ClusterSource(batch_messages=batch_messages or BATCH_MESSAGES, **given)


def _run(folder: "ArchiveFolder", source: "Source", workers: Workers, pause: "Pause") -> "ArchiveReport":
    from tanist.spark.archive.job import archive as run_archive  # noqa: PLC0415

    return run_archive(folder, source, workers.run, tasks=workers.tasks, pause=pause, tell=show_progress)


def _pause(*, once: bool, interval_s: float) -> "Pause":
    """Waits between batches until somebody wants us to end: then the batch that runs is done first."""
    is_over = threading.Event()

    def stop(_signal: int, _frame: object) -> None:
        is_over.set()

    def pause(is_idle: bool) -> bool:
        if once and is_idle:
            return False
        return not is_over.wait(interval_s if is_idle else 0)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    return pause


def _print(report: "ArchiveReport") -> None:
    click.echo(
        f"{report.rows} messages ({shown_bytes(report.bytes)}) in {report.batches} batches to {report.files} "
        f"files ({shown_bytes(report.file_bytes)}) in {report.archive}, {report.seconds:.1f} s"
    )
    for place in report.broken:
        click.echo(
            f"broken: log offset {place.log_offset}, {place.size_bytes} bytes: {place.reason}", err=True
        )


@archive.command(name="list")
@_ARCHIVE
@click.option("--topics", help="Only these, separated by commas.")
@MASTER
@CONF
@JSON
def list_command(
    *, archive: Path, topics: str | None, master: str, conf: tuple[str, ...], as_json: bool
) -> None:
    """Show what an archive holds: by topic, broker and queue, and what is missing between.

    Spark is needed, and started, only for a Delta table.
    """
    check_installed()
    from tanist.spark.archive.catalogue import read_catalogue  # noqa: PLC0415 - they need Arrow.
    from tanist.spark.archive.delta import delta_settings, table_catalogue  # noqa: PLC0415
    from tanist.spark.archive.folder import open_about  # noqa: PLC0415

    wanted = None if topics is None else topics.split(",")
    if open_about(archive).table_format == DELTA:
        with (
            spark_workers(master, job="list", settings=delta_settings(read_conf(conf))) as workers,
            watched(workers.session, "list", show_progress),
        ):
            found = table_catalogue(workers.session, archive, topics=wanted)
    else:
        found = read_catalogue(archive, topics=wanted)
    if as_json:
        echo_json(found)
        return
    table = Table("topic", "broker", "queue", "offsets", "missing", "messages", "size", "first", "last")
    for queue in found.queues:
        table.add_row(
            queue.topic,
            queue.broker or "-",
            str(queue.queue_id),
            _shown_ranges(queue.ranges),
            _shown_ranges(queue.gaps) or "-",
            str(queue.rows),
            shown_bytes(queue.bytes),
            queue.first_stored,
            queue.last_stored,
        )
    Console().print(table)
    click.echo(f"{found.rows} messages in {found.files} files, {shown_bytes(found.file_bytes)}")


@archive.command(name="compact")
@_ARCHIVE
@MASTER
@CONF
@JSON
def compact_command(*, archive: Path, master: str, conf: tuple[str, ...], as_json: bool) -> None:
    """Make few large files of many small ones, a topic's day at a time. The archive may be in use."""
    check_installed()
    from tanist.spark.archive.compaction import compact  # noqa: PLC0415 - they need Arrow.
    from tanist.spark.archive.delta import optimize, settings_for  # noqa: PLC0415
    from tanist.spark.archive.folder import open_about  # noqa: PLC0415

    is_table = open_about(archive).table_format == DELTA
    settings = settings_for(archive, read_conf(conf))
    with spark_workers(master, job="compact", settings=settings) as workers:
        if is_table:
            with watched(workers.session, "compact", show_progress):
                report = optimize(workers.session, archive)
        else:
            report = compact(archive, workers.run, tell=show_progress)
    if as_json:
        echo_json(report)
        return
    click.echo(
        f"{report.files_before} files ({shown_bytes(report.bytes_before)}) became {report.files_after} "
        f"({shown_bytes(report.bytes_after)}), {report.seconds:.1f} s"
    )


def _shown_ranges(ranges: list[tuple[int, int]]) -> str:
    shown = ", ".join(f"{first}-{end}" for first, end in ranges[:_SHOWN_RANGES])
    return shown if len(ranges) <= _SHOWN_RANGES else f"{shown} and {len(ranges) - _SHOWN_RANGES} more"
