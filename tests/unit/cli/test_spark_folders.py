from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tanist.cli.spark import spark
from tanist.spark.errors import SparkError

RANGE = ["--from", "2026-11-17", "--until", "2026-11-18", "--to", "Again"]


@pytest.mark.parametrize(
    ("command", "names"),
    [
        (["archive"], {"root", "from_store"}),
        (["archive", "list"], {"archive"}),
        (["archive", "compact"], {"archive"}),
        (["audit"], {"stores"}),
        (["check"], {"histories"}),
        (["dedup"], {"archive"}),
        (["lag", "report"], {"archive"}),
        (["ledger"], {"archive", "deliveries"}),
        (["rebuild"], {"store", "to"}),
        (["replay"], {"archive"}),
        (["reset-plan"], {"archive"}),
    ],
)
def test_workers_are_told_whole_paths(command: list[str], names: set[str]) -> None:
    """They run in a folder of their own, where half a path leads elsewhere."""
    found: click.Command = spark
    for word in command:
        assert isinstance(found, click.Group)
        found = found.commands[word]

    types = [param.type for param in found.params if param.name in names]

    assert len(types) == len(names)
    assert all(isinstance(one, click.Path) and one.resolve_path for one in types)


def test_a_store_is_archived_also_where_a_name_server_is_in_the_environment(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    words = ["archive", "--from-store", str(tmp_path), "--to", str(tmp_path / "a"), "--once", "--master", "x"]

    result = CliRunner().invoke(spark, words, env={"NAMESRV_ADDR": "127.0.0.1:9876"})

    # Nothing is wrong but the store itself.
    assert "there is no store here" in str(result.exception)


@pytest.mark.parametrize("words", [["--certificate", "c.json"], ["--log-only"]])
def test_what_an_audit_of_a_live_broker_can_not_do_is_refused(tmp_path: Path, words: list[str]) -> None:
    live = ["audit", str(tmp_path), "--namesrv", "127.0.0.1:1", "--master", "none"]

    result = CliRunner().invoke(spark, [*live, *words])

    assert result.exit_code == click.UsageError.exit_code
    assert f"{words[0]} is for two stores or more" in result.output


@pytest.mark.parametrize("words", [["replay", ".", *RANGE], ["dedup", "--archive", "."]])
def test_a_folder_that_is_no_archive_is_refused_before_spark_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    result = CliRunner().invoke(spark, [*words, "-n", "127.0.0.1:1", "-t", "Orders", "--master", "none"])

    assert isinstance(result.exception, SparkError)
    assert str(result.exception).startswith(f"{tmp_path} is no archive: it has no _tanist/archive.json")
