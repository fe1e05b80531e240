"""Stores and batches for tests of the data sources, without Spark."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from tanist.model.message import Message
from tanist.protocol.record import encode_record
from tanist.spark.arrow import Bytes
from tanist.spark.columns import FILE_COLUMNS, Column
from tanist.spark.commitlog.planning import plan_store
from tanist.spark.commitlog.reading import Reading
from tanist.spark.making import Broken
from tanist.spark.wanted import Wanted
from tests.support.messages import TOPIC, make_message, open_store

STORE_HOST = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"


def fill_store(root: Path, count: int = 60, *, body_bytes: int = 100) -> None:
    """A closed store of two topics with two queues each: every third message is of the other topic."""
    with open_store(root) as store:
        for number in range(count):
            topic = "TopicB" if number % 3 == 0 else TOPIC
            store.append(
                make_message(
                    number,
                    topic=topic,
                    queue_id=number % 2,
                    body_bytes=body_bytes,
                    keys=f"k{number}",
                    tag="even" if number % 2 == 0 else "odd",
                    UNIQ_KEY=f"U{number}",
                )
            )
        store.flush()
        store.dispatch()


def lay_out(messages: Iterable[Message], *, first_offset: int = 0) -> bytes:
    """These messages as records behind each other, from a log offset on."""
    data = b""
    for number, message in enumerate(messages):
        data += encode_record(
            message,
            queue_offset=number,
            log_offset=first_offset + len(data),
            store_timestamp_ms=1_700_000_000_000 + number,
            store_host=STORE_HOST,
        )
    return data


def as_array(data: bytes) -> Bytes:
    return np.frombuffer(data, np.uint8)


def read_store(
    root: Path,
    wanted: Wanted | None = None,
    *,
    columns: tuple[Column, ...] = FILE_COLUMNS,
    subscribed: tuple[str, ...] = (),
    min_pieces: int = 0,
    fails_on_broken: bool = False,
) -> tuple[list[dict[str, Any]], list[Broken]]:
    """All rows that a read gives, in the order of the log, and what it reports as broken."""
    wanted = wanted or Wanted()
    plan = plan_store(str(root), wanted, subscribed=subscribed, min_pieces=min_pieces)
    if subscribed:
        wanted = wanted.of_topics(frozenset(subscribed))
    reading = Reading(columns, wanted, fails_on_broken)
    rows: list[dict[str, Any]] = []
    broken: list[Broken] = []
    for piece in plan.pieces:
        for batch in reading.batches(plan, piece, broken.append):
            rows += batch.to_pylist()
    return sorted(rows, key=lambda row: row.get("commitLogOffset", 0)), broken


def numbers(rows: Iterable[dict[str, Any]]) -> list[int]:
    """The numbers of the messages, which their bodies tell."""
    return [int(row["body"].split()[1]) for row in rows]
