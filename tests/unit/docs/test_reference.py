"""The pages that are made from the code are those that the code would make now."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("script", ["reference_config", "reference_metrics"])
def test_the_page_is_current(script: str) -> None:
    command = [sys.executable, ROOT / "scripts" / f"{script}.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"write it again: python scripts/{script}.py\n{done.stderr}"
