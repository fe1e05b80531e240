"""What the jobs of ``tanist spark`` share: their options, and how they show progress."""

import time

import click
import msgspec

from tanist.spark.progress import Progress

MASTER = click.option("--master", default="local[*]", show_default=True, help="The Spark that does the work.")
CONF = click.option(
    "--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark's own, as spark.driver.memory=4g."
)


def show_progress(progress: Progress) -> None:
    """Tell how far a job is, on standard error: what comes of it is on standard output."""
    click.echo(progress.line(time.monotonic()), err=True)


def echo_json(value: object) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def read_conf(conf: tuple[str, ...]) -> dict[str, str]:
    """The settings that were given with ``--conf``."""
    settings: dict[str, str] = {}
    for one in conf:
        key, is_given, value = one.partition("=")
        if not is_given or not key:
            raise click.UsageError(f"--conf {one} is no setting; use KEY=VALUE")
        settings[key] = value
    return settings
