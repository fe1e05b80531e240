"""Which twin takes the sends is chosen at the start, and said."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tanist.compiled import KEY
from tests.support.partners import require
from tests.support.tanist_cluster import BrokerProcess

_NOBODY = "127.0.0.1:9"
_LOOK = """
from tanist.broker import lane, quick_send
from tanist.protocol import crc, header_json, key_index, layout
from tanist.store import dispatch, plain_records
parts = (lane.engine, quick_send.native, header_json.native, key_index.native, layout.native)
print([part for part in (*parts, crc.native, dispatch.native, plain_records.native) if part is not None])
"""


def test_the_python_twin_has_no_part_in_c() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOOK], env={**os.environ, KEY: "python"}, capture_output=True, check=True
    )
    assert done.stdout == b"[]\n"


def test_a_broker_says_that_c_takes_the_sends(tmp_path: Path) -> None:
    require("native")
    with BrokerProcess(tmp_path, _NOBODY) as broker:
        assert "sends are taken by engine=compiled" in broker.process.output()


def test_a_broker_says_why_python_takes_the_sends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "python")
    with BrokerProcess(tmp_path, _NOBODY) as broker:
        assert "sends are taken by engine=python reason='TANIST_ENGINE=python" in broker.process.output()
