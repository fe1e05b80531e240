from typing import Any

import pytest

from tanist.protocol.properties import decode_properties
from tanist.spark import arrow
from tanist.spark.errors import SparkError
from tanist.spark.sink.rows import rows_of


def _batch(**columns: list[Any]) -> Any:
    types = {"properties": arrow.STRINGS_BY_STRING, "flag": arrow.INT}
    return arrow.batch(
        {name: arrow.of_list(values, types.get(name, arrow.STRING)) for name, values in columns.items()}
    )


def test_a_row_becomes_a_body_and_properties_in_one_order() -> None:
    batch = _batch(
        body=["text", "other"],
        tags=["paid", None],
        keys=["k1 k2", None],
        flag=[7, None],
        properties=[
            [("b", "2"), ("a", "1"), ("UNIQ_KEY", "x"), ("WRITE_ID", "y"), ("RETRY_TOPIC", "t")],
            None,
        ],
        customer=["c1", "c2"],
    )
    first, second = rows_of(batch, "customer", "Orders")
    assert (first.body, first.flag, first.sharding_key) == (b"text", 7, "c1")
    assert list(decode_properties(first.properties).items()) == [
        ("TAGS", "paid"),
        ("KEYS", "k1 k2"),
        ("__SHARDINGKEY", "c1"),
        ("a", "1"),
        ("b", "2"),
    ]
    assert decode_properties(second.properties) == {"__SHARDINGKEY": "c2"}
    again = next(rows_of(batch, None, "%RETRY%group"))
    assert decode_properties(again.properties)["RETRY_TOPIC"] == "t"


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"body": [None]}, "no body"),
        ({"body": ["x"], "customer": [None]}, "no customer"),
        ({"body": ["x"], "customer": ["c"], "tags": ["a\x02b"]}, "control characters"),
    ],
)
def test_what_a_message_can_not_have_is_refused(columns: dict[str, list[Any]], why: str) -> None:
    key = "customer" if "customer" in columns else None
    with pytest.raises(SparkError, match=why):
        list(rows_of(_batch(**columns), key, "Orders"))
