"""``tanist spark``: the data pipeline on Apache Spark."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from rich.console import Console
from rich.table import Table

from tanist.cli.asked import JSON
from tanist.cli.spark_archive import archive
from tanist.cli.spark_check import check
from tanist.cli.spark_lag import lag
from tanist.cli.spark_reset_plan import reset_plan
from tanist.cli.spark_writes import COMMANDS as WRITE_COMMANDS
from tanist.config import load_properties, parse_settings
from tanist.spark.doctor import Diagnosis, diagnose
from tanist.spark.running import on_spark
from tanist.spark.session import spark_session
from tanist.store import StoreSettings

if TYPE_CHECKING:
    from tanist.spark.audit.job import AuditReport

EXIT_UNFIT = 1


@click.group()
def spark() -> None:
    """Read messages with Apache Spark: from a store's files, or from brokers."""


for command in (archive, check, lag, reset_plan, *WRITE_COMMANDS):
    spark.add_command(command)


@spark.command()
@JSON
def doctor(*, as_json: bool) -> None:
    """Say whether Spark can run here: which Java and packages were found, and why these.

    Exit code 1 if something is missing.
    """
    found = diagnose()
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
    else:
        _print(found)
    if found.problems:
        sys.exit(EXIT_UNFIT)


MASTER = click.option("--master", default="local[*]", show_default=True, help="The Spark that does the work.")
CONFIG = click.option(
    "-c",
    "config_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The broker's config, if it sets maxHashSlotNum, maxIndexNum or messageDelayLevel.",
)
FOLDER = click.Path(exists=True, file_okay=False, resolve_path=True)


@spark.command()
@click.argument("stores", nargs=-1, required=True, type=FOLDER)
@MASTER
@CONFIG
@click.option("--namesrv", help="Compare one store with what the brokers of this cluster hand out.")
@click.option("--broker-name", help="The broker whose store it is, if the cluster has several.")
@click.option("--log-only", is_flag=True, help="Compare neither indexes nor offsets.")
@click.option(
    "--certificate",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write down there what was found equal, for `tanist audit verify`.",
)
@JSON
def audit(
    stores: tuple[str, ...],
    *,
    master: str,
    config_file: Path | None,
    namesrv: str | None,
    broker_name: str | None,
    log_only: bool,
    certificate: Path | None,
    as_json: bool,
) -> None:
    """Compare two or more STORES: a master's and its slaves', or a store and its backup.

    Their logs are compared byte for byte; the first differing byte, its record and its epoch are named. Then
    consume queues, key index and the offsets of groups. Exit code 1 if logs or indexes differ.

    With --namesrv one store is compared with a live broker, message by message.
    """
    if namesrv is not None:
        _audit_live(stores, namesrv, broker_name, master=master, as_json=as_json)
        return
    settings = _store_settings(config_file)
    # Not before Spark is known to be here: what follows needs its packages.
    session = spark_session(master, app_name="tanist audit")
    from tanist.spark.audit.job import audit as run_audit  # noqa: PLC0415

    try:
        run = on_spark(session, "audit")
        found = run_audit(*stores, run=run, with_indexes=not log_only, settings=settings)
    finally:
        session.stop()
    print_audit(found, as_json=as_json)
    if certificate is not None and found.is_equal:
        certificate.write_bytes(msgspec.json.format(msgspec.json.encode(found.certificate()), indent=2))
    if not found.is_equal or found.index_problems:
        sys.exit(EXIT_UNFIT)


