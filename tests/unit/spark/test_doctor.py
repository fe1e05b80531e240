"""What ``tanist spark doctor`` tells."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tanist.cli.spark import spark
from tanist.spark import java
from tanist.spark.doctor import diagnose
from tests.unit.spark.test_java import OPENJDK, environ, finds_nothing, make_java


def test_nothing_is_wrong_where_everything_is_there(tmp_path: Path) -> None:
    make_java(tmp_path / "home", OPENJDK)

    found = diagnose(environ(tmp_path, JAVA_HOME=str(tmp_path / "home")), lambda name: "1.0")

    assert (found.java_home, found.problems) == (str(tmp_path / "home"), [])


def test_what_is_missing_is_told_with_the_way_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "find_spec", finds_nothing)

    found = diagnose(environ(tmp_path), lambda name: None if name == "pyarrow" else "1.0")

    assert found.problems[0] == "pyarrow is not installed; `pip install 'tanist[spark]'` brings it"
    assert "there is no Java" in found.problems[1]


def test_the_command_fails_if_spark_can_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_spec", finds_nothing)
    for name, value in environ(tmp_path, JAVA_HOME=str(tmp_path / "none")).items():
        monkeypatch.setenv(name, value)

    told = CliRunner().invoke(spark, ["doctor", "--json"])
    text = CliRunner().invoke(spark, ["doctor"])

    assert (told.exit_code, text.exit_code) == (1, 1)
    assert json.loads(told.output)["java"][0]["problem"] == "can not be run"
    assert "problem: there is no Java" in text.output


def test_the_command_tells_which_java_is_used_and_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_java(tmp_path / "home", OPENJDK, "java.base@17\n")
    for name, value in environ(tmp_path, JAVA_HOME=str(tmp_path / "home")).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COLUMNS", "200")

    told = CliRunner().invoke(spark, ["doctor"])

    assert told.exit_code == 0
    assert "yes, through a script: it lacks jdk.incubator.vector" in told.output
    assert f"JAVA_HOME for Spark: {tmp_path / 'cache'}" in told.output
