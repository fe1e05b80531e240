"""``tanist spark replay``, ``dedup`` and ``ledger``: messages written again, come twice, or lost."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from tanist.admin.asking import Access
from tanist.cli.asked import JSON
from tanist.cli.spark_job import CONF, MASTER, echo_json, read_conf, show_progress
from tanist.spark.access import cluster_options
from tanist.spark.progress import shown_bytes
from tanist.spark.running import spark_workers
from tanist.spark.session import check_installed
from tanist.spark.watching import watched

if TYPE_CHECKING:
    from tanist.spark.ledger.accounts import LedgerReport
    from tanist.spark.ledger.dedup import DedupReport
    from tanist.spark.replay.job import ReplayReport

EXIT_LOST = 1
_NAMESRV = click.option(
    "-n", "--namesrv", envvar="NAMESRV_ADDR", required=True, help="The name server, host:port."
)
_TOPIC = click.option("-t", "--topic", required=True, help="The topic.")
_ARCHIVE = click.option(
    "--archive",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="Read the topic from this archive and not from brokers.",
)


class _Time(click.ParamType[datetime]):
    """A time as ISO 8601 (UTC unless it says otherwise) or as milliseconds since 1970."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        text = str(value)
        try:
            if text.isdecimal():
                return datetime.fromtimestamp(int(text) / 1000, UTC)
            found = datetime.fromisoformat(text)
        except (ValueError, OverflowError):
            self.fail(f"{text!r} is no time; use 2026-11-18T04:00:00 or milliseconds", param, ctx)
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


