"""A secret of a run that came out is found, wherever it stands, and nowhere where it belongs."""

from pathlib import Path

import pytest

from tanist.chaos.planted import Planted


@pytest.fixture
def planted(tmp_path: Path) -> Planted:
    run = Planted(tmp_path)
    run.plant()
    (tmp_path / "broker-1.conf").write_text(f"haSecret={run.ha_secret}\n")
    (tmp_path / "broker-1.log").write_text("2026 INFO broker started\n")
    (tmp_path / "empty.out").touch()
    return run


def test_each_run_has_secrets_of_its_own_and_shows_none(tmp_path: Path) -> None:
    runs = [Planted(tmp_path), Planted(tmp_path)]
    secrets = [
        secret
        for run in runs
        for secret in (run.ha_secret, run.secret_key, run.tls_key_password, run.console_password)
    ]
    assert len(set(secrets)) == len(secrets)
    assert not any(secret in repr(run) for secret in secrets for run in runs)


def test_where_secrets_belong_none_is_looked_for(planted: Planted) -> None:
    assert planted.leaks() == []


@pytest.mark.parametrize(
    ("secret", "name"),
    [
        ("ha_secret", "haSecret"),
        ("secret_key", "the secret key of the access rules"),
        ("tls_key_password", "tlsServerKeyPassword"),
        ("console_password", "the console's password"),
    ],
)
@pytest.mark.parametrize(
    "file", ["broker-1.log", "history/p-0.jsonl", "shown/page%20", "broker-1/store.conf"]
)
def test_a_planted_leak_is_found(planted: Planted, secret: str, name: str, file: str) -> None:
    path = planted.folder / file
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"\xff before " + getattr(planted, secret).encode() + b" after")
    assert planted.leaks() == [f"{name} stands in {file}"]


def test_a_login_that_is_written_down_as_it_was_sent_is_found(planted: Planted) -> None:
    (planted.folder / "console.log").write_text(f"request refused authorization={planted.login}\n")
    assert planted.leaks() == ["the console's login stands in console.log"]


@pytest.mark.parametrize("secret", ["ha_secret", "console_password"])
def test_a_leak_is_found_in_a_big_file_wherever_it_lies(planted: Planted, secret: str) -> None:
    value = getattr(planted, secret).encode()
    for cut in (0, 1, len(value) - 1, len(value)):
        (planted.folder / "core.1").write_bytes(bytes((1 << 20) - cut) + value + bytes(1 << 20))
        assert len(planted.leaks()) == 1
