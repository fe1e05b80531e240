"""pyarrow as we use it: the few steps that make columns of numbers and of pieces of a buffer.

pyarrow tells no types, so everything of it stays behind this module: what comes out is an ``Array``.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

_pa: Any = import_module("pyarrow")

Array: TypeAlias = Any
"""A column: ``pyarrow.Array``."""
ArrowType: TypeAlias = Any
RecordBatch: TypeAlias = Any
Bytes: TypeAlias = npt.NDArray[np.uint8]
Integers: TypeAlias = npt.NDArray[np.int64]
Booleans: TypeAlias = npt.NDArray[np.bool_]

STRING: ArrowType = _pa.string()
BINARY: ArrowType = _pa.binary()
INT: ArrowType = _pa.int32()
BIGINT: ArrowType = _pa.int64()
TIMESTAMP: ArrowType = _pa.timestamp("us", tz="UTC")
STRINGS_BY_STRING: ArrowType = _pa.map_(STRING, STRING)

_US_PER_MS = 1000


def batch(columns: Mapping[str, Array]) -> RecordBatch:
    """These columns as one batch, in this order."""
    return _pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def numbers(values: npt.NDArray[Any], kind: ArrowType, is_null: Booleans | None = None) -> Array:
    """A column of numbers."""
    native = values.astype(np.int32 if kind == INT else np.int64, copy=False)
    return _pa.array(native, type=kind, mask=is_null)


def times(values_ms: npt.NDArray[Any]) -> Array:
    """A column of times, given in milliseconds."""
    return _pa.array(values_ms.astype(np.int64) * _US_PER_MS).cast(TIMESTAMP)


def pieces(raw: Bytes, starts: Integers, ends: Integers, kind: ArrowType) -> Array:
    """A column of the pieces ``[start, end)`` of a buffer.

    To Arrow every other piece is one we want and the others are what lies between them: so it takes them
    over in one step, without a Python object for each. The pieces have to be in order and apart.
    """
    count = len(starts)
    offsets = np.empty(2 * count + 1, np.int32)
    offsets[0:-1:2] = starts
    offsets[1::2] = ends
    offsets[-1] = ends[-1] if count else 0
    buffers = [None, _pa.py_buffer(offsets), _pa.py_buffer(raw)]
    found = _pa.Array.from_buffers(BINARY, 2 * count, buffers).take(_pa.array(np.arange(0, 2 * count, 2)))
    return as_text(found) if kind == STRING else found


def as_text(found: Array) -> Array:
    """A column of bytes as text. Bytes that are not UTF-8 are replaced, as everywhere."""
    try:
        return found.cast(STRING)
    except _pa.ArrowInvalid:
        texts = (None if raw is None else raw.decode("utf-8", "replace") for raw in found.to_pylist())
        return _pa.array(list(texts), STRING)


def are_text(raw: Bytes, starts: Integers, ends: Integers) -> Booleans:
    """Which of the pieces of a buffer are UTF-8; almost always all of them."""
    found = pieces(raw, starts, ends, BINARY)
    try:
        found.cast(STRING)
    except _pa.ArrowInvalid:
        return np.array([_is_text(piece) for piece in found.to_pylist()], np.bool_)
    return np.ones(len(starts), np.bool_)


def _is_text(piece: bytes) -> bool:
    try:
        piece.decode()
    except UnicodeDecodeError:
        return False
    return True


def some(found: Array, rows: Integers, count: int) -> Array:
    """A column of ``count`` rows with these values in some of them, and nothing in the others."""
    index = np.full(count, -1, np.int64)
    index[rows] = np.arange(len(rows))
    return found.take(_pa.array(index, mask=index < 0))


def replaced(found: Array, rows: Integers, values: Sequence[Any]) -> Array:
    """The same column with other values in some rows."""
    if not len(rows):
        return found
    index = np.arange(len(found))
    index[rows] = len(found) + np.arange(len(rows))
    return _pa.concat_arrays([found, _pa.array(list(values), found.type)]).take(_pa.array(index))


def filled(found: Array, other: Array) -> Array:
    """The same column with the other's value wherever it has none."""
    return import_module("pyarrow.compute").coalesce(found, other)


def is_in(found: Array, values: Sequence[str]) -> Booleans:
    """Which rows have one of these values; those without any have not."""
    kept = import_module("pyarrow.compute").is_in(found, value_set=_pa.array(values, found.type))
    return kept.to_numpy(zero_copy_only=False).astype(np.bool_)


def by_kind(values: npt.NDArray[np.int64]) -> tuple[list[int], Array]:
    """The different values, and for each row the number of its own."""
    encoded = _pa.array(values).dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices


def texts(values: Sequence[str], indices: Array) -> Array:
    """A column of few different texts, each row with the number of its own."""
    return _pa.array(values, STRING).take(indices)


def constant(value: str | int | None, count: int, kind: ArrowType) -> Array:
    if value is None:
        return _pa.nulls(count, kind)
    return _pa.repeat(_pa.scalar(value, kind), count)


def of_list(values: Sequence[Any], kind: ArrowType) -> Array:
    return _pa.array(list(values), kind)


def maps(offsets: Integers, keys: Array, values: Array) -> Array:
    """A column of maps: those of row n lie from ``offsets[n]`` to ``offsets[n + 1]``."""
    return _pa.MapArray.from_arrays(_pa.array(offsets.astype(np.int32)), keys, values)


def fixed_texts(characters: npt.NDArray[np.uint8]) -> Array:
    """A column of texts of one length, given as a row of ASCII characters each."""
    count, length = characters.shape
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(length)
    flat = np.ascontiguousarray(characters)
    return _pa.Array.from_buffers(STRING, count, [None, _pa.py_buffer(offsets), _pa.py_buffer(flat)])
