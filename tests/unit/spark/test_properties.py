"""Properties of many messages at once: the same as one by one."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tanist.model.property_names import KEYS, TAGS, UNIQ_KEY
from tanist.protocol.properties import decode_properties
from tanist.spark import properties
from tanist.spark.properties import Strings
from tests.support.spark_stores import as_array

pytestmark = pytest.mark.usefixtures("twin")

pieces = st.sampled_from(
    [b"\x01", b"\x02", b"TAGS", b"KEYS", b"UNIQ_KEY", b"a", b"value", "ü".encode(), b" "]
)
strings = st.lists(pieces, max_size=8).map(b"".join)


def strings_of(rows: list[bytes]) -> Strings:
    """The rows with something between them, as bodies lie between the properties of records."""
    data, starts = b"\x02\x01", list[int]()
    for row in rows:
        starts.append(len(data))
        data += row + b"\x01TAGS\x01\x02"
    ends = [start + len(row) for start, row in zip(starts, rows, strict=True)]
    return properties.Strings(as_array(data), np.array(starts, np.int64), np.array(ends, np.int64))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(strings, max_size=6))
def test_every_string_is_read_as_it_is_alone(rows: list[bytes]) -> None:
    strings = strings_of(rows)
    expected = [decode_properties(row) for row in rows]

    assert [dict(row) for row in properties.maps(strings).to_pylist()] == expected
    assert properties.tags(strings).to_pylist() == [one.get(TAGS) for one in expected]
    assert properties.keys(strings).to_pylist() == [one.get(KEYS) for one in expected]
    assert properties.unique_keys(strings).to_pylist() == [one.get(UNIQ_KEY) for one in expected]


def test_of_equal_names_the_last_with_a_value_counts_and_comes_once() -> None:
    strings = strings_of([b"TAGS\x01a\x02TAGS\x01b\x02TAGS\x01\x02"])

    assert properties.tags(strings).to_pylist() == ["b"]
    assert properties.maps(strings).to_pylist() == [[("TAGS", "b")]]


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert properties.tags(strings_of([b"TAGS\x01\xff\x02", b"TAGS\x01x\x02"])).to_pylist() == [
        "\ufffd",
        "x",
    ]
