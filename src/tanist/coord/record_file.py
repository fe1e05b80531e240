"""The records of the registry in an SQLite file. Every call waits for the disk; one thread makes them all.

The file belongs to one process at a time, which holds a lock beside it (``.lock``). So whoever opens the file
knows that the sessions inside the process before are over, and removes what they left. Sessions whose owners
are elsewhere are kept in the file with their ephemeral records: their owners may still be there.
"""

import fcntl
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Self

from tanist.coord.changes import ancestors, parent_of
from tanist.coord.registry import (
    NOT_THERE,
    Change,
    Check,
    Conflict,
    Create,
    Delete,
    Put,
    Record,
    RegistryUnavailable,
)
from tanist.errors import ForeignFile, StoreLocked

# What SQLite keeps in the header of a file to tell whose it is.
_APPLICATION_ID = int.from_bytes(b"TnRg")
_LAYOUT_VERSION = 2
_MADE = "made\n"
"""Stands in the lock's file once there is a registry: an empty file beside it is then a lost one."""

# owner: the session that an ephemeral record goes with; null for one that stays.
_LAYOUT = """
    CREATE TABLE records (
        path TEXT PRIMARY KEY,
        parent TEXT,
        value BLOB NOT NULL,
        version INTEGER NOT NULL,
        owner INTEGER
    ) WITHOUT ROWID;
    CREATE INDEX children ON records (parent);
    CREATE INDEX ephemerals ON records (owner) WHERE owner IS NOT NULL;
    INSERT INTO records VALUES ('/', NULL, x'', 0, NULL);
"""

# key: the hash of what the owner of the session shows to be known. New with layout 2.
_SESSIONS_LAYOUT = """
    CREATE TABLE sessions (
        id INTEGER PRIMARY KEY,
        key BLOB NOT NULL,
        timeout_ms INTEGER NOT NULL
    );
"""


@dataclass(frozen=True, slots=True)
class KeptSession:
    """A session that outlives the process."""

    session_id: int
    key: bytes
    timeout_ms: int


@dataclass(slots=True)
class Done:
    """What a commit came to."""

    versions: list[int] = field(default_factory=list[int])
    touched: set[str] = field(default_factory=set[str])
    """The paths whose record or children changed."""


