"""Passing records in C against the same in Python, over whole logs, cut ones and what is none."""

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tanist.protocol import record_heads
from tanist.protocol.record import MAGIC_V1, MAGIC_V2, MIN_RECORD_BYTES
from tanist.protocol.record_heads import RECORD_HEAD, pass_records

pytestmark = pytest.mark.partner("native")

_SIZES = st.integers(MIN_RECORD_BYTES - 2, MIN_RECORD_BYTES + 60)
_MAGICS = st.sampled_from([MAGIC_V1, MAGIC_V1, MAGIC_V1, MAGIC_V2, 0])
_SLIPS = st.sampled_from([0, 0, 0, 0, 1, -1])


@given(
    records=st.lists(st.tuples(_SIZES, _MAGICS, _SLIPS), max_size=8),
    start=st.integers(0, 2**62),
    cut=st.integers(0, 900),
    room=st.integers(0, 900),
)
@example(records=[(2**31 - 1, MAGIC_V1, 0)], start=0, cut=90, room=900)
@example(records=[(-5, MAGIC_V1, 0)], start=0, cut=90, room=900)
def test_c_passes_what_python_passes(
    records: list[tuple[int, int, int]], start: int, cut: int, room: int
) -> None:
    data, log_offset = b"", start
    for size, magic, slip in records:
        data += RECORD_HEAD.pack(size, magic, max(log_offset + slip, 0)).ljust(min(max(size, 0), 999), b"x")
        log_offset += size
    view = memoryview(data)[:cut]
    passed = pass_records(view, start, start + room)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_heads, "native", None)
        assert pass_records(view, start, start + room) == passed


def test_what_is_no_place_is_refused() -> None:
    native = pytest.importorskip("tanist.protocol._native")
    for wrong in ((b"", -1, 0), (b"", 0), (b"", "0", 0), (5, 0, 0), (b"", 0, struct)):
        with pytest.raises(TypeError):
            native.pass_records(*wrong)
