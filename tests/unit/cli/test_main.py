"""How the command line fails: one line, never a traceback."""

import sys
from pathlib import Path

import pytest

from tanist.cli.main import main


@pytest.mark.parametrize(
    ("folders", "words"), [((), "there is no store here"), (("commitlog", "checkpoint"), "checkpoint")]
)
def test_a_folder_that_can_not_be_read_is_told_in_one_line(
    folders: tuple[str, ...],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in folders:
        (tmp_path / name).mkdir()
    monkeypatch.setattr(sys, "argv", ["tanist", "store", "info", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tanist: ")
    assert words in line