class RecordFile:
    """The open file. ``close`` lets it go."""

    def __init__(self, path: Path, lock: IO[str], database: sqlite3.Connection) -> None:
        self._path = path
        self._lock = lock
        self._database = database

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open or make the file.

        Raises StoreLocked if another process has it, and ForeignFile if it is damaged or not a registry.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = _take_lock(path)
        try:
            database = sqlite3.connect(path, isolation_level=None)
            try:
                if lock.read() == _MADE and not path.stat().st_size:
                    raise _damaged(path, "it is empty, and it had been made before")
                _prepare(path, database)
                lock.seek(0)
                lock.write(_MADE)
                lock.flush()
            except BaseException:
                database.close()
                raise
        except sqlite3.Error as error:
            lock.close()
            raise _damaged(path, str(error)) from error
        except BaseException:
            lock.close()
            raise
        return cls(path, lock, database)

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self._database.close()
        self._lock.close()

    def read(self, path: str) -> Record | None:
        with self._told_errors():
            return self._find(path)

    def children(self, path: str) -> list[str]:
        with self._told_errors():
            rows = self._database.execute("SELECT path FROM records WHERE parent = ? ORDER BY path", [path])
            return [each.rpartition("/")[2] for (each,) in rows]

    def commit(self, owner: int, changes: Sequence[Change]) -> Done:
        """Make all changes durable, or none of them and raise Conflict."""
        done = Done()
        with self._transaction():
            for change in changes:
                done.versions.append(self._make(change, owner, done.touched))
        return done

    def sessions(self) -> list[KeptSession]:
        """The sessions that are kept."""
        with self._told_errors():
            rows = self._database.execute("SELECT id, key, timeout_ms FROM sessions ORDER BY id")
            return [KeptSession(*row) for row in rows]

    def keep(self, session: KeptSession) -> None:
        """Have a session outlive the process, until its owner is ended."""
        row = [session.session_id, session.key, session.timeout_ms]
        with self._transaction():
            self._database.execute("INSERT INTO sessions VALUES (?, ?, ?)", row)

    def end_owner(self, owner: int) -> Done:
        """Remove a session with its ephemeral records."""
        done = Done()
        with self._transaction():
            self._database.execute("DELETE FROM sessions WHERE id = ?", [owner])
            for (path,) in self._database.execute("SELECT path FROM records WHERE owner = ?", [owner]):
                done.touched |= {path, parent_of(path)}
            self._database.execute("DELETE FROM records WHERE owner = ?", [owner])
        return done

    def _make(self, change: Change, owner: int, touched: set[str]) -> int:
        found = self._find(change.path)
        match change:
            case Create():
                if found is not None or not self._has_place_for(change.path, touched):
                    raise Conflict(change)
                self._insert(change.path, change.value, owner if change.is_ephemeral else None, touched)
                return 0
            case Check(version=None):
                if found is not None:
                    raise Conflict(change)
                return NOT_THERE
            case Put() | Delete() | Check():
                if found is None or found.version != change.version:
                    raise Conflict(change)
        match change:
            case Put():
                self._database.execute(
                    "UPDATE records SET value = ?, version = version + 1 WHERE path = ?",
                    [change.value, change.path],
                )
                touched.add(change.path)
                return found.version + 1
            case Delete():
                if self._database.execute("SELECT 1 FROM records WHERE parent = ?", [change.path]).fetchone():
                    raise Conflict(change)
                self._database.execute("DELETE FROM records WHERE path = ?", [change.path])
                touched |= {change.path, parent_of(change.path)}
                return found.version
            case Check():
                return found.version

    def _has_place_for(self, path: str, touched: set[str]) -> bool:
        """Make the missing parents; an ephemeral record can not be one."""
        for ancestor in ancestors(path):
            row = self._database.execute("SELECT owner FROM records WHERE path = ?", [ancestor]).fetchone()
            if row is None:
                self._insert(ancestor, b"", None, touched)
            elif row[0] is not None:
                return False
        return True

    def _insert(self, path: str, value: bytes, owner: int | None, touched: set[str]) -> None:
        parent = parent_of(path)
        self._database.execute("INSERT INTO records VALUES (?, ?, ?, 0, ?)", [path, parent, value, owner])
        touched |= {path, parent}

    def _find(self, path: str) -> Record | None:
        rows = self._database.execute("SELECT value, version FROM records WHERE path = ?", [path])
        row = rows.fetchone()
        return None if row is None else Record(*row)

    @contextmanager
    def _transaction(self) -> Generator[None]:
        with self._told_errors():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._database.execute("COMMIT")
            except BaseException:
                # SQLite may have rolled back by itself.
                with suppress(sqlite3.Error):
                    self._database.execute("ROLLBACK")
                raise

    @contextmanager
    def _told_errors(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise RegistryUnavailable(f"{self._path}: {error}; see to the file or its disk") from error


def _take_lock(path: Path) -> IO[str]:
    lock = path.with_name(f"{path.name}.lock").open("a+")
    lock.seek(0)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise StoreLocked(
            f"{path} is open in another process; stop the controller that uses this registry first"
        ) from error
    return lock


def _prepare(path: Path, database: sqlite3.Connection) -> None:
    """Look at what the file is, and begin it if it is new."""
    for (found,) in database.execute("PRAGMA integrity_check"):
        if found != "ok":
            raise _damaged(path, found)
    if path.stat().st_size % _pragma(database, "page_size"):
        raise _damaged(path, "it does not end with a whole page")
    application, layout = (_pragma(database, name) for name in ("application_id", "user_version"))
    is_new = application == 0 and not database.execute("SELECT 1 FROM sqlite_schema").fetchone()
    is_known = application == _APPLICATION_ID and 0 < layout <= _LAYOUT_VERSION
    if not is_new and not is_known:
        raise ForeignFile(
            path,
            f"application {application:#x} with layout {layout} made it, which is no registry known here",
            "name another file, or use the release that made this one",
        )
    database.execute("PRAGMA journal_mode = WAL")
    # A commit that was answered has to survive the power going.
    database.execute("PRAGMA synchronous = FULL")
    if layout < _LAYOUT_VERSION:
        # The layout and whose it is in one step: a start that is killed leaves a new file or a whole one.
        database.executescript(
            f"BEGIN IMMEDIATE; {_LAYOUT if is_new else ''} {_SESSIONS_LAYOUT}"
            f" PRAGMA application_id = {_APPLICATION_ID}; PRAGMA user_version = {_LAYOUT_VERSION}; COMMIT;"
        )
    database.execute("DELETE FROM records WHERE owner IS NOT NULL AND owner NOT IN (SELECT id FROM sessions)")


def _pragma(database: sqlite3.Connection, name: str) -> int:
    (value,) = database.execute(f"PRAGMA {name}").fetchone()
    return value


def _damaged(path: Path, found: str) -> ForeignFile:
    return ForeignFile(
        path, f"the registry can not be read: {found}", "put a copy of it in its place, or name a new file"
    )
