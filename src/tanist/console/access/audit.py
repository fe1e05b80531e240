"""What users changed: one line of JSON each, in a file that is only ever added to.

An act is written down twice, before it is done and with what came of it, so that one that ends the
console itself is in the file too. If the first line can not be written the act is not done.
"""

import os
from collections import deque
from pathlib import Path

import msgspec

from tanist.errors import ConfigError, MQError
from tanist.protocol.java_json import BAD_JSON

_KEPT = 500
_MAX_TEXT_CHARS = 2_000


class AuditFailed(MQError):
    """The line could not be written. Whoever writes it before he acts does nothing then."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem}; nothing was done")
        self.problem = problem


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Who did what to what, when, from where, and what came of it."""

    at_ms: int
    user: str
    address: str
    """Where the browser is."""
    action: str
    subject: str
    outcome: str
    """``asked``, ``done``, ``refused`` or ``failed``."""
    details: str = ""


class AuditLog:
    """The file, and the last entries of it. Without a file they are kept in memory alone."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._last: deque[AuditEntry] = deque(maxlen=_KEPT)
        if path is not None:
            self._last.extend(_read_last(path))

    @property
    def last(self) -> list[AuditEntry]:
        """The newest first."""
        return list(reversed(self._last))

    def write(self, entry: AuditEntry) -> None:
        """Add an entry, durably. Raises AuditFailed."""
        shown = msgspec.structs.replace(
            entry, subject=entry.subject[:_MAX_TEXT_CHARS], details=entry.details[:_MAX_TEXT_CHARS]
        )
        if self._path is not None:
            try:
                _append(self._path, msgspec.json.encode(shown) + b"\n")
            except OSError as error:
                raise AuditFailed(
                    f"the audit log {self._path} can not be written ({error.strerror})"
                ) from error
        self._last.append(shown)


def _append(path: Path, line: bytes) -> None:
    # Only its owner may read who did what.
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, line)
        os.fsync(file)
    finally:
        os.close(file)


def _read_last(path: Path) -> list[AuditEntry]:
    try:
        lines = path.read_bytes().splitlines()[-_KEPT:] if path.exists() else []
    except OSError as error:
        raise ConfigError("audit-log", str(path), f"a file that can be read ({error.strerror})") from error
    entries: list[AuditEntry] = []
    for line in lines:
        try:
            entries.append(msgspec.json.decode(line, type=AuditEntry))
        except BAD_JSON:
            # A line that a crash cut short tells nothing, and keeps nobody from the others.
            continue
    return entries
