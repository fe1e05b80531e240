import pytest

from tanist.spark.errors import SparkError
from tanist.spark.sink.options import check_columns, read_sink_options

GOOD = {"namesrv": "127.0.0.1:9876", "topic": "Orders"}


def test_the_options_of_a_write() -> None:
    options = read_sink_options(GOOD | {"checkpointLocation": "/x", "ShardingKey": "customer"})
    assert (options.topic, options.sharding_key, options.query) == ("Orders", "customer", None)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"namesrv": "127.0.0.1:9876"}, "option topic=None"),
        ({"topic": "Orders"}, "option namesrv=None"),
        (GOOD | {"topik": "x"}, "no option topik; did you mean topic"),
        (GOOD | {"queryId": "a/b"}, "letters, digits"),
        (GOOD | {"maxRowsPerSecond": "0"}, "a whole number of 1 or more"),
    ],
)
def test_bad_options_are_refused(given: dict[str, str], why: str) -> None:
    with pytest.raises(SparkError, match=why):
        read_sink_options(given)


def test_columns_that_a_source_has_may_come_along() -> None:
    check_columns([("body", "binary"), ("queueOffset", "bigint"), ("customer", "string")], "customer")


@pytest.mark.parametrize(
    ("fields", "key", "why"),
    [
        ([("bodi", "binary")], None, "no column bodi; did you mean body"),
        ([("topic", "string")], None, "column body is missing"),
        ([("body", "int")], None, "column body is int, and has to be binary or string"),
        ([("body", "binary"), ("tags", "int")], None, "column tags is int"),
        ([("body", "binary")], "customer", "no column customer"),
        ([("body", "binary"), ("customer", "int")], "customer", "a sharding key is string: cast it"),
    ],
)
def test_rows_that_can_not_be_written_are_refused(
    fields: list[tuple[str, str]], key: str | None, why: str
) -> None:
    with pytest.raises(SparkError, match=why):
        check_columns(fields, key)
