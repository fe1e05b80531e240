"""The C twin puts keys into a file of the index as Python does, or leaves them to Python."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.protocol import key_index
from tanist.protocol.key_index import HEADER_BYTES, INDEX_ENTRY_BYTES, SLOT_BYTES, Keyed, put_keys

pytestmark = pytest.mark.partner("native")

_times = st.integers(0, 1 << 45) | st.integers(1_700_000_000_000, 1_700_000_100_000)
_keys = st.tuples(st.integers(0, (1 << 31) - 1) | st.integers(0, 9), st.integers(0, 1 << 50), _times)
_odd_keys = st.tuples(st.integers(-(1 << 33), 1 << 33), st.integers(-(1 << 65), 1 << 65), st.integers(-9, 9))


def _put(keyed: list[Keyed], slot_count: int, first: int, begin_ms: int) -> tuple[bytes, int] | str:
    file = bytearray(HEADER_BYTES + slot_count * SLOT_BYTES + (first + len(keyed)) * INDEX_ENTRY_BYTES)
    try:
        # Twice: the second time the slots lead somewhere.
        put_keys(file, keyed[:1], slot_count=slot_count, first=first, begin_timestamp_ms=begin_ms)
        used = put_keys(file, keyed, slot_count=slot_count, first=first, begin_timestamp_ms=begin_ms)
    except struct.error:
        return "refused"
    return bytes(file), used


@given(
    st.lists(_keys | _odd_keys, min_size=1, max_size=20) | st.lists(_keys, min_size=1, max_size=20),
    st.integers(1, 7),
    st.integers(1, 5),
    _times,
)
def test_keys_are_put_alike(keyed: list[Keyed], slot_count: int, first: int, begin_ms: int) -> None:
    quick = _put(keyed, slot_count, first, begin_ms)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_index, "native", None)
        assert _put(keyed, slot_count, first, begin_ms) == quick


def test_keys_that_have_no_room_or_are_none_are_left_alone_as_a_whole() -> None:
    native = pytest.importorskip("tanist.protocol._native")
    good: list[Keyed] = [(5, 100, 1000), (6, 200, 2000)]
    size = HEADER_BYTES + 3 * SLOT_BYTES + 3 * INDEX_ENTRY_BYTES
    for file, keyed, slot_count, first in (
        (bytearray(size - 1), good, 3, 1),
        (bytearray(size), good, 4, 1),
        (bytearray(size), good, 0, 1),
        (bytearray(size), good, 3, 2),
        (bytearray(size), good, 3, -1),
        (bytearray(size), [*good[:1], (-1, 200, 2000)], 3, 1),
        (bytearray(size), [*good[:1], (6, 200)], 3, 1),
        (bytearray(size), [*good[:1], None], 3, 1),
        (bytes(size), good, 3, 1),
    ):
        assert native.put_keys(file, keyed, slot_count, first, 0) is None
        assert not any(file)
    assert native.put_keys(bytearray(size), good, 3, 1, 0) == 2
    with pytest.raises(TypeError, match="are needed"):
        native.put_keys(bytearray(size), tuple(good), 3, 1, 0)
