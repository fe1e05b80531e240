"""The columns of an archived message: those of the data sources, and a hash of its body."""

import hashlib
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

from tanist.spark.arrow import BINARY, Array
from tanist.spark.columns import COLUMNS, Column

TOPIC = "topic"
DATE = "date"
HASH = "hash"
HASH_BYTES = hashlib.sha256().digest_size

FILE_COLUMNS = (*(column for column in COLUMNS if column.name != TOPIC), Column(HASH, "binary", BINARY))
"""What stands in a file. The topic and the date stand in the names of the folders, and only there: some
readers refuse a column that they find in both places.
"""

ALL_COLUMNS = (COLUMNS[0], Column(DATE, "date", import_module("pyarrow").date32()), *FILE_COLUMNS)
"""What a reader sees who knows the folders."""

_pa: Any = import_module("pyarrow")


def schema() -> Any:
    """The columns of a file, as Arrow has them."""
    return _pa.schema([(column.name, column.arrow_type) for column in FILE_COLUMNS])


def hashes(bodies: Array) -> Array:
    """The SHA-256 of every body."""
    count = len(bodies)
    _, offsets, content = bodies.buffers()
    places = np.frombuffer(offsets, np.int32, count + 1, 4 * bodies.offset).tolist()
    view, sha256 = memoryview(content or b""), hashlib.sha256
    digests = b"".join([sha256(view[start:end]).digest() for start, end in pairwise(places)])
    ends = np.arange(count + 1, dtype=np.int32) * np.int32(HASH_BYTES)
    return _pa.Array.from_buffers(BINARY, count, [None, _pa.py_buffer(ends), _pa.py_buffer(digests)])
