"""The properties of many messages at once, read from the one string that each of them has.

The strings of a batch lie behind each other in one buffer. Where their separators stand is asked once for all
of them, and what follows is arithmetic: no message becomes a Python object. What counts is the same as in
``protocol.properties``: a segment without a name, a separator or a value does not, and of two equal names the
later one does. The three that have columns of their own are found in C (``_native``) where it was built.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tanist.model.property_names import KEYS, TAGS, UNIQ_KEY
from tanist.spark import arrow
from tanist.spark.arrow import Array, Bytes, Integers

try:
    from tanist.spark import _native as native
except ImportError:
    native = None

_WITH_COLUMNS = (TAGS, KEYS, UNIQ_KEY)
_NAME_END = 1
_VALUE_END = 2


class Segments(NamedTuple):
    """Every property that counts: whose it is, and where its name and its value lie."""

    raw: Bytes
    row_count: int
    rows: Integers
    starts: Integers
    name_ends: Integers
    ends: Integers


@dataclass(frozen=True)
class Strings:
    """The strings ``[start, end)`` of a buffer, one a message and in order; what is found in them is kept."""

    raw: Bytes
    starts: Integers
    ends: Integers

    @cached_property
    def segments(self) -> Segments:
        return find_segments(self.raw, self.starts, self.ends)

    @cached_property
    def values(self) -> dict[str, tuple[Bytes, Integers, Integers]]:
        """Where the values of the properties with columns lie in which buffer; -1 where there is none."""
        if native is None:
            return {name: self._value_of(name) for name in _WITH_COLUMNS}
        names = tuple(name.encode() for name in _WITH_COLUMNS)
        starts, ends = np.ascontiguousarray(self.starts), np.ascontiguousarray(self.ends)
        found = np.frombuffer(native.property_values(self.raw, starts, ends, names), np.int64)
        bounds = found.reshape(len(names), 2, len(starts))
        return {name: (self.raw, *places) for name, places in zip(_WITH_COLUMNS, bounds, strict=True)}

    def _value_of(self, name: str) -> tuple[Bytes, Integers, Integers]:
        segments = self.segments
        rows, which = _rows_with(segments, name.encode())
        starts, ends = np.full((2, len(self.starts)), -1, np.int64)
        starts[rows], ends[rows] = segments.name_ends[which] + 1, segments.ends[which]
        return segments.raw, starts, ends


def find_segments(raw: Bytes, starts: Integers, ends: Integers) -> Segments:
    """Cut the strings ``[start, end)``, which are in order, into properties."""
    row_count = len(starts)
    # Only what lies in a string is looked at: bodies are full of such bytes.
    flat, flat_starts = _together(raw, starts, ends)
    flat_ends = np.append(flat_starts[1:], len(flat)) if row_count else flat_starts
    closed = np.flatnonzero(flat == _VALUE_END)
    closed_rows = np.repeat(np.arange(row_count), np.diff(np.searchsorted(closed, flat_ends), prepend=0))
    # A string may lack its last separator: its end closes a segment all the same.
    open_rows = np.flatnonzero(flat_ends > flat_starts)
    open_rows = open_rows[flat[flat_ends[open_rows] - 1] != _VALUE_END]
    rows, segment_ends = closed_rows, closed
    if len(open_rows):
        rows = np.concatenate([closed_rows, open_rows])
        segment_ends = np.concatenate([closed, flat_ends[open_rows]])
        order = np.lexsort((segment_ends, rows))
        rows, segment_ends = rows[order], segment_ends[order]
    is_first = np.ones(len(rows), np.bool_)
    is_first[1:] = rows[1:] != rows[:-1]
    segment_starts = np.empty(len(rows), np.int64)
    segment_starts[1:] = segment_ends[:-1] + 1
    segment_starts[is_first] = flat_starts[rows[is_first]]
    name_ends = np.flatnonzero(flat == _NAME_END)
    is_plain = len(name_ends) == len(rows) and bool(
        ((segment_starts < name_ends) & (name_ends < segment_ends)).all()
    )
    if not is_plain:
        # Some segment has no name or several marks: only the first one in it counts.
        marks = np.append(name_ends, len(flat))
        name_ends = marks[np.searchsorted(marks, segment_starts)]
    counts = (name_ends > segment_starts) & (name_ends + 1 < segment_ends)
    return Segments(
        flat, row_count, rows[counts], segment_starts[counts], name_ends[counts], segment_ends[counts]
    )


def unique_keys(strings: Strings) -> Array:
    return _column_of(strings, UNIQ_KEY)


def tags(strings: Strings) -> Array:
    return _column_of(strings, TAGS)


def keys(strings: Strings) -> Array:
    return _column_of(strings, KEYS)


def _column_of(strings: Strings, name: str) -> Array:
    """The values of one property; nothing where a message has it not."""
    raw, starts, ends = strings.values[name]
    rows = np.flatnonzero(starts >= 0)
    if len(rows) == len(starts):
        return arrow.pieces(raw, starts, ends, arrow.STRING)
    return arrow.some(arrow.pieces(raw, starts[rows], ends[rows], arrow.STRING), rows, len(starts))


def maps(strings: Strings) -> Array:
    """All properties as maps. Equal names do not come twice in one."""
    segments = strings.segments
    names = arrow.pieces(segments.raw, segments.starts, segments.name_ends, arrow.STRING)
    values = arrow.pieces(segments.raw, segments.name_ends + 1, segments.ends, arrow.STRING)
    counts = np.bincount(segments.rows, minlength=segments.row_count)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    found = arrow.maps(offsets, names, values)
    repeats = _rows_with_repeats(segments, names)
    pairs = found.take(arrow.of_list([int(row) for row in repeats], arrow.BIGINT)).to_pylist()
    return arrow.replaced(found, repeats, [list(dict(row).items()) for row in pairs])


def _together(raw: Bytes, starts: Integers, ends: Integers) -> tuple[Bytes, Integers]:
    """These pieces behind each other, and where each begins."""
    found = arrow.pieces(raw, starts, ends, arrow.BINARY)
    _, offsets, content = found.buffers()
    flat_starts = np.frombuffer(offsets, np.int32, len(found) + 1).astype(np.int64)
    flat = np.frombuffer(content, np.uint8) if content is not None else np.empty(0, np.uint8)
    return flat[: flat_starts[-1]], flat_starts[:-1]


def _rows_with(segments: Segments, name: bytes) -> tuple[Integers, Integers]:
    """The rows that have a property, and which segment it is: the last one, if a row has several."""
    which = np.flatnonzero(segments.name_ends - segments.starts == len(name))
    starts = segments.starts[which]
    matches = np.ones(len(which), np.bool_)
    for position, byte in enumerate(name):
        matches &= segments.raw[starts + position] == byte
    which = which[matches]
    rows = segments.rows[which]
    is_last = np.ones(len(rows), np.bool_)
    is_last[:-1] = rows[1:] != rows[:-1]
    return rows[is_last], which[is_last]


def _rows_with_repeats(segments: Segments, names: Array) -> Integers:
    """The rows in which a name comes twice."""
    numbers = np.asarray(names.dictionary_encode().indices, np.int64)
    if not len(numbers):
        return np.empty(0, np.int64)
    keyed = np.sort(segments.rows * (numbers.max() + 1) + numbers)
    repeated = keyed[1:][keyed[1:] == keyed[:-1]]
    return np.unique(repeated // (numbers.max() + 1))
