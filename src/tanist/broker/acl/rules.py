"""Who may do what: the accounts of plain_acl.yml, and what they say to a request.

    address trusted by all     ->  allowed
    no access key, or unknown  ->  refused
    address trusted by account ->  allowed
    wrong signature            ->  refused
    lacks what it needs        ->  refused
    else                       ->  allowed

Pure. RocketMQ's order (PlainPermissionManager): a trusted address needs no signature and no permission. For
what is in SIGNED_CODES, which are ours, no address is trusted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tanist.broker.acl.addresses import AddressPattern, parse_patterns
from tanist.broker.acl.needs import ADMIN_CODES, SIGNED_CODES, Access, Kind, Need, Needs
from tanist.broker.acl.plain_acl import AccountEntry, PlainAcl
from tanist.protocol.command import Command
from tanist.protocol.signature import ACCESS_KEY, is_signed

_SHORTEST_KEY = 7
_NONE = Access(0)
_ALL = Access.PUB | Access.SUB
_WORDS = {
    "DENY": _NONE,
    "PUB": Access.PUB,
    "SUB": Access.SUB,
    "PUB|SUB": _ALL,
    "SUB|PUB": _ALL,
    "ANY": _ALL,
}


@dataclass(frozen=True, slots=True)
class Account:
    """One access key, and what it opens."""

    access_key: str
    secret_key: str = field(repr=False)
    trusted: tuple[AddressPattern, ...]
    is_admin: bool
    defaults: Mapping[Kind, Access]
    granted: Mapping[tuple[Kind, str], Access]

    def lacks(self, request: Command, needs: Needs) -> str | None:
        """What this account would need for the request and has not; None if it has all."""
        if request.code in ADMIN_CODES and not self.is_admin:
            return f"request code {request.code} needs an admin's account"
        if self.is_admin and not self.granted:
            return None
        return next((f"it lacks {need}" for need in needs.of(request) if not self._has(need)), None)

    def _has(self, need: Need) -> bool:
        granted = self.granted.get((need.kind, need.name), self.defaults[need.kind])
        return need.access in granted


@dataclass(frozen=True, slots=True)
class AccessRules:
    """Everything that the files say, at one time."""

    trusted: tuple[AddressPattern, ...]
    accounts: Mapping[str, Account]
    repeated: frozenset[str]
    """Access keys that have more than one account: the first counts."""

    def refusal(self, request: Command, address: bytes, needs: Needs) -> str | None:
        """Why this request of the peer at this packed address is refused; None if it is not."""
        may_trust = request.code not in SIGNED_CODES
        if may_trust and _is_among(self.trusted, address):
            return None
        access_key = request.ext.get(ACCESS_KEY)
        if access_key is None:
            return "no access key"
        account = self.accounts.get(access_key)
        if account is None:
            return "unknown access key"
        if may_trust and _is_among(account.trusted, address):
            return None
        if not is_signed(request.ext, request.body, account.secret_key):
            return "wrong signature"
        return account.lacks(request, needs)

    def is_proven(self, request: Command) -> bool:
        """Whether the access key that a request names has signed it. Who is trusted need not have."""
        account = self.accounts.get(request.ext.get(ACCESS_KEY, ""))
        return account is not None and is_signed(request.ext, request.body, account.secret_key)


def make_rules(file: PlainAcl) -> AccessRules:
    """The rules of one file. Raises ValueError."""
    trusted: list[AddressPattern] = []
    for text in file.global_white_remote_addresses:
        trusted += parse_patterns(text)
    accounts: dict[str, Account] = {}
    repeated: set[str] = set()
    for entry in file.accounts:
        if entry.access_key in accounts:
            repeated.add(entry.access_key)
        else:
            accounts[entry.access_key] = _make_account(entry)
    return AccessRules(tuple(trusted), accounts, frozenset(repeated))


def join_rules(files: Iterable[AccessRules]) -> AccessRules:
    """The rules of several files together."""
    joined = AccessRules((), {}, frozenset())
    for file in files:
        joined = AccessRules(
            trusted=joined.trusted + file.trusted,
            accounts={**file.accounts, **joined.accounts},
            repeated=joined.repeated | file.repeated | (joined.accounts.keys() & file.accounts.keys()),
        )
    return joined


def _make_account(entry: AccountEntry) -> Account:
    name = f"account {entry.access_key!r}"
    if len(entry.access_key) < _SHORTEST_KEY or len(entry.secret_key) < _SHORTEST_KEY:
        raise ValueError(f"{name}: accessKey and secretKey have at least {_SHORTEST_KEY} characters")
    try:
        return Account(
            access_key=entry.access_key,
            secret_key=entry.secret_key,
            trusted=parse_patterns(entry.white_remote_address),
            is_admin=entry.admin,
            defaults={
                Kind.TOPIC: _parse_access(entry.default_topic_perm),
                Kind.GROUP: _parse_access(entry.default_group_perm),
            },
            granted={
                (kind, resource): access
                for kind, perms in ((Kind.TOPIC, entry.topic_perms), (Kind.GROUP, entry.group_perms))
                for resource, access in map(_parse_grant, perms)
            },
        )
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _parse_grant(text: str) -> tuple[str, Access]:
    resource, equals, word = text.partition("=")
    if not equals or not resource.strip():
        raise ValueError(f"{text!r} is not NAME=PERMISSION")
    return resource.strip(), _parse_access(word)


def _parse_access(word: str) -> Access:
    access = _WORDS.get(word.strip())
    if access is None:
        raise ValueError(f"{word!r} is no permission; use one of {', '.join(_WORDS)}")
    return access


def _is_among(patterns: tuple[AddressPattern, ...], address: bytes) -> bool:
    return any(pattern.matches(address) for pattern in patterns)
