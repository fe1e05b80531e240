"""Reading ``plain_acl.yml``: RocketMQ's file of accounts, text in and entries out.

Where we differ from RocketMQ: a key or a word that means nothing is an error that names it, while there
it is passed over or taken for DENY; and a value is what is written, so a secret of digits is those digits.
No error holds a secret.
"""

from typing import Any, cast

import msgspec
import yaml

MAX_FILE_BYTES = 1 << 20
"""Some 5,000 accounts."""

_NOTHING = frozenset({"", "~", "null"})


class AccountEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One account, as the file has it."""

    access_key: str
    secret_key: str
    white_remote_address: str = ""
    admin: bool = False
    default_topic_perm: str = "DENY"
    default_group_perm: str = "DENY"
    topic_perms: list[str] = []
    group_perms: list[str] = []


class PlainAcl(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One file."""

    global_white_remote_addresses: list[str] = []
    accounts: list[AccountEntry] = []
    data_version: list[dict[str, Any]] = []
    """How often and when ``mqadmin`` changed the file. Nothing depends on it here."""


def parse_plain_acl(text: bytes) -> PlainAcl | None:
    """The entries of a file, or None if it holds nothing. Raises ValueError."""
    if len(text) > MAX_FILE_BYTES:
        raise ValueError(f"{len(text)} bytes are more than {MAX_FILE_BYTES}")
    try:
        # This loader makes text, lists and tables, and nothing else: it needs no types and runs no code.
        document = yaml.load(text, yaml.BaseLoader)  # noqa: S506
    except yaml.MarkedYAMLError as error:
        # The error's own text quotes the line, and a secret may stand on it.
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        raise ValueError(f"line {line} is no YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(f"this is no YAML ({type(error).__name__})") from None
    found = _without_nothing(document)
    if found is None:
        return None
    try:
        return msgspec.convert(found, PlainAcl, strict=False)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


def _without_nothing(value: object) -> object:
    """The same without the keys that have no value; None for no value at all."""
    if isinstance(value, dict):
        table = cast("dict[object, object]", value)
        kept = {key: _without_nothing(member) for key, member in table.items()}
        return {key: member for key, member in kept.items() if member is not None} or None
    if isinstance(value, list):
        return [_without_nothing(member) for member in cast("list[object]", value)]
    return None if value is None or value in _NOTHING else value
