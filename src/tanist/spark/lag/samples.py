"""Asks brokers where groups stand, and keeps it: a line of JSON a group, queue and time."""

import asyncio
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from tanist.admin.asking import Access, asking
from tanist.admin.cluster import broker_consume_stats, cluster_info
from tanist.client.session.wire import Wire
from tanist.protocol.bodies.stats import BrokerConsumeStats
from tanist.protocol.java_json import BAD_JSON
from tanist.spark.errors import SparkError

_LOOK_BACK_BYTES = 4096


class Sample(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """Where a group stood in a queue, and where the queue ended."""

    at_ms: int
    group: str
    topic: str
    broker: str
    queue_id: int
    max_offset: int
    consumer_offset: int
    consumed_stored_ms: int = 0
    """When the last message that was consumed was stored; 0 if the broker does not say."""

    @property
    def lag(self) -> int:
        return max(0, self.max_offset - self.consumer_offset)

    @property
    def late_ms(self) -> int:
        """How old the last message is that was consumed, if others wait behind it."""
        return max(0, self.at_ms - self.consumed_stored_ms) if self.lag and self.consumed_stored_ms else 0


def take_samples(name_server: str, at_ms: int, access: Access | None = None) -> list[Sample]:
    """Where all groups stand now, as the masters of all brokers tell."""

    async def ask() -> list[Sample]:
        async with asking(access) as wire:
            return await _ask_all(wire, name_server, at_ms)

    return asyncio.run(ask())


def append_samples(path: Path, samples: Iterable[Sample]) -> None:
    """Add them to a file, in one write: whoever reads it meanwhile sees whole lines.

    A line that a crash has cut is taken away first: what follows would become a part of it.
    """
    lines = b"".join(msgspec.json.encode(sample) + b"\n" for sample in samples)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        file.truncate(_whole_lines_end(file))
        file.write(lines)


def _whole_lines_end(file: BinaryIO) -> int:
    """Where the last line that is whole ends."""
    place = file.seek(0, os.SEEK_END)
    while place:
        first = max(0, place - _LOOK_BACK_BYTES)
        file.seek(first)
        found = file.read(place - first).rfind(b"\n")
        if found >= 0:
            return first + found + 1
        place = first
    return 0


def read_samples(path: Path) -> list[Sample]:
    """All samples of a file. A last line that is not whole was cut by a crash, and does not count."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        raise SparkError(f"{path} is not there; `tanist spark lag collect --to {path}` makes it") from None
    return list(_decoded(path, lines[:-1]))


def samples_of(told: BrokerConsumeStats, at_ms: int) -> list[Sample]:
    """What one broker told of all groups."""
    return [
        Sample(
            at_ms=at_ms,
            group=group,
            topic=queue.topic,
            broker=queue.broker_name,
            queue_id=queue.queue_id,
            max_offset=stats.broker_offset,
            consumer_offset=stats.consumer_offset,
            consumed_stored_ms=max(0, stats.last_timestamp_ms),
        )
        for listed in told.consume_stats_list
        for group, each in listed.items()
        for table in each
        for queue, stats in table.offset_table.items()
    ]


async def _ask_all(wire: Wire, name_server: str, at_ms: int) -> list[Sample]:
    found: list[Sample] = []
    for broker in (await cluster_info(wire, name_server)).broker_addr_table.values():
        if broker.master_addr is not None:
            found += samples_of(await broker_consume_stats(wire, broker.master_addr), at_ms)
    return found


def _decoded(path: Path, lines: Iterable[bytes]) -> Iterator[Sample]:
    decoder = msgspec.json.Decoder(Sample)
    for number, line in enumerate(lines, 1):
        try:
            yield decoder.decode(line)
        except BAD_JSON as error:
            raise SparkError(f"{path}:{number} is no sample: {error}") from error
