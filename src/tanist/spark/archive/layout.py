"""Where things lie in an archive, and how its files are called. Pure.

    data/topic=OrderTopic/date=2026-11-18/0000000012-5f0c….parquet    what everybody reads
    _tanist/archive.json      whose messages these are
    _tanist/batches/          what the last batches brought, and up to where they went
    _tanist/staging/          files that are being written: nobody reads them
    _tanist/*.lock            who is at it

A file is called after what it holds: the number of its batch, and a digest of the ranges that were read for
it. What is read and written again after a crash takes the place of itself.
"""

import hashlib
from collections.abc import Iterable
from datetime import date, timedelta
from pathlib import PurePath
from urllib.parse import quote, unquote

DATA = "data"
OURS = "_tanist"
ABOUT = "archive.json"
BATCHES = "batches"
STAGING = "staging"
COMPACTING = "compacting"

SUFFIX = ".parquet"
_DIGEST_CHARS = 12
_DAY_ONE = date(1970, 1, 1)
US_PER_DAY = 86_400_000_000


def partition(topic: str, day: date) -> str:
    """The folder of a topic's day, below ``data``. Names are quoted as Hive, Spark and Arrow read them."""
    return f"topic={quote(topic, safe='')}/date={day.isoformat()}"


def topic_and_day(folder: PurePath) -> tuple[str, date] | None:
    """What the folder of a file says; None if it is none of ours."""
    topic, day = folder.parent.name, folder.name
    if not topic.startswith("topic=") or not day.startswith("date="):
        return None
    try:
        return unquote(topic.removeprefix("topic=")), date.fromisoformat(day.removeprefix("date="))
    except ValueError:
        return None


def day_of(number: int) -> date:
    """The day of which this is the number, counted from 1970 on in UTC."""
    return _DAY_ONE + timedelta(days=number)


def file_name(batch: int, ranges: Iterable[str]) -> str:
    """The name of what one batch brought of these ranges."""
    return f"{batch:010d}-{_digest(ranges)}{SUFFIX}"


def merged_name(names: Iterable[str]) -> str:
    """The name of what several files hold together: the batches from the first to the last."""
    merged = sorted(names)
    first, last = merged[0].split("-")[0], merged[-1].removesuffix(SUFFIX).split("-")[-2]
    return f"{first}-{last}-{_digest(merged)}{SUFFIX}"


def _digest(words: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(words)).encode()).hexdigest()[:_DIGEST_CHARS]
