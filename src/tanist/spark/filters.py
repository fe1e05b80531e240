"""Reads the filters that Spark hands down. Spark applies them all itself too: here they only save work."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from tanist.spark.wanted import Bounds, Wanted

_NUMBERS = {"queueOffset": "queue_offsets", "commitLogOffset": "log_offsets", "storeTimestamp": "store_us"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ALL = Bounds()

_BOUNDS: dict[type[Filter], Callable[[int], tuple[int, int]]] = {
    EqualTo: lambda value: (value, value),
    EqualNullSafe: lambda value: (value, value),
    GreaterThan: lambda value: (value + 1, _ALL.most),
    GreaterThanOrEqual: lambda value: (value, _ALL.most),
    LessThan: lambda value: (_ALL.least, value - 1),
    LessThanOrEqual: lambda value: (_ALL.least, value),
}


def narrowed(wanted: Wanted, filters: Iterable[Filter]) -> Wanted:
    """What is wanted if all of these filters have to hold as well."""
    for one in filters:
        wanted = _narrowed_by(wanted, one)
    return wanted


def _narrowed_by(wanted: Wanted, one: Filter) -> Wanted:
    # Each class of filter has these two by its own declaration, and not by a common one.
    path: tuple[str, ...] = getattr(one, "attribute", ())
    value: Any = getattr(one, "value", None)
    name = path[0] if len(path) == 1 else ""
    if value is None:
        return wanted
    if name in _NUMBERS and type(one) in _BOUNDS:
        return wanted.narrowed(_NUMBERS[name], *_BOUNDS[type(one)](_number(value)))
    if name in _NUMBERS and isinstance(one, In) and None not in value:
        numbers = [_number(each) for each in value]
        return wanted.narrowed(_NUMBERS[name], min(numbers), max(numbers))
    values: frozenset[Any] | None = None
    if isinstance(one, EqualTo | EqualNullSafe):
        values = frozenset([value])
    elif isinstance(one, In):
        values = frozenset(value)
    if values is not None and name == "topic":
        return wanted.of_topics(values)
    if values is not None and name == "queueId":
        return wanted.of_queues(values)
    return wanted


def _number(value: Any) -> int:
    if isinstance(value, datetime):
        return (value - _EPOCH) // timedelta(microseconds=1)
    return int(value)
