"""Secrets that the processes of a run are given, and whether one of them has come out anywhere.

Each run has its own, and nobody else knows them: where one is found, a process has put it there.
"""

import secrets
from base64 import b64encode
from dataclasses import dataclass, field
from pathlib import Path

from tanist.client.settings import Credentials

ACCESS_KEY = "chaos-clients"
OPERATOR = "operator"
_TOKEN_BYTES = 18
_FOLDER = "secrets"
_CONFIG_FILES = "*.conf"
_CHUNK_BYTES = 1 << 20


def _secret() -> str:
    return secrets.token_urlsafe(_TOKEN_BYTES)


@dataclass(frozen=True, slots=True)
class Planted:
    """The secrets of a run. ``plant`` writes those down that are read from files."""

    folder: Path
    """Of the run. The config files of the processes, which hold secrets by their nature, lie at its top."""
    ha_secret: str = field(default_factory=_secret, repr=False)
    secret_key: str = field(default_factory=_secret, repr=False)
    tls_key_password: str = field(default_factory=_secret, repr=False)
    console_password: str = field(default_factory=_secret, repr=False)

    @property
    def credentials(self) -> Credentials:
        """As whom clients and operators ask the brokers."""
        return Credentials(ACCESS_KEY, self.secret_key)

    @property
    def login(self) -> str:
        """What a script sends to the console in the header Authorization."""
        return "Basic " + b64encode(f"{OPERATOR}:{self.console_password}".encode()).decode()

    @property
    def access_rules(self) -> Path:
        """The file with the brokers' one account."""
        return self.folder / _FOLDER / "plain_acl.yml"

    @property
    def access_file(self) -> Path:
        """The file by which operators' commands and the console know how to ask brokers."""
        return self.folder / _FOLDER / "tools.conf"

    def plant(self, *, trusted: str = "") -> None:
        """Write the files. Who asks from ``trusted`` needs no account."""
        self.access_rules.parent.mkdir(parents=True, exist_ok=True)
        account = (
            f"accounts:\n  - accessKey: {ACCESS_KEY}\n    secretKey: {self.secret_key}\n    admin: true\n"
        )
        everybody = f"globalWhiteRemoteAddresses:\n  - {trusted}\n" if trusted else ""
        self.access_rules.write_text(everybody + account, encoding="utf-8")
        self.access_file.write_text(
            f"accessKey={ACCESS_KEY}\nsecretKey={self.secret_key}\n", encoding="utf-8"
        )

    def leaks(self) -> list[str]:
        """Each secret that stands in a file of the run where it has no business, and where."""
        return [
            f"{name} stands in {path.relative_to(self.folder)}"
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and path.stat().st_size and not self._is_of_secrets(path)
            for name in self._found_in(path)
        ]

    def _is_of_secrets(self, path: Path) -> bool:
        inside = path.relative_to(self.folder)
        return inside.parts[0] == _FOLDER or (len(inside.parts) == 1 and inside.match(_CONFIG_FILES))

    def _found_in(self, path: Path) -> list[str]:
        named = {
            "haSecret": self.ha_secret,
            "the secret key of the access rules": self.secret_key,
            "tlsServerKeyPassword": self.tls_key_password,
            "the console's password": self.console_password,
            "the console's login": self.login.partition(" ")[2],
        }
        wanted = {name: value.encode() for name, value in named.items()}
        overlap = max(map(len, wanted.values())) - 1
        found, tail = set[str](), b""
        # Not mapped: where a full disk holds a file with holes, to touch one would end this process.
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                looked_at = tail + chunk
                found |= {name for name, value in wanted.items() if value in looked_at}
                tail = looked_at[-overlap:]
        return [name for name in wanted if name in found]
