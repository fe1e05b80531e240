"""``tanist spark``: the data pipeline on Apache Spark."""

import sys
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table

from tanist.cli.access import AccessGiven, access_options, take_access
from tanist.cli.asked import JSON
from tanist.cli.spark_archive import archive
from tanist.cli.spark_audit import audit, rebuild
from tanist.cli.spark_check import check
from tanist.cli.spark_lag import lag
from tanist.cli.spark_reset_plan import reset_plan
from tanist.cli.spark_writes import COMMANDS as WRITE_COMMANDS
from tanist.spark.doctor import Diagnosis, diagnose

EXIT_UNFIT = 1


@click.group()
@access_options
@click.pass_context
def spark(context: click.Context, **given: Any) -> None:
    """Read messages with Apache Spark: from a store's files, or from brokers.

    The options here are for brokers with access rules or TLS: tanist spark --access-file app.yml archive …
    """
    take_access(context, AccessGiven(**given))


for command in (archive, audit, rebuild, check, lag, reset_plan, *WRITE_COMMANDS):
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
