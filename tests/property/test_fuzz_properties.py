"""No bytes at all make a decoder raise anything but its own error: what fuzzing kept, and random ones."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.fuzz_cover import CALLED, TRUSTED, imported_modules, reading_modules
from tests.support.fuzz_targets import CORPUS, TARGETS

KEPT = sorted(path for path in CORPUS.glob("*/*") if path.is_file())
EXAMPLES = 100


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_was_kept_is_read_or_refused(path: Path) -> None:
    TARGETS[path.parent.name](path.read_bytes())


def test_every_target_has_something_kept_to_begin_with() -> None:
    assert {path.parent.name for path in KEPT} == set(TARGETS)


def test_every_module_that_reads_bytes_has_a_target_or_a_reason_to_have_none() -> None:
    reading = reading_modules()
    assert reading - imported_modules() - CALLED.keys() == set(TRUSTED)
    assert set(CALLED) <= reading
    assert set(CALLED.values()) <= set(TARGETS)


@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes_are_read_or_refused(name: str) -> None:
    target = TARGETS[name]
    seeds = [path.read_bytes() for path in KEPT if path.parent.name == name]

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(st.sampled_from(seeds), st.binary(max_size=64), st.integers(0, 1 << 12), st.integers(0, 64))
    def read(seed: bytes, put: bytes, at: int, dropped: int) -> None:
        place = at % (len(seed) + 1)
        target(seed[:place] + put + seed[place + dropped :])
        target(put)

    read()
