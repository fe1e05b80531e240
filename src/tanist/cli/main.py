"""The command ``tanist`` and how it fails: one line that says what is wrong and what to do."""

import logging
import sys

import click

from tanist import __version__
from tanist.cli.store import store
from tanist.errors import MQError

EXIT_FAILED = 1


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tanist")
@click.option("-v", "--verbose", is_flag=True, help="Tell what happens inside, on standard error.")
def tanist(*, verbose: bool) -> None:
    """A highly available message broker that never lies about its replicas."""
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(levelname)s %(name)s %(message)s"
    )


tanist.add_command(store)


def main() -> None:
    """Run the command line. An error we know ends it with its own words, not with a traceback."""
    try:
        tanist.main()
    except MQError as error:
        click.echo(f"tanist: {error}", err=True)
        sys.exit(EXIT_FAILED)
