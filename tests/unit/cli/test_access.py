from pathlib import Path

import pytest

from tanist.cli.access import AccessGiven, read_access
from tanist.errors import ConfigError


def _file(folder: Path, text: str) -> Path:
    path = folder / "access"
    path.write_text(text)
    return path


def test_nothing_given_is_neither_signed_nor_secret() -> None:
    access = read_access(AccessGiven())
    assert access.credentials is None
    assert not access.tls.tls_enable


def test_the_file_of_mqadmin_is_read_as_it_is(tmp_path: Path) -> None:
    access = read_access(AccessGiven(access_file=_file(tmp_path, "accessKey: op\nsecretKey: s3cret\n")))
    assert access.credentials is not None
    assert (access.credentials.access_key, access.credentials.secret_key) == ("op", "s3cret")


def test_an_option_goes_before_the_file(tmp_path: Path) -> None:
    file = _file(tmp_path, "accessKey=op\nsecretKey=a\ntlsEnable=true\ntlsClientKeyPassword=pw\n")
    access = read_access(AccessGiven(access_file=file, secret_key="b", is_tls=False))
    assert access.credentials is not None
    assert access.credentials.secret_key == "b"
    assert not access.tls.tls_enable
    assert access.tls.tls_client_key_password == "pw"


def test_a_certificate_to_trust_means_tls_that_is_checked() -> None:
    tls = read_access(AccessGiven(tls_trust=Path("ca.pem"))).tls
    assert (tls.tls_enable, tls.tls_client_auth_server, tls.tls_client_trust_cert_path) == (
        True,
        True,
        "ca.pem",
    )


def test_a_key_without_its_secret_is_refused() -> None:
    with pytest.raises(ConfigError, match="TANIST_SECRET_KEY"):
        read_access(AccessGiven(access_key="op"))


def test_an_unknown_key_is_named_and_its_value_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="secretkey") as refused:
        read_access(AccessGiven(access_file=_file(tmp_path, "secretkey=hush\n")))
    assert "hush" not in str(refused.value)
