"""The columns that a message has in Spark, named as RocketMQ's MessageExt names them."""

from collections.abc import Iterable
from typing import NamedTuple

from tanist.spark.arrow import BIGINT, BINARY, INT, STRING, STRINGS_BY_STRING, TIMESTAMP, ArrowType
from tanist.spark.errors import SparkError, UnknownName

PROPERTIES = "properties"
BODY = "body"
BROKEN = "broken"
EPOCH = "epoch"


class Column(NamedTuple):
    """One column: its name, and its type as Spark and as Arrow call it."""

    name: str
    spark_type: str
    arrow_type: ArrowType


COLUMNS = (
    Column("topic", "string", STRING),
    Column("brokerName", "string", STRING),
    Column("queueId", "int", INT),
    Column("queueOffset", "bigint", BIGINT),
    Column("commitLogOffset", "bigint", BIGINT),
    Column("storeSize", "int", INT),
    Column(EPOCH, "int", INT),
    Column("bornTimestamp", "timestamp", TIMESTAMP),
    Column("storeTimestamp", "timestamp", TIMESTAMP),
    Column("bornHost", "string", STRING),
    Column("storeHost", "string", STRING),
    Column("msgId", "string", STRING),
    Column("tags", "string", STRING),
    Column("keys", "string", STRING),
    Column("sysFlag", "int", INT),
    Column("flag", "int", INT),
    Column("bodyCRC", "int", INT),
    Column("reconsumeTimes", "int", INT),
    Column("preparedTransactionOffset", "bigint", BIGINT),
    Column(PROPERTIES, "map<string,string>", STRINGS_BY_STRING),
    Column(BODY, "binary", BINARY),
)
"""What a message has, wherever it is read from."""

FILE_COLUMNS = (*COLUMNS, Column(BROKEN, "string", STRING))
"""In files a message may be broken as well: then that is said, and where; nothing else of it is known."""


def ddl(columns: Iterable[Column], *, with_properties: bool) -> str:
    """The schema that a source has of itself, as Spark reads it."""
    wanted = (column for column in columns if with_properties or column.name != PROPERTIES)
    return ", ".join(f"{column.name} {column.spark_type}" for column in wanted)


def chosen(columns: Iterable[Column], wanted: Iterable[tuple[str, str]]) -> tuple[Column, ...]:
    """The columns of a schema that the user gave, as names and types. Only those will be decoded."""
    known = {column.name: column for column in columns}
    found: list[Column] = []
    for name, spark_type in wanted:
        if name not in known:
            raise UnknownName("column", name, known)
        if spark_type != known[name].spark_type:
            raise SparkError(f"column {name} is {known[name].spark_type}, and the schema says {spark_type}")
        found.append(known[name])
    return tuple(found)
