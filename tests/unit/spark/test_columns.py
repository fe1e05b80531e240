"""The columns: what Spark is told and what it gets agree, and a schema chooses among them."""

from typing import Any, cast

import pytest
from pyspark.sql.pandas.types import to_arrow_schema  # pyright: ignore[reportUnknownVariableType]
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tanist.spark.columns import FILE_COLUMNS, chosen, ddl
from tanist.spark.decoding import locate, walk
from tanist.spark.errors import SparkError, UnknownName
from tanist.spark.making import Broken, Origin, make_batch, make_broken
from tests.support.messages import make_message
from tests.support.spark_stores import as_array, lay_out

TYPES: dict[str, DataType] = {
    "string": StringType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "timestamp": TimestampType(),
    "map<string,string>": MapType(StringType(), StringType()),
    "binary": BinaryType(),
}
"""How Spark reads the types of our schema; to have it read them here would take a session."""


def test_batches_have_the_very_schema_that_spark_asks_for() -> None:
    """Spark refuses a batch whose types, names or order differ in the least."""
    told = StructType([StructField(one.name, TYPES[one.spark_type]) for one in FILE_COLUMNS])
    raw = as_array(lay_out([make_message(0)]))
    located, _ = locate(raw, walk(raw, 0, len(raw)).starts, walk(raw, 0, len(raw)).starts)

    expected = cast("Any", to_arrow_schema(told, timezone="UTC"))
    assert make_batch(located, FILE_COLUMNS, Origin()).schema.equals(expected)
    assert make_broken(Broken(5, 7, "why"), FILE_COLUMNS).schema.equals(expected)


def test_properties_come_only_if_they_are_asked_for() -> None:
    assert "properties" not in ddl(FILE_COLUMNS, with_properties=False)


def test_a_schema_chooses_columns_in_its_own_order() -> None:
    found = chosen(FILE_COLUMNS, [("queueOffset", "bigint"), ("topic", "string")])

    assert [column.name for column in found] == ["queueOffset", "topic"]


def test_a_column_that_there_is_not_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UnknownName, match="no column queueOfset; did you mean queueOffset"):
        chosen(FILE_COLUMNS, [("queueOfset", "bigint")])


def test_a_column_of_another_type_is_refused() -> None:
    with pytest.raises(SparkError, match="column queueId is int, and the schema says bigint"):
        chosen(FILE_COLUMNS, [("queueId", "bigint")])
