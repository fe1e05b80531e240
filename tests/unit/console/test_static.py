"""What browsers load comes from packages whose version, licence and hash are known, and from nowhere else."""

import hashlib
import json
import re
from pathlib import Path

import pytest

import tanist.console.web

WEB = Path(tanist.console.web.__file__).parent
VENDOR = WEB / "static" / "vendor"
VERSIONS = json.loads((VENDOR / "versions.json").read_text())


def test_every_file_of_others_is_as_its_package_has_it() -> None:
    files = {path.name for path in VENDOR.iterdir()} - {"versions.json"}
    assert files == VERSIONS.keys()
    found = {name: hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() for name in files}
    assert found == {name: entry["sha256"] for name, entry in VERSIONS.items()}


def test_every_package_has_its_licence_beside_it() -> None:
    licensed = {entry["package"] for name, entry in VERSIONS.items() if name.endswith(".LICENSE")}
    assert {entry["package"] for entry in VERSIONS.values()} == licensed


@pytest.mark.parametrize("path", sorted(WEB.glob("templates/*.html")), ids=lambda path: path.name)
def test_a_template_loads_nothing_from_elsewhere_and_runs_nothing_inline(path: Path) -> None:
    text = path.read_text()
    for address in re.findall(r'(?:src|href|action)="([^"]*)"', text):
        assert address.startswith(("/", "#", "{{")), address
        assert not address.startswith("//")
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:|\|\s*safe", text)
    assert not re.search(r"<script(?![^>]*\ssrc=)", text)
