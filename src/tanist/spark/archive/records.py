"""What an archive writes down about itself, as JSON: in ``_tanist``, and in the footers of its files."""

from typing import Any

import msgspec

ABOUT_KIND = "tanist archive"
ABOUT_VERSION = 1
HOLDS_KEY = "tanist.holds"
"""Under this name a Parquet file says in its footer what it holds."""

CLUSTER = "cluster"
STORE = "store"

PARQUET = "parquet"
DELTA = "delta"

Positions = dict[str, Any]
"""Up to where an archive has come. What it looks like is its source's own."""


class About(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """Whose messages an archive holds."""

    kind: str = ABOUT_KIND
    version: int = ABOUT_VERSION
    archive_id: str
    created_at: str
    source: str
    """``cluster``: read from brokers; ``store``: from files."""
    table_format: str = PARQUET
    topics: list[str] | None = None
    """Of stores: the only topics that are taken. None stands for all."""
    clusters: list[str] | None = None
    """Of brokers: the names of their clusters, when it was made. None if that was not written down."""


class Run(msgspec.Struct, kw_only=True, frozen=True, rename="camel", omit_defaults=True):
    """Messages of one queue whose offsets follow each other: ``[first, end)``."""

    broker: str | None = None
    queue_id: int
    first: int
    end: int
    bytes: int
    """What they took in the log."""
    first_stored_ms: int
    last_stored_ms: int

    @property
    def rows(self) -> int:
        return self.end - self.first


class Holds(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """What a file holds."""

    topic: str
    date: str
    rows: int
    runs: list[Run]


class Written(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A file that a task wrote aside, and where it belongs."""

    staged: str
    """Below ``_tanist/staging``."""
    path: str
    """Below ``data``."""
    rows: int
    bytes: int
    """What its messages took in the log."""
    file_bytes: int


class BrokenPlace(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A place of a store's log where no message could be read: it is in no file, only here."""

    log_offset: int
    size_bytes: int
    reason: str


class TaskResult(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """What came of one task."""

    files: list[Written]
    broken: list[BrokenPlace] = []


class Batch(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """What one batch brought. Once this stands, the batch counts: its files only have to be moved."""

    number: int
    made_at: str
    positions: Positions
    """Where the next batch begins."""
    rows: int
    bytes: int
    files: list[Written]
    broken: list[BrokenPlace] = []
