"""``tanist audit``: check what an audit has certified; `tanist spark audit` makes such certificates."""

import sys
from importlib.util import find_spec
from pathlib import Path

import click
import msgspec

from tanist.cli.asked import JSON
from tanist.spark.errors import NotInstalled

EXIT_DIFFERENT = 1


@click.group()
def audit() -> None:
    """Check the certificates that `tanist spark audit` writes."""


@audit.command()
@click.argument("certificate", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("store", type=click.Path(exists=True, file_okay=False))
@JSON
def verify(certificate: Path, store: str, *, as_json: bool) -> None:
    """Say whether a store's log still holds, byte for byte, what was certified. Needs no Spark.

    Exit code 1 if it does not.
    """
    if find_spec("numpy") is None:
        raise NotInstalled("numpy")
    from tanist.spark.audit import certificate as certificates  # noqa: PLC0415 - it may not be installed.

    verdict = certificates.verify(certificates.load(certificate), store)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(verdict), indent=2))
    else:
        click.echo(f"{store}: {'holds' if verdict.holds else 'DOES NOT HOLD'}: {verdict.reason}")
    if not verdict.holds:
        sys.exit(EXIT_DIFFERENT)
