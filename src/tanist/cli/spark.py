"""``tanist spark``: the data pipeline on Apache Spark."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from rich.console import Console
from rich.table import Table

from tanist.cli.asked import JSON
from tanist.spark.doctor import Diagnosis, diagnose
from tanist.spark.session import spark_session

if TYPE_CHECKING:
    from tanist.spark.audit.job import AuditReport

EXIT_UNFIT = 1


@click.group()
def spark() -> None:
    """Read messages with Apache Spark: from a store's files, or from brokers."""


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


@spark.command()
@click.argument("first", type=click.Path(exists=True, file_okay=False))
@click.argument("second", type=click.Path(exists=True, file_okay=False))
@click.option("--master", default="local[*]", show_default=True, help="The Spark that does the work.")
@click.option(
    "--certificate",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write down there what was found equal, for `tanist audit verify`.",
)
@JSON
def audit(first: str, second: str, *, master: str, certificate: Path | None, as_json: bool) -> None:
    """Compare the logs of two stores byte for byte: a master's and a slave's, or a store and its backup.

    Exit code 1 if they differ; the first differing byte, its record and its epoch are named.
    """
    # Not before Spark is known to be here: what follows needs its packages.
    session = spark_session(master, app_name="tanist audit")
    from tanist.spark.audit.job import audit as run_audit  # noqa: PLC0415
    from tanist.spark.audit.job import on_spark  # noqa: PLC0415

    try:
        found = run_audit(first, second, on_spark(session))
    finally:
        session.stop()
    print_audit(found, as_json=as_json)
    if not found.is_equal:
        sys.exit(EXIT_UNFIT)
    if certificate is not None:
        certificate.write_bytes(msgspec.json.format(msgspec.json.encode(found.certificate()), indent=2))


def print_audit(found: "AuditReport", *, as_json: bool) -> None:
    """Say what came of an audit."""
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
        return
    click.echo(f"compared [{found.log_start}, {found.log_end}) of {found.stores[0]} and {found.stores[1]}")
    for store, end in zip(found.stores, found.ends, strict=True):
        if end > found.log_end:
            click.echo(f"{store} goes on for {end - found.log_end} bytes that the other has not")
    if found.is_equal:
        click.echo(f"equal; root {found.root}")
        return
    click.echo(f"{found.different_blocks} blocks differ, first at log offset {found.first_difference}")
    click.echo(f"the bytes there: {found.bytes_there}; record at {found.record_start}: {found.record}")
    if found.epoch is not None:
        click.echo(f"written in epoch {found.epoch}")


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
