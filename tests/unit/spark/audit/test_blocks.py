"""Hashes of blocks, the tree over them, and the first difference."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.spark.arrow import Bytes
from tanist.spark.audit import blocks
from tanist.spark.audit.blocks import Difference, ReadRange, compare, leaf, leaves_of, root
from tests.support.spark_stores import as_array


def reader(data: bytes) -> ReadRange:
    raw = as_array(data)

    def read(log_offset: int, size: int) -> Bytes:
        return raw[log_offset : log_offset + size]

    return read


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 8)


def test_the_root_is_of_leaves_and_parents_that_can_not_be_mistaken() -> None:
    first, second, third = (leaf(as_array(text)) for text in (b"a", b"b", b"c"))
    pair = hashlib.sha256(b"\x01" + first + second).digest()

    assert first == hashlib.sha256(b"\x00a").digest()
    assert root([first]) == first
    assert root([first, second]) == pair
    assert root([first, second, third]) == hashlib.sha256(b"\x01" + pair + third).digest()


@settings(deadline=None)
@given(st.binary(min_size=1, max_size=60), st.data())
def test_one_flipped_bit_is_found_and_changes_the_root(data: bytes, draw: st.DataObject) -> None:
    place = draw.draw(st.integers(0, len(data) - 1))
    changed = bytearray(data)
    changed[place] ^= 1 << draw.draw(st.integers(0, 7))

    found = compare(reader(data), [reader(data), reader(bytes(changed))], 0, len(data))

    assert found.difference == Difference(place, data[place], changed[place], other=1)
    assert found.different_blocks == 1
    assert root(found.leaves) != root(list(leaves_of(reader(bytes(changed)), 0, len(data))))


def test_equal_logs_have_no_difference_and_one_root() -> None:
    data = bytes(range(50))

    found = compare(reader(data), [reader(data)], 3, 50)

    assert (found.difference, found.different_blocks, len(found.leaves)) == (None, 0, 6)
    assert list(found.leaves) == list(leaves_of(reader(data), 3, 50))


def test_a_log_that_ends_early_differs_where_it_ends() -> None:
    found = compare(reader(bytes(20)), [reader(bytes(12))], 0, 20)

    assert found.difference == Difference(12, 0, None)
    assert np.all([len(one) == 32 for one in found.leaves])
