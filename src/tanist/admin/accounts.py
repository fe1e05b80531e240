"""Users and access rules of brokers of RocketMQ, 5's and 4.9's. Tanist's are in files with one writer."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from tanist.admin.parallel import Told, ask_each
from tanist.admin.refused import NotThere
from tanist.client.session.wire import Wire
from tanist.errors import ConfigError, ResponseError
from tanist.protocol.bodies import encode_body
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.java_json import decode_java_json

_DEFAULT_POLICY = "CUSTOM"
_ABSENT = frozenset({ResponseCode.USER_NOT_EXIST, ResponseCode.POLICY_NOT_EXIST})


class Kind(NamedTuple):
    """What brokers keep of access, the field that names one, and the orders for it."""

    name: str
    list_code: RequestCode
    get_code: RequestCode
    create_code: RequestCode
    update_code: RequestCode


USERS = Kind(
    "username",
    RequestCode.AUTH_LIST_USER,
    RequestCode.AUTH_GET_USER,
    RequestCode.AUTH_CREATE_USER,
    RequestCode.AUTH_UPDATE_USER,
)
RULES = Kind(
    "subject",
    RequestCode.AUTH_LIST_ACL,
    RequestCode.AUTH_GET_ACL,
    RequestCode.AUTH_CREATE_ACL,
    RequestCode.AUTH_UPDATE_ACL,
)


async def change(
    wire: Wire, addresses: Sequence[str], code: RequestCode, *, ext: dict[str, str | None], body: Any = None
) -> list[Told[None]]:
    """Create, change or delete an account or a rule on each of these brokers."""

    async def order(address: str) -> None:
        await wire.ask(address, _request(code, ext, body))

    return await ask_each(addresses, order)


async def read(
    wire: Wire, address: str, code: RequestCode, *, ext: dict[str, str | None]
) -> list[dict[str, Any]]:
    """Accounts or rules of one broker."""
    answer = await wire.ask(address, _request(code, ext))
    if not answer.body:
        return []
    if bytes(answer.body).lstrip().startswith(b"["):
        return decode_java_json(answer.body, list[dict[str, Any]])
    return [decode_java_json(answer.body, dict[str, Any])]


async def copy(wire: Wire, source: str, target: str, kind: Kind, names: str | None) -> list[Told[None]]:
    """Copy what one broker has of a kind to another, or only these names, which commas separate.

    What the target has is changed to the same. Raises NotThere if there is nothing to copy at all.
    """
    found = {str(each.get(kind.name)): each for each in await read(wire, source, kind.list_code, ext={})}
    wanted = sorted(found) if names is None else _listed(names)
    if not wanted:
        raise NotThere(f"{source} has no {kind.name} to copy")
    told: list[Told[None]] = []
    for name in wanted:
        if name in found:
            told += await ask_each([target], lambda each, name=name: _put(wire, each, kind, found[name]))
        else:
            told.append(Told(source, None, NotThere(f"{source} has no {kind.name} {name}")))
    return told


async def _put(wire: Wire, address: str, kind: Kind, body: dict[str, Any]) -> None:
    """Brokers refuse to create what they have, and to change what they have not."""
    ext = {kind.name: body.get(kind.name)}
    try:
        is_there = bool(await read(wire, address, kind.get_code, ext=ext))
    except ResponseError as error:
        if error.code not in _ABSENT:
            raise
        is_there = False
    await wire.ask(address, _request(kind.update_code if is_there else kind.create_code, ext, body))


async def versions(wire: Wire, address: str) -> dict[str, str]:
    """The version of a broker's access rules, and whose they are (RocketMQ 4.9)."""
    return dict((await wire.ask(address, _request(RequestCode.GET_BROKER_CLUSTER_ACL_INFO, {}))).ext)


def user_body(
    username: str, password: str | None = None, *, kind: str | None = None, status: str | None = None
) -> dict[str, str | None]:
    """An account as brokers read it."""
    return {"username": username, "password": password, "userType": kind, "userStatus": status}


def rule_body(
    subject: str, *, resources: str, actions: str, decision: str, source_ips: str | None = None
) -> dict[str, Any]:
    """The rules of one subject, a rule a resource, as brokers read them. Lists are separated by commas.

    >>> body = rule_body("User:al", resources="Topic:a,Topic:b", actions="Pub", decision="Deny")
    >>> [entry["resource"] for entry in body["policies"][0]["entries"]]
    ['Topic:a', 'Topic:b']
    """
    entries = [
        {
            "resource": resource,
            "actions": _listed(actions),
            "sourceIps": _listed(source_ips or ""),
            "decision": decision,
        }
        for resource in _listed(resources)
    ]
    if not entries:
        raise ConfigError("resources", resources, "such as Topic:orders,Group:billing")
    return {"subject": subject, "policies": [{"policyType": _DEFAULT_POLICY, "entries": entries}]}


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _request(code: RequestCode, ext: dict[str, str | None], body: Any = None) -> Command:
    given = {name: value for name, value in ext.items() if value is not None}
    return Command.request(code, ext=given, body=b"" if body is None else encode_body(body))
