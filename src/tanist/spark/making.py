"""Makes the columns of located records, those that are asked for and no others."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tanist.client.received import MAX_BODY_BYTES
from tanist.errors import MQError
from tanist.model.epochs import Epoch
from tanist.model.host import PACKED_V4_BYTES, PACKED_V6_BYTES, host_and_port, unpack_host
from tanist.model.message import SysFlag
from tanist.protocol.compression import decompress_body
from tanist.spark import arrow, properties
from tanist.spark.arrow import Array, Booleans, Bytes, Integers, RecordBatch
from tanist.spark.columns import BROKEN, Column
from tanist.spark.decoding import (
    BODY_CRC_AT,
    BORN_HOST_AT,
    BORN_TIMESTAMP_AT,
    FLAG_AT,
    Located,
    gather,
)

_COMPRESSED = int(SysFlag.COMPRESSED)
_HEX = np.frombuffer("".join(f"{byte:02X}" for byte in range(256)).encode(), np.uint8).reshape(256, 2)


@dataclass(frozen=True, slots=True)
class Origin:
    """What is known of messages beside their records: whose log they are in, and which master wrote what."""

    broker_name: str | None = None
    epochs: tuple[Epoch, ...] = ()


@dataclass(frozen=True, slots=True)
class Broken:
    """A place of the log where no sound record is: from where, how many bytes, and what is wrong."""

    log_offset: int
    size_bytes: int
    reason: str


def make_batch(located: Located, columns: Iterable[Column], origin: Origin) -> RecordBatch:
    """The records as a batch with these columns. Raises for a body that can not be decompressed."""
    maker = _Maker(located, origin)
    return arrow.batch({column.name: _MAKERS[column.name](maker) for column in columns})


def make_broken(found: Broken, columns: Iterable[Column]) -> RecordBatch:
    """A broken place as a row: only its place, its size and its reason are there."""
    known: dict[str, int | str] = {
        "commitLogOffset": found.log_offset,
        "storeSize": found.size_bytes,
        BROKEN: found.reason,
    }
    return arrow.batch({one.name: arrow.constant(known.get(one.name), 1, one.arrow_type) for one in columns})


def unreadable_bodies(located: Located) -> dict[int, str]:
    """The rows whose body says it is compressed and can not be decompressed, and why."""
    found: dict[int, str] = {}
    for row in np.flatnonzero(located.sys_flags & _COMPRESSED).tolist():
        try:
            _decompressed(located, row)
        except MQError as error:
            found[row] = str(error)
    return found


@dataclass
class _Maker:
    """Makes single columns; what several of them need is made once."""

    located: Located
    origin: Origin
    _count: int = field(init=False)

    def __post_init__(self) -> None:
        self._count = len(self.located)

    @cached_property
    def strings(self) -> properties.Strings:
        return properties.Strings(self.located.raw, self.located.topic_ends + 2, self.located.ends)

    def integer(self, place: int) -> Array:
        return arrow.numbers(self.located.field(place, ">i4"), arrow.INT)

    def topic(self) -> Array:
        return self._text(self.located.topic_starts, self.located.topic_ends)

    def broker_name(self) -> Array:
        return arrow.constant(self.origin.broker_name, self._count, arrow.STRING)

    def epoch(self) -> Array:
        numbers = np.array([epoch.epoch for epoch in self.origin.epochs], np.int64)
        if not len(numbers):
            return arrow.constant(None, self._count, arrow.INT)
        starts = np.array([epoch.start for epoch in self.origin.epochs], np.int64)
        index = np.searchsorted(starts, self.located.log_offsets, side="right") - 1
        return arrow.numbers(numbers[np.maximum(index, 0)], arrow.INT, index < 0)

    def born_host(self) -> Array:
        starts = self.located.starts + BORN_HOST_AT
        return _hosts(self.located.raw, starts, self._is_v6(SysFlag.BORN_HOST_V6))

    def store_host(self) -> Array:
        return _hosts(self.located.raw, self.located.store_host_at, self._is_v6(SysFlag.STORE_HOST_V6))

    def message_id(self) -> Array:
        """The id that the producer gave; that of its place if it gave none."""
        found = properties.unique_keys(self.strings)
        return arrow.filled(found, self._offset_ids()) if found.null_count else found

    def reconsume_times(self) -> Array:
        return arrow.numbers(gather(self.located.raw, self.located.body_starts - 16, ">i4"), arrow.INT)

    def prepared_transaction_offset(self) -> Array:
        return arrow.numbers(gather(self.located.raw, self.located.body_starts - 12, ">i8"), arrow.BIGINT)

    def body(self) -> Array:
        """The bodies as their producers wrote them: those that were compressed are not any more."""
        located = self.located
        stored = arrow.pieces(located.raw, located.body_starts, located.body_ends, arrow.BINARY)
        rows = np.flatnonzero(located.sys_flags & _COMPRESSED)
        return arrow.replaced(stored, rows, [_decompressed(located, row) for row in rows.tolist()])

    def _text(self, starts: Integers, ends: Integers) -> Array:
        return arrow.pieces(self.located.raw, starts, ends, arrow.STRING)

    def _is_v6(self, bit: SysFlag) -> Booleans:
        return (self.located.sys_flags & int(bit)) != 0

    def _offset_ids(self) -> Array:
        is_v6 = self._is_v6(SysFlag.STORE_HOST_V6)
        places = self.located.log_offsets.astype(">i8").view(np.uint8).reshape(-1, 8)
        if not is_v6.any():
            return _hex(self.located.raw, self.located.store_host_at, PACKED_V4_BYTES, places)
        ids: list[str] = [""] * self._count
        for size, is_ours in ((PACKED_V4_BYTES, ~is_v6), (PACKED_V6_BYTES, is_v6)):
            rows = np.flatnonzero(is_ours)
            found = _hex(self.located.raw, self.located.store_host_at[rows], size, places[rows])
            for row, text in zip(rows.tolist(), found.to_pylist(), strict=True):
                ids[row] = text
        return arrow.of_list(ids, arrow.STRING)


_MAKERS: Mapping[str, Callable[[_Maker], Array]] = {
    "topic": _Maker.topic,
    "brokerName": _Maker.broker_name,
    "queueId": lambda maker: arrow.numbers(maker.located.queue_ids, arrow.INT),
    "queueOffset": lambda maker: arrow.numbers(maker.located.queue_offsets, arrow.BIGINT),
    "commitLogOffset": lambda maker: arrow.numbers(maker.located.log_offsets, arrow.BIGINT),
    "storeSize": lambda maker: arrow.numbers(maker.located.sizes, arrow.INT),
    "epoch": _Maker.epoch,
    "bornTimestamp": lambda maker: arrow.times(maker.located.field(BORN_TIMESTAMP_AT, ">i8")),
    "storeTimestamp": lambda maker: arrow.times(maker.located.store_timestamps),
    "bornHost": _Maker.born_host,
    "storeHost": _Maker.store_host,
    "msgId": _Maker.message_id,
    "tags": lambda maker: properties.tags(maker.strings),
    "keys": lambda maker: properties.keys(maker.strings),
    "sysFlag": lambda maker: arrow.numbers(maker.located.sys_flags, arrow.INT),
    "flag": lambda maker: maker.integer(FLAG_AT),
    "bodyCRC": lambda maker: maker.integer(BODY_CRC_AT),
    "reconsumeTimes": _Maker.reconsume_times,
    "preparedTransactionOffset": _Maker.prepared_transaction_offset,
    "properties": lambda maker: properties.maps(maker.strings),
    "body": _Maker.body,
    BROKEN: lambda maker: arrow.constant(None, len(maker.located), arrow.STRING),
}


def _decompressed(located: Located, row: int) -> bytes:
    start, end = int(located.body_starts[row]), int(located.body_ends[row])
    sys_flag = int(located.sys_flags[row])
    return bytes(decompress_body(located.raw[start:end].tobytes(), sys_flag, max_bytes=MAX_BODY_BYTES))


def _hosts(raw: Bytes, starts: Integers, is_v6: Booleans) -> Array:
    """Addresses and ports as text. Few are different, so only those are made."""
    if is_v6.any():
        sizes = np.where(is_v6, PACKED_V6_BYTES, PACKED_V4_BYTES)
        packed = (raw[start : start + size].tobytes() for start, size in zip(starts, sizes, strict=True))
        return arrow.of_list([_host_text(one) for one in packed], arrow.STRING)
    packed = gather(raw, starts, ">i8")
    if len(packed) and (packed == packed[0]).all():
        return arrow.constant(
            _host_text(raw[starts[0] : starts[0] + PACKED_V4_BYTES].tobytes()), len(packed), arrow.STRING
        )
    kinds, indices = arrow.by_kind(packed.astype(np.int64))
    return arrow.texts([_host_text(kind.to_bytes(8, "big", signed=True)) for kind in kinds], indices)


def _host_text(packed: bytes) -> str:
    return host_and_port(*unpack_host(packed))


def _hex(raw: Bytes, starts: Integers, size: int, places: Bytes) -> Array:
    """Offset ids: the packed host and the log offset in hex."""
    hosts = raw[starts[:, None] + np.arange(size)]
    packed = np.concatenate([hosts, places], axis=1)
    return arrow.fixed_texts(_HEX[packed].reshape(len(starts), 2 * packed.shape[1]))
