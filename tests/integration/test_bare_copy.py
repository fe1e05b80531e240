"""The bare copy that benchmarks set beside a slave's."""

from pathlib import Path

import pytest

from bench.bare_copy import copy_rate


def test_so_many_bytes_of_several_files_are_copied_and_nothing_is_left(tmp_path: Path) -> None:
    sources = [tmp_path / name for name in "abc"]
    for source in sources:
        source.write_bytes(bytes(5_000))
    assert copy_rate(sources, tmp_path / "copy", 7_000) > 0
    assert sorted(tmp_path.iterdir()) == sources


def test_more_bytes_than_there_are_can_not_be_copied(tmp_path: Path) -> None:
    source = tmp_path / "a"
    source.write_bytes(bytes(5_000))
    with pytest.raises(EOFError, match="1000 bytes too early"):
        copy_rate([source], tmp_path / "copy", 6_000)
