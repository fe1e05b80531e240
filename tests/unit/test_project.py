"""What the files around the code say about each other."""

import re
import runpy
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import tanist

ROOT = Path(__file__).parents[2]
FOLDERS = (".ci", "bench", "docs", "newsfragments", "scripts", "src", "tests")

# A path of one machine, which nobody else has. After a letter or a dot it is the rest of some longer path.
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:home|root|work|Users)/\w+")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def package(requirement: str) -> str:
    """Reduce a requirement to the name of its package, spelt in the one way that can be compared."""
    name = re.match(r"[\w.-]+", requirement)
    assert name is not None, requirement
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def declared_packages() -> set[str]:
    pyproject: dict[str, Any] = tomllib.loads(read("pyproject.toml"))
    project = pyproject["project"]
    requirements = [*pyproject["build-system"]["requires"], *project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        requirements += extra
    return {package(requirement) for requirement in requirements} - {"tanist"}


def pins() -> list[str]:
    return [line for line in read("constraints.txt").splitlines() if not line.startswith("#")]


def make_commands(page: str) -> set[str]:
    """Find the targets that a page tells its reader to make, in a code block or between backticks."""
    return set(re.findall(r"(?:^\s*|`)make ([a-z-]+)", read(page), re.MULTILINE))


def texts() -> Iterator[tuple[str, str]]:
    """Give every text file of the project, with its name."""
    # Of another work tree of the same clone ``.git`` is a file, which names that clone.
    files = [path for path in ROOT.iterdir() if path.is_file() and path.name != ".git"]
    for folder in FOLDERS:
        files += [path for path in (ROOT / folder).rglob("*") if path.is_file()]
    for path in files:
        try:
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def test_every_dependency_is_pinned() -> None:
    assert declared_packages() - {package(pin) for pin in pins()} == set()


def test_the_constraints_are_exact_versions_and_nothing_else() -> None:
    assert [pin for pin in pins() if not re.fullmatch(r"[\w.-]+==[\w.]+", pin)] == []


def test_every_dependency_has_its_reason() -> None:
    cells = read("docs/adr/0001-dependencies.md").split("|")
    assert declared_packages() - {cell.strip() for cell in cells} == set()


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_every_make_command_of_the_page_exists(page: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))
    assert make_commands(page) - targets == set()


def test_the_readme_names_the_two_commands_that_are_enough() -> None:
    assert make_commands("README.md") >= {"run", "test"}


def test_the_setup_takes_the_pythons_that_the_package_takes() -> None:
    versions = runpy.run_path(str(ROOT / "scripts" / "setup.py"))["VERSIONS"]
    (major, newest), (_, oldest) = versions[0], versions[-1]
    assert f'requires-python = ">={major}.{oldest},<{major}.{newest + 1}"' in read("pyproject.toml")


def test_the_installed_package_is_this_one() -> None:
    assert tanist.__version__ == version("tanist")


def test_every_decision_is_in_the_index() -> None:
    linked = set(re.findall(r"\((\d{4}-[a-z0-9-]+\.md)\)", read("docs/adr/README.md")))
    assert linked == {path.name for path in (ROOT / "docs" / "adr").glob("[0-9]*.md")}


def test_no_text_names_a_path_of_one_machine() -> None:
    found = [f"{name}: {path}" for name, text in texts() for path in MACHINE_PATH.findall(text)]
    assert found == []
