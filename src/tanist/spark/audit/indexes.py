"""Whether what is derived from a log agrees in several stores: consume queues, key index, offset tables.

A queue has to have the same entries in all stores, for the part of the log that was compared. An index file
begins when a broker wants one, so files of two stores are hardly ever equal: what has to agree is which keys
lead to which messages. That is compared as sums over parts of the log, which no order changes.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tanist.protocol.bodies.sync import ConsumerOffsetTable
from tanist.protocol.java_json import decode_java_json
from tanist.protocol.key_index import HEADER_BYTES, INDEX_ENTRY_BYTES, SLOT_BYTES, decode_index_header
from tanist.protocol.queue_entry import ENTRY_BYTES
from tanist.spark.arrow import Integers
from tanist.spark.commitlog.planning import open_store
from tanist.store.settings import StoreSettings

_ENTRIES_AT_ONCE = 1 << 16
_INDEX_ENTRY = np.dtype([("hash", ">i4"), ("log_offset", ">i8"), ("seconds", ">i4"), ("previous", ">i4")])
_OFFSETS_FILE = Path("config") / "consumerOffset.json"


class QueueKey(NamedTuple):
    """A queue of all stores."""

    topic: str
    queue_id: int


def queue_keys(stores: Sequence[str]) -> list[QueueKey]:
    """Every queue that one of the stores has."""
    found: set[QueueKey] = set()
    for store in stores:
        with open_store(store) as reader:
            found |= {QueueKey(*key) for key, _ in reader.queues}
    return sorted(found)


def compare_queue(stores: Sequence[str], start: int, end: int, key: QueueKey) -> str | None:
    """What is different in a queue, of the messages in ``[start, end)`` of the log; None if nothing is."""
    spans = [_span_of(store, key, start, end) for store in stores]
    lasts = {store: last for store, (_, last) in zip(stores, spans, strict=True)}
    if len(set(lasts.values())) > 1:
        told = ", ".join(f"at {last} in {store}" for store, last in lasts.items())
        return f"queue {key.topic}/{key.queue_id} ends {told}"
    first, last = max(begin for begin, _ in spans), spans[0][1]
    for begin in range(first, last, _ENTRIES_AT_ONCE):
        count = min(_ENTRIES_AT_ONCE, last - begin)
        packed = [_entries(store, key, begin, count) for store in stores]
        for store, other in zip(stores[1:], packed[1:], strict=True):
            if other != packed[0]:
                at = begin + _first_different(packed[0], other) // ENTRY_BYTES
                return f"queue {key.topic}/{key.queue_id} differs at offset {at} in {store}"
    return None


def _span_of(store: str, key: QueueKey, start: int, end: int) -> tuple[int, int]:
    """The offsets of a queue's messages in a part of the log; none at all if there is no such queue."""
    with open_store(store) as reader:
        queue = reader.queues.find(*key)
        if queue is None:
            return 0, 0
        last, before = queue.last_before(end), queue.last_before(start)
        first = max(queue.min_offset, 0 if before is None else before + 1)
        return first, first if last is None else max(first, last + 1)


def _entries(store: str, key: QueueKey, first: int, count: int) -> bytes:
    with open_store(store) as reader:
        queue = reader.queues.find(*key)
        return b"" if queue is None else queue.packed(first, count)


def _first_different(one: bytes, other: bytes) -> int:
    both = min(len(one), len(other))
    differing = np.flatnonzero(np.frombuffer(one[:both], np.uint8) != np.frombuffer(other[:both], np.uint8))
    return int(differing[0]) if len(differing) else both


class KeyPart(NamedTuple):
    """One index file of one of the stores."""

    store_number: int
    path: str


def key_parts(stores: Sequence[str]) -> list[KeyPart]:
    """Every index file of the stores."""
    return [
        KeyPart(number, str(path))
        for number, store in enumerate(stores)
        for path in sorted((Path(store) / "index").glob("[0-9]*"))
    ]


