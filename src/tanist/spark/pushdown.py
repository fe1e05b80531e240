"""Filters, taken where Spark hands them down and not missed where it does not.

Spark hands filters down only if ``spark.sql.python.filterPushdown.enabled`` is set, which by default it is
not, and while it is not, Spark refuses a reader that could take some. A reader can not ask for the setting.
But Spark tells such readers by one thing alone: whether the function behind ``pushFilters`` is the one that
all readers inherit. So ours shows that one, and a read works with either setting.
"""

from collections.abc import Iterable
from typing import Any

from pyspark.sql.datasource import DataSourceReader, Filter


class _Taken:
    """Called as ``pushFilters`` is; to whoever looks it is the inherited one."""

    __func__: Any = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, reader: "PushesDown") -> None:
        self._reader = reader

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        self._reader.take_filters(filters)
        # All of them are given back: Spark applies them once more, to the few rows that are left.
        return filters


class PushesDown:
    """What a reader inherits first so that it is told of filters."""

    def __init__(self) -> None:
        self.pushFilters = _Taken(self)

    def take_filters(self, filters: Iterable[Filter]) -> None:
        raise NotImplementedError
