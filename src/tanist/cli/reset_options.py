"""What the commands of ``resetOffset`` share: options, and who asks whom."""

import getpass
from pathlib import Path

import click

from tanist.admin.resets.plan import Plan
from tanist.cli.asked import first_of
from tanist.client.settings import Credentials

PLAN_FILE = click.argument(
    "plan_file", metavar="PLAN", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
USER = click.option("--user", help="Who says so; without it the access key, or your login name.")
ACCEPT_EDITED = click.option(
    "--accept-edited", "is_edit_accepted", is_flag=True, help="Take a plan that was edited by hand."
)
WAIT = click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(0, 3600),
    default=60.0,
    show_default=True,
    help="For so many seconds receipts are waited for.",
)
YES = click.option("--yes", is_flag=True, help="Do not ask.")


def who(user: str | None, credentials: Credentials | None) -> str:
    """As whom orders are given."""
    if user:
        return user
    return credentials.access_key if credentials is not None else getpass.getuser()


def need_name_server(name_server: str | None) -> str:
    """The name server that was named, by option or NAMESRV_ADDR."""
    if name_server is None:
        raise click.UsageError("give -n, the name server that knows the cluster")
    return first_of(name_server)


def name_server_of(name_server: str | None, plan: Plan) -> str:
    """The name server that was named, or the one that the plan was made with."""
    return plan.name_server if name_server is None else first_of(name_server)
