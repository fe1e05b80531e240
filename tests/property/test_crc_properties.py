"""The checksum in C against zlib's, over sizes around each of its steps."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.partner("native")

_U32 = st.integers(0, 2**32 - 1)


@given(st.binary(max_size=400), _U32)
def test_the_crc_is_zlibs_at_any_size_going_on_from_any_other(data: bytes, value: int) -> None:
    native = pytest.importorskip("tanist.protocol._native")
    assert native.crc32(data) == zlib.crc32(data)
    assert native.crc32(data, value) == zlib.crc32(data, value)


@given(st.binary(min_size=1, max_size=64), st.integers(0, 70_000), st.integers(0, 70), _U32)
def test_a_view_that_begins_anywhere_has_the_same_crc(
    pattern: bytes, size: int, start: int, value: int
) -> None:
    native = pytest.importorskip("tanist.protocol._native")
    view = memoryview(pattern * (size // len(pattern) + 2))[start : start + size]
    assert native.crc32(view, value) == zlib.crc32(view, value)


def test_what_is_no_data_has_no_crc() -> None:
    native = pytest.importorskip("tanist.protocol._native")
    for wrong in ((), ("text",), (b"data", "0"), (b"data", 0, 0), (memoryview(b"every second")[::2],)):
        with pytest.raises((TypeError, BufferError)):
            native.crc32(*wrong)
