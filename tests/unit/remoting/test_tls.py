import ssl
from pathlib import Path

import pytest

from tanist.errors import ConfigError
from tanist.remoting.tls import ClientAuth, TlsMode, TlsSettings, client_context, server_context
from tests.support.tls import certificate, key


def server_settings(auth: ClientAuth = ClientAuth.NONE, mode: TlsMode = TlsMode.PERMISSIVE) -> TlsSettings:
    return TlsSettings(
        tls_mode=mode,
        tls_server_cert_path=certificate("server"),
        tls_server_key_path=key("server"),
        tls_server_need_client_auth=auth,
        tls_server_trust_cert_path=certificate("ca"),
    )


def test_by_default_no_side_speaks_tls() -> None:
    assert server_context(TlsSettings()) is None
    assert client_context(TlsSettings()) is None


def test_a_disabled_server_speaks_none_though_it_has_a_certificate() -> None:
    assert server_context(server_settings(mode=TlsMode.DISABLED)) is None


@pytest.mark.parametrize(
    ("auth", "verify_mode"),
    [
        (ClientAuth.NONE, ssl.CERT_NONE),
        (ClientAuth.OPTIONAL, ssl.CERT_OPTIONAL),
        (ClientAuth.REQUIRE, ssl.CERT_REQUIRED),
    ],
)
def test_a_server_asks_for_client_certificates_as_set(auth: ClientAuth, verify_mode: ssl.VerifyMode) -> None:
    context = server_context(server_settings(auth))
    assert context is not None
    assert context.verify_mode is verify_mode
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_a_client_checks_the_server_only_if_told_to() -> None:
    lax = client_context(TlsSettings(tls_enable=True))
    strict = client_context(
        TlsSettings(
            tls_enable=True, tls_client_auth_server=True, tls_client_trust_cert_path=certificate("ca")
        )
    )
    assert lax is not None
    assert strict is not None
    assert (lax.verify_mode, strict.verify_mode) == (ssl.CERT_NONE, ssl.CERT_REQUIRED)


def test_settings_that_cannot_work_name_what_is_missing() -> None:
    with pytest.raises(ConfigError, match="tlsServerCertPath"):
        TlsSettings(tls_mode=TlsMode.ENFORCING)
    with pytest.raises(ConfigError, match="tlsServerTrustCertPath"):
        TlsSettings(tls_server_need_client_auth=ClientAuth.REQUIRE)
    with pytest.raises(ConfigError, match="tlsClientTrustCertPath"):
        TlsSettings(tls_client_auth_server=True)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"tlsServerCertPath=.*missing"):
        server_context(TlsSettings(tls_server_cert_path=str(tmp_path / "missing")))
    with pytest.raises(ConfigError, match=r"tlsServerKeyPath=.*client\.key"):
        server_context(
            TlsSettings(tls_server_cert_path=certificate("server"), tls_server_key_path=key("client"))
        )
    with pytest.raises(ConfigError, match=r"tlsClientTrustCertPath=.*missing"):
        client_context(
            TlsSettings(
                tls_enable=True,
                tls_client_auth_server=True,
                tls_client_trust_cert_path=str(tmp_path / "missing"),
            )
        )
