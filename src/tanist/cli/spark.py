"""``tanist spark``: the data pipeline on Apache Spark."""

import sys

import click
import msgspec
from rich.console import Console
from rich.table import Table

from tanist.cli.asked import JSON
from tanist.spark.doctor import Diagnosis, diagnose

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
