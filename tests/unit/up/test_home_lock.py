"""A folder that processes of an earlier start still work in is not started in again."""

import os
import subprocess
from pathlib import Path

import pytest

from tanist.up.home_lock import HomeTaken, locked_home


def test_a_child_that_outlives_its_parent_holds_the_folder_and_is_named(tmp_path: Path) -> None:
    with locked_home(tmp_path) as lock:
        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=(lock,))
    with child:
        try:
            with pytest.raises(HomeTaken, match=f"kill {child.pid}$"), locked_home(tmp_path):
                pass
        finally:
            child.kill()
    with locked_home(tmp_path) as lock:
        assert not os.get_inheritable(lock)
