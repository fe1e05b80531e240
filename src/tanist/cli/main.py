"""The command ``tanist`` and how it fails: one line that says what is wrong and what to do."""

import logging
import sys
from importlib import import_module
from pathlib import Path

import click

from tanist import __version__
from tanist.config import LogFormat
from tanist.errors import MQError
from tanist.log import ProcessLog

EXIT_FAILED = 1
_UNLISTED = ("traffic",)
"""Commands for other commands."""


class _Commands(click.Group):
    """Imports a command when it is asked for: a broker that starts has no time to read what others need."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return [
            "admin",
            "audit",
            "broker",
            "chaos",
            "check",
            "console",
            "controller",
            "demo",
            "namesrv",
            "sim",
            "spark",
            "store",
            "up",
        ]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in [*self.list_commands(ctx), *_UNLISTED]:
            return None
        command = getattr(import_module(f"tanist.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tanist")
@click.option("-v", "--verbose", is_flag=True, help="Tell what happens inside.")
@click.option(
    "--log-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the log there, and begin a new file when it is full. Without it, to standard error.",
)
@click.option(
    "--log-format",
    type=click.Choice([each.value for each in LogFormat]),
    envvar="TANIST_LOG_FORMAT",
    help="A line of text for each event, or an object of JSON. Without it, what logFormat says.",
)
@click.pass_context
def tanist(context: click.Context, *, verbose: bool, log_file: Path | None, log_format: str | None) -> None:
    """A highly available message broker that never lies about its replicas."""
    # A command finds the log there, to tell more or to hide the secrets of its settings.
    context.obj = context.with_resource(
        ProcessLog(
            level=logging.INFO if verbose else logging.WARNING,
            file=log_file,
            is_json=None if log_format is None else log_format == LogFormat.JSON,
        )
    )


def main() -> None:
    """Run the command line. An error we know ends it with its own words, not with a traceback."""
    try:
        tanist.main()
    except MQError as error:
        # Only here: a broker that starts has no time to read what operators need.
        exit_codes = import_module("tanist.cli.exit_codes")
        click.echo(f"tanist: {exit_codes.in_one_line(error)}", err=True)
        sys.exit(exit_codes.exit_code_of(error))
    except OSError as error:
        place = f"{error.filename}: " if error.filename is not None else ""
        click.echo(f"tanist: {place}{error.strerror or error}", err=True)
        sys.exit(EXIT_FAILED)