def _audit_live(
    stores: tuple[str, ...], namesrv: str, broker_name: str | None, *, master: str, as_json: bool
) -> None:
    if len(stores) != 1:
        raise click.UsageError("--namesrv compares one store with its broker, and several are named")
    session = spark_session(master, app_name="tanist audit")
    from tanist.spark.audit.live import audit_live  # noqa: PLC0415
    from tanist.spark.rocketmq.options import for_batch, read_options  # noqa: PLC0415

    try:
        options = for_batch(read_options({"namesrv": namesrv, "subscribePattern": ".*"}))
        run = on_spark(session, "audit")
        found = audit_live(stores[0], options, broker_name=broker_name, run=run)
    finally:
        session.stop()
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
    else:
        click.echo(f"compared {found.compared_messages} messages, {found.compared_bytes} bytes")
        click.echo(f"{found.newer_messages} lie outside of what the store's log has")
        said = f"differs first at {found.first_difference}: {found.record}"
        click.echo("equal" if found.is_equal else said)
    if not found.is_equal:
        sys.exit(EXIT_UNFIT)


@spark.command()
@click.argument("store", type=FOLDER)
@click.option("--to", type=click.Path(resolve_path=True), help="Build there, and leave the store as it is.")
@MASTER
@CONFIG
@JSON
def rebuild(store: str, *, to: str | None, master: str, config_file: Path | None, as_json: bool) -> None:
    """Build the consume queues and the key index of a STORE again from its log, in parallel.

    They are what its broker would build, byte for byte. Without --to they take the place of the old ones,
    which stay beside them; no broker may use the store meanwhile.
    """
    settings = _store_settings(config_file)
    session = spark_session(master, app_name="tanist rebuild")
    from tanist.spark.rebuild.job import rebuild as run_rebuild  # noqa: PLC0415

    try:
        found = run_rebuild(store, to, settings=settings, run=on_spark(session, "rebuild"))
    finally:
        session.stop()
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
        return
    click.echo(
        f"built {found.queue_count} queues and {found.index_files} index files with {found.key_count} keys "
        f"of {found.record_count} messages in [{found.log_start}, {found.log_end}), in {found.built_in}"
    )
    for problem in found.problems:
        click.echo(f"not queued: {problem}")


def _store_settings(config_file: Path | None) -> StoreSettings:
    raw = load_properties(config_file) if config_file is not None else {}
    return parse_settings(raw, StoreSettings, source=config_file)[0]


def print_audit(found: "AuditReport", *, as_json: bool) -> None:
    """Say what came of an audit."""
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
        return
    click.echo(f"compared [{found.log_start}, {found.log_end}) of {' and '.join(found.stores)}")
    for store, end in zip(found.stores, found.ends, strict=True):
        if end > found.log_end:
            click.echo(f"{store} goes on for {end - found.log_end} bytes that not all have")
    if found.is_equal:
        click.echo(f"equal; root {found.root}")
    else:
        click.echo(f"{found.different_blocks} blocks differ, first at log offset {found.first_difference}")
        click.echo(f"in {found.different_store}, the bytes there: {found.bytes_there}")
        click.echo(f"the record at {found.record_start}: {found.record}")
        if found.epoch is not None:
            click.echo(f"written in epoch {found.epoch}")
    for problem in found.index_problems:
        click.echo(f"index: {problem}")
    for problem in found.offset_problems:
        click.echo(f"offsets: {problem}")


def _print(found: Diagnosis) -> None:
    click.echo(f"Python   {found.python}")
    table = Table("Java from", "path", "version", "is used")
    is_chosen = False
    for java in found.java:
        used = java.problem or ("no: an earlier one will do" if is_chosen else _why(java.has_module))
        is_chosen = is_chosen or java.problem is None
        table.add_row(java.source, java.path, "-" if java.version is None else str(java.version), used)
    if found.java:
        Console().print(table)
    click.echo(f"JAVA_HOME for Spark: {found.java_home or '-'}")
    for package, version in found.packages.items():
        click.echo(f"{package:8} {version or 'missing'}")
    click.echo(f"formats  {', '.join(found.formats)}")
    for problem in found.problems:
        click.echo(f"problem: {problem}")
    if not found.problems:
        click.echo("Spark can run here")


def _why(has_module: bool) -> str:
    return "yes" if has_module else "yes, through a script: it lacks jdk.incubator.vector"