def unknown_shape(part: KeyPart, settings: StoreSettings) -> str | None:
    """Why an index file can not be read with these settings; None if it can."""
    expected = (
        HEADER_BYTES + settings.max_hash_slot_num * SLOT_BYTES + settings.max_index_num * INDEX_ENTRY_BYTES
    )
    found = Path(part.path).stat().st_size
    if found == expected:
        return None
    return (
        f"key indexes are not compared: {part.path} has {found} bytes, and with these maxHashSlotNum and "
        f"maxIndexNum it would have {expected}; give the broker's config"
    )


def sum_keys(
    start: int, end: int, part_bytes: int, settings: StoreSettings, part: KeyPart
) -> tuple[int, list[int]]:
    """For each part of the log the sum over the keys that an index file has of it."""
    sums = np.zeros(-(-(end - start) // part_bytes), np.uint64)
    for entries in _read_index(Path(part.path), settings.max_hash_slot_num):
        log_offsets = entries["log_offset"].astype(np.int64)
        is_inside = (log_offsets >= start) & (log_offsets < end)
        places = (log_offsets[is_inside] - start) // part_bytes
        np.add.at(sums, places, _mixed(log_offsets[is_inside], entries["hash"][is_inside].astype(np.int64)))
    return part.store_number, sums.tolist()


def _read_index(path: Path, slot_count: int) -> Iterator[Any]:
    with path.open("rb") as file:
        header = decode_index_header(file.read(HEADER_BYTES))
        position = HEADER_BYTES + slot_count * SLOT_BYTES + INDEX_ENTRY_BYTES
        left = header.entry_count - 1
        while left > 0:
            count = min(left, _ENTRIES_AT_ONCE)
            file.seek(position)
            yield np.frombuffer(file.read(count * INDEX_ENTRY_BYTES), _INDEX_ENTRY)
            position, left = position + count * INDEX_ENTRY_BYTES, left - count


def _mixed(log_offsets: Integers, hashes: Integers) -> Any:
    """A number for each key, far apart for keys that are near (the steps of splitmix64)."""
    mixed = log_offsets.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ hashes.astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ mixed >> np.uint64(shift)) * np.uint64(factor)
    return mixed ^ mixed >> np.uint64(31)


def compare_keys(
    stores: Sequence[str], start: int, part_bytes: int, found: Sequence[tuple[int, list[int]]]
) -> list[str]:
    """Which parts of the log are indexed otherwise in a store than in the first."""
    # A store without index files asked for none of its keys, and has nothing to differ in.
    totals: dict[int, Any] = {}
    for number, sums in found:
        totals[number] = totals.get(number, 0) + np.array(sums, np.uint64)
    if 0 not in totals:
        return []
    problems: list[str] = []
    for number, total in sorted(totals.items()):
        differing = np.flatnonzero(total != totals[0])
        if len(differing):
            at = start + int(differing[0]) * part_bytes
            problems.append(
                f"the key index of {stores[number]} differs for the log from {at} to {at + part_bytes}"
            )
    return problems


def compare_offsets(stores: Sequence[str]) -> list[str]:
    """Where consumer groups stand otherwise in a store than in the first."""
    tables = [_offsets_of(Path(store)) for store in stores]
    problems: list[str] = []
    for store, table in zip(stores[1:], tables[1:], strict=True):
        for name in sorted(tables[0].keys() | table.keys()):
            ours, theirs = tables[0].get(name, {}), table.get(name, {})
            problems += [
                f"{name}/{queue} is at {ours.get(queue)} in {stores[0]} and at {theirs.get(queue)} in {store}"
                for queue in sorted(ours.keys() | theirs.keys())
                if ours.get(queue) != theirs.get(queue)
            ]
    return problems


def _offsets_of(store: Path) -> Mapping[str, Mapping[int, int]]:
    path = store / _OFFSETS_FILE
    if not path.exists():
        return {}
    return decode_java_json(path.read_bytes(), ConsumerOffsetTable).offset_table
