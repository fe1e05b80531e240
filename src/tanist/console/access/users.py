"""Who may log in, and as what: a file with one line a user, ``name=role:hash``. Pure but for reading it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path

from tanist.config import load_properties
from tanist.console.access.passwords import hash_password, is_hash, is_password
from tanist.errors import ConfigError

KEY = "users"
"""What the setting is called in errors."""

_NAME = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_NOBODY_SALT = b"nobody has this."


class Role(StrEnum):
    """What a user may do: look, or change things too."""

    VIEWER = "viewer"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class User:
    """One who may log in. What is kept of the password is never shown."""

    name: str
    role: Role
    password_hash: str = field(repr=False)

    @property
    def is_operator(self) -> bool:
        return self.role is Role.OPERATOR


class Users:
    """All who may log in."""

    def __init__(self, *users: User) -> None:
        self._users = {user.name: user for user in users}

    def __len__(self) -> int:
        return len(self._users)

    def find(self, name: str) -> User | None:
        return self._users.get(name)

    def check(self, name: str, password: str) -> User | None:
        """The user, if this is his password. Slow on purpose, so not for the event loop."""
        user = self._users.get(name)
        # Somebody who does not exist takes as long to refuse as a wrong password: names can not be found out.
        is_right = is_password(password, _nobody() if user is None else user.password_hash)
        return user if is_right else None


def read_users(path: Path) -> Users:
    """The users of a file. Raises ConfigError for a line that makes no sense, or if it has none."""
    users = parse_users(load_properties(path), source=path)
    if not len(users):
        raise ConfigError(KEY, str(path), "a file with a line for each user: tanist console adduser", path)
    return users


def parse_users(lines: Mapping[str, str], *, source: object = None) -> Users:
    """The users of lines ``name=role:hash``."""
    return Users(*(_parse_user(name, value, source) for name, value in lines.items()))


def check_name(name: str) -> str:
    """The name, if a user may have it; ConfigError if not."""
    if not _NAME.fullmatch(name):
        raise ConfigError("user", name, "up to 64 letters, digits and . _ @ -")
    return name


@cache
def _nobody() -> str:
    return hash_password("", _NOBODY_SALT)


def _parse_user(name: str, value: str, source: object) -> User:
    if not _NAME.fullmatch(name):
        raise ConfigError("user", name, "up to 64 letters, digits and . _ @ -", source)
    role, _, kept = value.partition(":")
    if role not in list(Role) or not is_hash(kept):
        # The value may be a password that somebody wrote there.
        raise ConfigError(name, "…", "viewer or operator, a colon, and what adduser made", source)
    return User(name, Role(role), kept)
