"""Writes that are made once: how a record of one is named, and how a run of them is announced.

A job that writes, one of Spark for instance, is a *query*. It writes batch after batch; a batch has
partitions, and the rows of a partition are counted from 0. So ``query/batch/partition/index`` names a record
for ever, and a job that repeats a batch gives its records the same names. The *sum* of a record is a checksum
over it and all records before it of the same partition that went to the same queue: it tells whether the rows
of a repeated partition are still the same, and in the same order.
"""

import re
from typing import NamedTuple, Self

import msgspec

WRITE_ID = "WRITE_ID"
"""The property that names the record: ``query/batch/partition/index``."""
WRITE_SUM = "WRITE_SUM"
"""The property that has the sum up to the record, in hexadecimal."""
WRITE_RUN = "writeRun"
"""The field of a send that says which run of a write its batch is."""

BEFORE_FIRST = -1
"""The index before the first one."""

_QUERY = re.compile(r"[A-Za-z0-9_.\-]{1,64}")
_COUNT_MAX = (1 << 63) - 1


def is_query(text: str) -> bool:
    """Whether a query may go by this name."""
    return _QUERY.fullmatch(text) is not None


class WriteId(msgspec.Struct, frozen=True, gc=False):
    """The name of one record."""

    query: str
    batch: int
    partition: int
    index: int

    def __str__(self) -> str:
        return f"{self.query}/{self.batch}/{self.partition}/{self.index}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError if it is none."""
        query, *numbers = text.split("/")
        if not is_query(query) or len(numbers) != 3:
            raise ValueError(f"{text!r} is not query/batch/partition/index")
        return cls(query, *map(_count, numbers))


class WriteRun(NamedTuple):
    """Records of one partition that follow each other in one queue, as their writer announces them."""

    query: str
    batch: int
    partition: int
    previous: int
    """The index of the record before the run in this queue; BEFORE_FIRST: there is none in this batch."""
    last: int
    sum_before: int
    sum: int
    """Up to and with the last one."""

    def __str__(self) -> str:
        return "/".join(map(str, self))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError if it is none."""
        query, *texts = text.split("/")
        if not is_query(query) or len(texts) != len(cls._fields) - 1:
            raise ValueError(f"{text!r} is no run of a write")
        batch, partition, previous, last, sum_before, total = map(int, texts)
        if min(batch, partition, last, sum_before, total) < 0 or not BEFORE_FIRST <= previous < last:
            raise ValueError(f"{text!r} is no run of a write")
        if max(batch, partition, last, sum_before, total) > _COUNT_MAX:
            raise ValueError(f"{text!r} has a number that is too large")
        return cls(query, batch, partition, previous, last, sum_before, total)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) > _COUNT_MAX:
        raise ValueError(f"{text!r} is no count")
    return int(text)
