"""What the commands of ``resetOffset`` share: options, and who asks whom."""

import getpass
from pathlib import Path
from typing import NamedTuple

import click

from tanist.admin.asking import Access
from tanist.admin.resets.applying import How
from tanist.admin.resets.plan import Plan
from tanist.cli.asked import JSON, NAME_SERVER, bundled, name_server_of
from tanist.client.session.wire import Wire

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
FORCE = click.option(
    "--force", "is_forced", is_flag=True, help="Also where the group has moved since it was planned."
)
REASON = click.option("--reason", default="", help="Why, for the brokers' records and whoever asked.")


class ApplyAsked(NamedTuple):
    """What is asked of a plan to carry it out, or to take it back."""

    plan_file: Path
    name_server: str | None
    yes: bool
    is_forced: bool
    wait_s: float
    reason: str
    is_edit_accepted: bool
    user: str | None
    as_json: bool

    def how(self, access: Access) -> How:
        return How(
            caller=who(self.user, access), reason=self.reason, is_forced=self.is_forced, wait_s=self.wait_s
        )


class DecideAsked(NamedTuple):
    """What is asked of an order that waits."""

    order_id: str
    name_server: str | None
    reason: str
    user: str | None
    as_json: bool


APPLY = bundled(ApplyAsked, PLAN_FILE, NAME_SERVER, YES, FORCE, WAIT, REASON, ACCEPT_EDITED, USER, JSON)
DECIDE = bundled(DecideAsked, click.argument("order_id", metavar="ORDER"), NAME_SERVER, REASON, USER, JSON)


def who(user: str | None, access: Access) -> str:
    """As whom orders are given."""
    if user:
        return user
    credentials = access.credentials
    return credentials.access_key if credentials is not None else getpass.getuser()


async def name_server_for(wire: Wire, named: str | None, plan: Plan) -> str:
    """One of the name servers that were named, or the one that the plan was made with."""
    return await name_server_of(wire, named) if named else plan.name_server