@click.command()
@click.argument("archive", type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path))
@_NAMESRV
@_TOPIC
@click.option("--from", "start", type=_Time(), required=True, help="Messages stored at this time or later,")
@click.option("--until", "end", type=_Time(), required=True, help="and before this one.")
@click.option("--to", "to_topic", help="The topic to write to.")
@click.option("--to-group", help="Or the group that alone is to get them, through its retry topic.")
@click.option("--tags", help="Only messages with one of these tags, separated by ||.")
@click.option(
    "--id", "replay_id", help="The replay's name, which makes it go on.  [default: by the question]"
)
@click.option("--rate", type=click.IntRange(min=1), help="Messages a second, at most; 8 or more.")
@click.option(
    "--apply", "is_applied", is_flag=True, help="Write them. Without it, only say what would be done."
)
@MASTER
@CONF
@JSON
@click.pass_obj
def replay(
    access: Access,
    *,
    archive: Path,
    namesrv: str,
    topic: str,
    start: datetime,
    end: datetime,
    to_topic: str | None,
    to_group: str | None,
    tags: str | None,
    replay_id: str | None,
    rate: int | None,
    is_applied: bool,
    master: str,
    conf: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write archived messages of a time range to a topic again, or for one group. A dry run unless --apply.

    \b
    tanist spark replay /archive -n 127.0.0.1:9876 -t Orders --from 2026-11-17 --until 2026-11-18 --to Again
    tanist spark replay /archive -n 127.0.0.1:9876 -t Orders --from … --until … --to-group billing --apply

    The same command goes on where it was broken off, and writes nothing twice: for a week after its last
    write, on Tanist's brokers.
    """
    check_installed()
    from tanist.spark.archive.delta import settings_for  # noqa: PLC0415 - they need Arrow.
    from tanist.spark.archive.frames import read_archive  # noqa: PLC0415
    from tanist.spark.replay.job import plan_replay  # noqa: PLC0415
    from tanist.spark.replay.job import replay as run_replay  # noqa: PLC0415
    from tanist.spark.replay.selecting import want  # noqa: PLC0415

    # Whatever is wrong is said before Spark is started, which takes a while.
    settings = settings_for(archive, read_conf(conf))
    wanted = want(
        archive=str(archive),
        topic=topic,
        start=start,
        end=end,
        to_topic=to_topic,
        to_group=to_group,
        replay_id=replay_id,
        tags=frozenset(tag.strip() for tag in tags.split("||")) if tags else frozenset(),
    )
    with spark_workers(master, job="replay", settings=settings) as workers:
        frame = read_archive(workers.session, archive)
        if is_applied:
            report = run_replay(frame, wanted, namesrv, access=access, rows_per_s=rate, tell=show_progress)
        else:
            report = plan_replay(frame, wanted, namesrv, access=access)
    if as_json:
        echo_json(report)
    else:
        _print_replay(report)


def _print_replay(report: "ReplayReport") -> None:
    done = "written" if report.is_applied else "would be written"
    click.echo(
        f"{report.rows} messages of {report.topic} ({shown_bytes(report.bytes)}) {done} to {report.target}; "
        f"{report.already_there} of them were there before, {report.expired} are in the archive alone"
    )
    if report.first is not None:
        click.echo(f"stored from {report.first} to {report.last}")
    table = Table("broker", "queue", "messages", "offsets")
    for queue in report.queues:
        table.add_row(
            queue.broker_name,
            str(queue.queue_id),
            str(queue.rows),
            f"{queue.first_offset} to {queue.last_offset}",
        )
    if report.queues:
        Console().print(table)
    how = "exactly once" if report.is_exactly_once else "at least once: not all brokers keep track of writes"
    click.echo(f"replay {report.replay_id}, {how}")
    if not report.is_applied:
        click.echo("a dry run: nothing was written; --apply does it")


@click.command()
@_NAMESRV
@_TOPIC
@_ARCHIVE
@click.option(
    "--to-parquet", type=click.Path(), help="Write what is left there, a folder that is not there yet."
)
@click.option("--to", "to_topic", help="Or write it to this topic.")
@MASTER
@CONF
@JSON
@click.pass_obj
def dedup(
    access: Access,
    *,
    namesrv: str,
    topic: str,
    archive: Path | None,
    to_parquet: str | None,
    to_topic: str | None,
    master: str,
    conf: tuple[str, ...],
    as_json: bool,
) -> None:
    """Count the messages that a topic has more than once, and write the others to Parquet or another topic.

    Equal are messages that a Spark job gave the same WRITE_ID, or a producer the same id.
    """
    check_installed()
    from tanist.spark.archive.delta import settings_for  # noqa: PLC0415 - they need Arrow.
    from tanist.spark.ledger.dedup import dedup as run_dedup  # noqa: PLC0415
    from tanist.spark.ledger.messages import messages_of  # noqa: PLC0415

    settings = settings_for(archive, read_conf(conf))
    target = None if to_topic is None else cluster_options(namesrv, access) | {"topic": to_topic}
    with (
        spark_workers(master, job="dedup", settings=settings) as workers,
        watched(workers.session, "dedup", show_progress),
    ):
        frame = messages_of(workers.session, topic, namesrv=namesrv, archive=archive, access=access)
        report = run_dedup(frame, to_parquet=to_parquet, to_topic=target)
    if as_json:
        echo_json(report)
    else:
        _print_dedup(report)


def _print_dedup(report: "DedupReport") -> None:
    click.echo(f"{report.rows} messages, {report.repeats} of them repeats; {report.kept} are left")
    for repeat in report.examples:
        click.echo(f"{repeat.identity} {repeat.count} times: {', '.join(repeat.places)}")
    if report.written_to is not None:
        click.echo(f"written to {report.written_to}, {report.seconds:.1f} s")


@click.command()
@_NAMESRV
@_TOPIC
@_ARCHIVE
@click.option("-g", "--group", "groups", multiple=True, required=True, help="A group; may be given again.")
@click.option("--traces", default=None, help="The topic of traces that says what was consumed.")
@click.option(
    "--deliveries",
    type=click.Path(exists=True, resolve_path=True),
    help="Or Parquet with columns group, msgId and, if known, deliveredAt, that consumers wrote.",
)
@click.option(
    "-b", "--broker", "brokers", multiple=True, help="A broker whose ledger is asked for, host:port."
)
@click.option(
    "--ledger",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Or a slaveConsumeLedger.jsonl of a store.",
)
@MASTER
@CONF
@JSON
@click.pass_obj
def ledger(
    access: Access,
    *,
    namesrv: str,
    topic: str,
    archive: Path | None,
    groups: tuple[str, ...],
    traces: str | None,
    deliveries: str | None,
    brokers: tuple[str, ...],
    files: tuple[Path, ...],
    master: str,
    conf: tuple[str, ...],
    as_json: bool,
) -> None:
    """Say how many messages of a topic groups lost, and which they got twice, and why.

    Exit code 1 if something is lost.
    """
    if traces is not None and deliveries is not None:
        raise click.UsageError("give either --traces or --deliveries, which say what was consumed")
    check_installed()
    from tanist.spark.archive.delta import settings_for  # noqa: PLC0415 - they need Arrow.
    from tanist.spark.ledger import accounts  # noqa: PLC0415
    from tanist.spark.ledger.messages import deliveries_of, messages_of  # noqa: PLC0415

    # Whatever is wrong is said before Spark is started, which takes a while.
    settings = settings_for(archive, read_conf(conf))
    offsets = accounts.group_offsets(topic, groups, namesrv, access)
    entries = [entry for path in files for entry in accounts.read_ledger_file(path)]
    entries += accounts.ask_ledgers(brokers, namesrv, access)
    with (
        spark_workers(master, job="ledger", settings=settings) as workers,
        watched(workers.session, "ledger", show_progress),
    ):
        report = accounts.account(
            messages_of(workers.session, topic, namesrv=namesrv, archive=archive, access=access),
            deliveries_of(workers.session, namesrv=namesrv, traces=traces, path=deliveries, access=access),
            topic=topic,
            offsets=offsets,
            entries=entries,
        )
    if as_json:
        echo_json(report)
    else:
        _print_ledger(report)
    if not report.is_clean:
        sys.exit(EXIT_LOST)


def _print_ledger(report: "LedgerReport") -> None:
    click.echo(
        f"{report.messages} messages of {report.topic}, {report.stored_twice} of them stored more than once; "
        f"{report.entries} entries of ledgers"
    )
    for group in report.groups:
        lost = "lost not known" if group.lost is None else f"{group.lost} lost"
        twice = "twice not known" if group.twice is None else f"{group.twice} delivered twice"
        bound = "no bound" if group.twice_at_most is None else f"at most {group.twice_at_most}"
        click.echo(
            f"{group.group}: {lost}, {twice} (by the ledgers {bound}), {group.consumed} consumed, "
            f"{group.waiting} waiting"
        )
        for message in group.lost_messages:
            click.echo(f"  lost   {message.msg_id} {message.place}")
        for message in group.twice_messages:
            because = message.because or "no change of reader in between"
            click.echo(f"  {message.times} times {message.msg_id} {message.place}: {because}")


COMMANDS = (replay, dedup, ledger)
