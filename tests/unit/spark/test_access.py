import pytest

from tanist.admin.asking import Access
from tanist.client.settings import Credentials
from tanist.remoting.tls import TlsSettings
from tanist.spark.access import cluster_options
from tanist.spark.options import Options
from tanist.spark.rocketmq.access import ACCESS_OPTIONS, read_access


@pytest.mark.parametrize(
    "access",
    [
        Access(),
        Access(Credentials("app", "s3cret")),
        Access(Credentials("app", "s3cret", "token"), TlsSettings(tls_enable=True)),
    ],
)
def test_workers_are_let_in_as_the_operator_is(access: Access) -> None:
    settings = read_access(Options(cluster_options("127.0.0.1:9876", access), ACCESS_OPTIONS))

    assert settings.namesrv == ("127.0.0.1:9876",)
    assert (settings.credentials, settings.tls) == (access.credentials, access.tls)


def test_all_that_a_client_of_tls_needs_is_handed_on() -> None:
    tls = TlsSettings(
        tls_enable=True,
        tls_client_cert_path="cert.pem",
        tls_client_key_path="key.pem",
        tls_client_key_password="pw",
        tls_client_auth_server=True,
        tls_client_trust_cert_path="ca.pem",
    )

    assert cluster_options("ns:1", Access(tls=tls)) == {
        "namesrv": "ns:1",
        "tlsEnable": "true",
        "tlsClientCertPath": "cert.pem",
        "tlsClientKeyPath": "key.pem",
        "tlsClientKeyPassword": "pw",
        "tlsClientAuthServer": "true",
        "tlsClientTrustCertPath": "ca.pem",
    }
