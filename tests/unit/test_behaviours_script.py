"""The script that counts behaviours, run on a small project of its own, and the parser it rests on."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.support.behaviours import PAGE, Behaviour, parse_page, read_page

ROOT = PAGE.parents[1]
FILES = ("docs/behaviours.md", "scripts/behaviours.py", "tests/support/behaviours.py")
SETTINGS = """
[tool.pytest.ini_options]
pythonpath = ["."]
addopts = ["-ra", "--strict-markers", "--import-mode=importlib"]
filterwarnings = ["error"]
markers = ["behaviour(id): ties a test to a row"]
"""
MARKED = """
import pytest
pytestmark = pytest.mark.behaviour("S1-1")

@pytest.mark.behaviour("S1-2", "S1-3")
def test_function(): ...

@pytest.mark.behaviour("S2-1")
class TestClass:
    def test_method(self): ...

@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.behaviour("S3-1"))])
def test_case(n): ...

@pytest.mark.behaviour("S4-1")
def not_a_test(): ...

@pytest.mark.skip
@pytest.mark.behaviour("S4-2")
def test_never_run(): ...

@pytest.mark.xfail
@pytest.mark.behaviour("S4-3")
def test_that_fails(): assert False
"""
MISSPELT = """
import pytest

@pytest.mark.behaviour("S9-99")
def test_of_nothing(): ...
"""


class Project:
    """A project as small as the script needs it, with the real page."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.page = root / "docs" / "behaviours.md"
        for name in FILES:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)
        self.write("pyproject.toml", SETTINGS)
        self.write("tests/conftest.py", 'pytest_plugins = ["tests.support.behaviours"]\n')
        for package in ("tests", "tests/support"):
            self.write(f"{package}/__init__.py", "")

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text, encoding="utf-8")

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        command = (sys.executable, *command)
        return subprocess.run(command, cwd=self.root, capture_output=True, text=True, timeout=60, check=False)

    def count(self, *options: str) -> subprocess.CompletedProcess[str]:
        return self.run("scripts/behaviours.py", *options)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_rows_are_read_with_their_group_and_everything_else_is_prose() -> None:
    prose = "| S1-9 | not in a group | - |\n## B. Reports\n\nText.\n\n| id | statement | x |\n"
    page = prose + "| S1-51 | It is 8 bytes. | - |\n"
    assert parse_page(page) == [Behaviour("S1-51", "It is 8 bytes.", "B", "Reports")]


def test_the_page_has_all_behaviours_in_their_groups() -> None:
    groups = Counter(behaviour.group for behaviour in read_page().values())
    sizes = [29, 48, 27, 18, 43, 11, 22, 15, 18, 11, 20, 13, 15, 21, 13]
    assert groups == dict(zip("ABCDEFGHIJKLMNO", sizes, strict=True))


def test_a_page_that_lost_a_row_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "behaviours.md"
    page.write_text(PAGE.read_text(encoding="utf-8").replace("| S3-15 |", "| |"), encoding="utf-8")
    with pytest.raises(ValueError, match="323 behaviours instead of 324"):
        read_page(page)


def test_markers_of_functions_classes_modules_and_cases_count_and_nothing_else_does(project: Project) -> None:
    project.write("tests/test_marked.py", MARKED)
    counted = project.count("--json")
    tests: dict[str, list[str]] = json.loads(counted.stdout)
    assert len(tests) == 324
    assert {name for name, nodes in tests.items() if nodes} == {"S1-1", "S1-2", "S1-3", "S2-1", "S3-1"}
    assert tests["S3-1"] == ["tests/test_marked.py::test_case[2]"]


def test_the_last_line_is_the_count_and_the_rest_names_what_is_missing(project: Project) -> None:
    project.write("tests/test_marked.py", MARKED)
    counted = project.count("--group", "F")
    lines = counted.stdout.splitlines()
    assert counted.returncode == 0
    assert lines[1].split() == ["F", "0", "11", "Controller"]
    assert [line.split()[0] for line in lines[3:-1]] == [f"S2-{number}" for number in range(44, 55)]
    assert lines[-1] == "behaviours: 5 of 324 covered"


def test_an_unknown_id_fails_with_the_test_and_the_id(project: Project) -> None:
    project.write("tests/test_misspelt.py", MISSPELT)
    counted = project.count()
    assert counted.returncode == 1
    assert "tests/test_misspelt.py::test_of_nothing names behaviour 'S9-99'" in counted.stderr
    assert "covered" not in counted.stdout


def test_an_unknown_id_stops_an_ordinary_run_before_any_test(project: Project) -> None:
    project.write("tests/test_marked.py", MARKED)
    project.write("tests/test_misspelt.py", MISSPELT)
    ran = project.run("-m", "pytest", "tests")
    assert ran.returncode == pytest.ExitCode.INTERRUPTED
    assert "tests/test_misspelt.py::test_of_nothing names behaviour 'S9-99'" in ran.stdout
    assert "passed" not in ran.stdout


def test_an_id_that_stands_twice_on_the_page_fails(project: Project) -> None:
    text = project.page.read_text(encoding="utf-8")
    project.page.write_text(f"{text}| S1-60 | Again. | - |\n", encoding="utf-8")
    counted = project.count()
    assert counted.returncode == 1
    assert "behaviours.md has S1-60 twice" in counted.stderr


def test_a_module_that_does_not_import_fails_the_count(project: Project) -> None:
    project.write("tests/test_broken.py", "import no_such_module\n")
    counted = project.count()
    assert counted.returncode == 1
    assert "no_such_module" in counted.stderr
