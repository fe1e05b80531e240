"""Users and access rules of brokers of RocketMQ; Tanist's are in plain_acl.yml, and its brokers say so.

A password or secret key that is ``-`` is asked for, so that no list of processes shows it.
"""

from typing import Any

import click

from tanist.admin import accounts
from tanist.admin.parallel import Told, ask_each
from tanist.cli.commanding import WHOM, Asker, command
from tanist.cli.shown import Shown, done_at, failed_lines, outcome_of, to_json
from tanist.protocol.codes import RequestCode

_ASKED = "-"


def _secret(_context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    return click.prompt(str(parameter.name), hide_input=True, err=True) if value == _ASKED else value


_USER = click.option("-u", "--username", required=True, help="The user.")
_SUBJECT = click.option("-s", "--subject", required=True, help="Whom the rules are for, as User:alice.")
_PASSWORD_HELP = "The password; - asks for it."  # noqa: S105
_TYPE = click.option("-t", "--userType", "kind", help="Super or Normal.")
_RULE = (
    _SUBJECT,
    click.option("-r", "--resources", required=True, help="As Topic:orders,Group:billing."),
    click.option("-a", "--actions", required=True, help="As Pub,Sub."),
    click.option("-d", "--decision", required=True, help="Allow or Deny."),
    click.option("-i", "--sourceIp", "source_ips", help="From these addresses only, with commas."),
)
_FROM_TO = (
    click.option("-f", "--fromBroker", "source", required=True, help="The broker they are copied from."),
    click.option("-t", "--toBroker", "target", required=True, help="The broker they are copied to."),
)


@command(
    "createUser",
    *WHOM,
    _USER,
    click.option("-p", "--password", required=True, callback=_secret, help=_PASSWORD_HELP),
    _TYPE,
)
async def create_user(
    ask: Asker, *, address: str | None, cluster: str | None, username: str, password: str, kind: str | None
) -> Shown:
    """Create a user."""
    body = accounts.user_body(username, password, kind=kind)
    told = await _change_user(ask, await ask.brokers(address, cluster), RequestCode.AUTH_CREATE_USER, body)
    return done_at(told, f"user {username} is there")


@command(
    "updateUser",
    *WHOM,
    _USER,
    click.option("-p", "--password", callback=_secret, help=_PASSWORD_HELP),
    _TYPE,
    click.option("-s", "--userStatus", "status", help="enable or disable."),
)
async def update_user(
    ask: Asker,
    *,
    address: str | None,
    cluster: str | None,
    username: str,
    password: str | None,
    kind: str | None,
    status: str | None,
) -> Shown:
    """Change a user's password, type or status."""
    body = accounts.user_body(username, password, kind=kind, status=status)
    told = await _change_user(ask, await ask.brokers(address, cluster), RequestCode.AUTH_UPDATE_USER, body)
    return done_at(told, f"user {username} is changed")


@command("deleteUser", *WHOM, _USER)
async def delete_user(ask: Asker, *, address: str | None, cluster: str | None, username: str) -> Shown:
    """Delete a user."""
    told = await accounts.change(
        ask.wire,
        await ask.brokers(address, cluster),
        RequestCode.AUTH_DELETE_USER,
        ext={"username": username},
    )
    return done_at(told, f"user {username} is deleted")


@command("getUser", *WHOM, _USER, repeats=True)
async def get_user(ask: Asker, *, address: str | None, cluster: str | None, username: str) -> Shown:
    """Show a user."""
    return await _read(ask, address, cluster, RequestCode.AUTH_GET_USER, {"username": username})


@command(
    "listUser",
    *WHOM,
    click.option("-f", "--filter", "wanted", help="Only whose names hold this."),
    repeats=True,
)
async def list_users(ask: Asker, *, address: str | None, cluster: str | None, wanted: str | None) -> Shown:
    """Show all users."""
    return await _read(ask, address, cluster, RequestCode.AUTH_LIST_USER, {"filter": wanted})


@command("copyUser", *_FROM_TO, click.option("-u", "--usernames", help="Only these, with commas."))
async def copy_users(ask: Asker, *, source: str, target: str, usernames: str | None) -> Shown:
    """Copy users from one broker to another."""
    return done_at(await accounts.copy(ask.wire, source, target, accounts.USERS, usernames), "copied")


@command("createAcl", *WHOM, *_RULE)
async def create_rule(ask: Asker, *, address: str | None, cluster: str | None, **given: Any) -> Shown:
    """Create access rules of a user."""
    told = await _change_rule(ask, await ask.brokers(address, cluster), RequestCode.AUTH_CREATE_ACL, given)
    return done_at(told, f"the rules of {given['subject']} are there")


@command("updateAcl", *WHOM, *_RULE)
async def update_rule(ask: Asker, *, address: str | None, cluster: str | None, **given: Any) -> Shown:
    """Change access rules of a user."""
    told = await _change_rule(ask, await ask.brokers(address, cluster), RequestCode.AUTH_UPDATE_ACL, given)
    return done_at(told, f"the rules of {given['subject']} are changed")


@command("deleteAcl", *WHOM, _SUBJECT, click.option("-r", "--resources", "resource", help="Only these."))
async def delete_rule(
    ask: Asker, *, address: str | None, cluster: str | None, subject: str, resource: str | None
) -> Shown:
    """Delete access rules of a user, all or those of a resource."""
    told = await accounts.change(
        ask.wire,
        await ask.brokers(address, cluster),
        RequestCode.AUTH_DELETE_ACL,
        ext={"subject": subject, "resource": resource},
    )
    return done_at(told, f"the rules of {subject} are deleted")


@command("getAcl", *WHOM, _SUBJECT, repeats=True)
async def get_rule(ask: Asker, *, address: str | None, cluster: str | None, subject: str) -> Shown:
    """Show the access rules of a user."""
    return await _read(ask, address, cluster, RequestCode.AUTH_GET_ACL, {"subject": subject})


@command(
    "listAcl",
    *WHOM,
    click.option("-s", "--subject", help="Only whose names hold this."),
    click.option("-r", "--resource", help="Only of resources that hold this."),
    repeats=True,
)
async def list_rules(
    ask: Asker, *, address: str | None, cluster: str | None, subject: str | None, resource: str | None
) -> Shown:
    """Show all access rules."""
    ext = {"subjectFilter": subject, "resourceFilter": resource}
    return await _read(ask, address, cluster, RequestCode.AUTH_LIST_ACL, ext)


@command("copyAcl", *_FROM_TO, click.option("-s", "--subjects", help="Only of these, with commas."))
async def copy_rules(ask: Asker, *, source: str, target: str, subjects: str | None) -> Shown:
    """Copy access rules from one broker to another."""
    return done_at(await accounts.copy(ask.wire, source, target, accounts.RULES, subjects), "copied")


_ACCESS_KEY = click.option("-a", "--accessKey", "access_key", required=True, help="The account.")


@command(
    "updateAclConfig",
    *WHOM,
    _ACCESS_KEY,
    click.option(
        "-s", "--secretKey", "secret_key", required=True, callback=_secret, help="Its secret; - asks."
    ),
    click.option("-w", "--whiteRemoteAddress", "white", help="An address that needs no signature."),
    click.option("-m", "--admin", type=bool, help="Whether it may all."),
    click.option("-i", "--defaultTopicPerm", "topic_perm", help="DENY, PUB, SUB or PUB|SUB."),
    click.option("-u", "--defaultGroupPerm", "group_perm", help="DENY, PUB, SUB or PUB|SUB."),
    click.option("-t", "--topicPerms", "topics", help="As topicA=DENY,topicB=PUB|SUB."),
    click.option("-g", "--groupPerms", "groups", help="As groupA=DENY,groupB=SUB."),
)
async def update_account(
    ask: Asker,
    *,
    address: str | None,
    cluster: str | None,
    access_key: str,
    secret_key: str,
    white: str | None,
    admin: bool | None,
    topic_perm: str | None,
    group_perm: str | None,
    topics: str | None,
    groups: str | None,
) -> Shown:
    """Create or change an account of a broker of RocketMQ 4.9."""
    ext = {
        "accessKey": access_key,
        "secretKey": secret_key,
        "whiteRemoteAddress": white,
        "admin": None if admin is None else str(admin).lower(),
        "defaultTopicPerm": topic_perm,
        "defaultGroupPerm": group_perm,
        "topicPerms": topics,
        "groupPerms": groups,
    }
    told = await accounts.change(
        ask.wire, await ask.brokers(address, cluster), RequestCode.UPDATE_AND_CREATE_ACL_CONFIG, ext=ext
    )
    return done_at(told, f"account {access_key} is there")


@command("deleteAclConfig", *WHOM, _ACCESS_KEY)
async def delete_account(ask: Asker, *, address: str | None, cluster: str | None, access_key: str) -> Shown:
    """Delete an account of a broker of RocketMQ 4.9."""
    told = await accounts.change(
        ask.wire,
        await ask.brokers(address, cluster),
        RequestCode.DELETE_ACL_CONFIG,
        ext={"accessKey": access_key},
    )
    return done_at(told, f"account {access_key} is deleted")


@command(
    "updateGlobalWhiteAddr",
    *WHOM,
    click.option("-g", "--globalWhiteRemoteAddresses", "addresses", required=True, help="With commas."),
    click.option("-p", "--aclFileFullPath", "file", help="In this file of the broker."),
)
async def update_white(
    ask: Asker, *, address: str | None, cluster: str | None, addresses: str, file: str | None
) -> Shown:
    """Say which addresses need no signature at a broker of RocketMQ 4.9."""
    told = await accounts.change(
        ask.wire,
        await ask.brokers(address, cluster),
        RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
        ext={"globalWhiteAddrs": addresses, "aclFileFullPath": file},
    )
    return done_at(told, f"white addresses: {addresses}")


@command("clusterAclConfigVersion", *WHOM, repeats=True)
async def account_versions(ask: Asker, *, address: str | None, cluster: str | None) -> Shown:
    """Show the version of the access rules of brokers of RocketMQ 4.9."""

    async def look(each: str) -> dict[str, str]:
        return await accounts.versions(ask.wire, each)

    told = await ask_each(await ask.brokers(address, cluster, with_slaves=True), look)
    lines = [f"{each.address}: {to_json(each.value, is_pretty=False)}" for each in told if each.value]
    value = {each.address: each.value for each in told if each.value is not None}
    return Shown(value, [*lines, *failed_lines(told)], outcome_of(told))


COMMANDS = (
    create_user,
    update_user,
    delete_user,
    get_user,
    list_users,
    copy_users,
    create_rule,
    update_rule,
    delete_rule,
    get_rule,
    list_rules,
    copy_rules,
    update_account,
    delete_account,
    update_white,
    account_versions,
)


async def _change_user(
    ask: Asker, addresses: list[str], code: RequestCode, body: dict[str, str | None]
) -> list[Told[None]]:
    return await accounts.change(ask.wire, addresses, code, ext={"username": body["username"]}, body=body)


async def _change_rule(
    ask: Asker, addresses: list[str], code: RequestCode, given: dict[str, Any]
) -> list[Told[None]]:
    body = accounts.rule_body(**given)
    return await accounts.change(ask.wire, addresses, code, ext={"subject": body["subject"]}, body=body)


async def _read(
    ask: Asker, address: str | None, cluster: str | None, code: RequestCode, ext: dict[str, str | None]
) -> Shown:
    addresses = await ask.brokers(address, cluster)
    told = await ask_each(addresses, lambda each: accounts.read(ask.wire, each, code, ext=ext))
    lines = [
        f"{each.address}: {to_json(item, is_pretty=False)}" for each in told for item in each.value or []
    ]
    value = {each.address: each.value for each in told if each.value is not None}
    return Shown(value, [*lines, *failed_lines(told)], outcome_of(told))
