from pathlib import Path

import pytest
from click.testing import CliRunner

from tanist.cli.main import tanist
from tanist.spark.archive import delta
from tanist.spark.archive.delta import delta_settings, settings_for
from tanist.spark.archive.folder import new_about, open_for_writing
from tanist.spark.archive.records import DELTA, STORE
from tanist.spark.errors import SparkError

JARS = ("delta-spark_4.2_2.13", "delta-storage")


def with_jars(home: Path, *names: str) -> list[str]:
    """What Maven leaves in its local repository."""
    jars: list[str] = []
    for name in names:
        folder = home / ".m2" / "repository" / "io" / "delta" / name / "4.4.0"
        folder.mkdir(parents=True)
        (folder / f"{name}-4.4.0.jar").touch()
        jars.append(str(folder / f"{name}-4.4.0.jar"))
    return jars


def test_the_jars_are_taken_from_mavens_repository(tmp_path: Path) -> None:
    jars = with_jars(tmp_path, *JARS)

    settings = delta_settings({"spark.driver.memory": "2g"}, spark_version="4.2.1", home=tmp_path)

    assert settings["spark.jars"] == ",".join(jars)
    assert settings["spark.sql.extensions"] == "io.delta.sql.DeltaSparkSessionExtension"
    assert settings["spark.driver.memory"] == "2g"


def test_jars_that_spark_has_itself_need_not_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in JARS:
        (tmp_path / f"{name}-4.4.0.jar").touch()
    monkeypatch.setattr(delta, "_spark_jars", lambda: tmp_path)

    assert "spark.jars" not in delta_settings({}, spark_version="4.2.1", home=tmp_path)


@pytest.mark.parametrize("key", ["spark.jars", "spark.jars.packages"])
def test_jars_that_are_named_are_not_looked_for(tmp_path: Path, key: str) -> None:
    settings = delta_settings({key: "mine"}, spark_version="4.3.0", home=tmp_path)

    assert settings[key] == "mine"
    assert "spark.sql.catalog.spark_catalog" in settings


def test_missing_jars_are_one_error_that_says_where_they_were_looked_for(tmp_path: Path) -> None:
    with_jars(tmp_path, "delta-spark_4.2_2.13")

    with pytest.raises(SparkError) as raised:
        delta_settings({}, spark_version="4.2.1", home=tmp_path)

    missing = tmp_path / ".m2/repository/io/delta/delta-storage/4.4.0/delta-storage-4.4.0.jar"
    assert f"and for {missing}. `mvn dependency:get" in str(raised.value)
    assert "-Dartifact=io.delta:delta-spark_4.2_2.13:4.4.0`" in str(raised.value)


def test_a_spark_that_delta_is_not_made_for_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        SparkError, match=r"no Delta for Spark 4\.3 .* 4\.4\.0 is for 4\.2; .* --format parquet"
    ):
        delta_settings({}, spark_version="4.3.0", home=tmp_path)


def _spark_4_2(_package: str) -> str:
    return "4.2.1"


def test_a_missing_jar_is_said_before_anything_is_made_or_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    # Whichever Spark this is run with.
    monkeypatch.setattr(delta, "version", _spark_4_2)
    asked = [
        "archive",
        "-n",
        "127.0.0.1:1",
        "--topics",
        "a",
        "--to",
        str(tmp_path / "a"),
        "--format",
        "delta",
    ]

    result = CliRunner().invoke(tanist, ["spark", *asked])

    assert "the jars of Delta are not on this machine" in str(result.exception)
    assert not (tmp_path / "a").exists()


def test_only_an_archive_that_is_a_delta_table_needs_jars(tmp_path: Path) -> None:
    for table_format in ("parquet", DELTA):
        with open_for_writing(tmp_path / table_format, new_about(STORE, table_format=table_format)):
            pass
    given = {"spark.jars": "mine"}

    assert settings_for(None, given) == settings_for(tmp_path / "parquet", given) == given
    assert settings_for(tmp_path / DELTA, given).keys() > given.keys()


def test_an_archive_does_not_become_a_table(tmp_path: Path) -> None:
    with open_for_writing(tmp_path / "a", new_about(STORE)):
        pass

    with (
        pytest.raises(SparkError, match="has table format parquet, and delta is asked for"),
        open_for_writing(tmp_path / "a", new_about(STORE, table_format=DELTA)),
    ):
        pass
