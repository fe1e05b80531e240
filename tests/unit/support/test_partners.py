"""A missing test partner is told, and on CI it is a failure."""

from pathlib import Path

import pytest

from tests.support import partners


@pytest.fixture(autouse=True)
def _no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))


def test_a_missing_partner_skips_the_test_and_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)

    with pytest.raises(pytest.skip.Exception, match="install openjdk-17-jdk-headless"):
        partners.require("java")


def test_a_missing_partner_fails_the_test_on_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")

    with pytest.raises(pytest.fail.Exception, match="install openjdk-17-jdk-headless"):
        partners.require("java")


def test_a_java_that_is_too_old_is_as_good_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    old.chmod(0o755)

    with pytest.raises(pytest.skip.Exception, match="is of version 11, Java 17 is needed"):
        partners.require("java")
