"""The certificates of tests/data/tls, as settings."""

from pathlib import Path

_FOLDER = Path(__file__).parents[1] / "data" / "tls"


def certificate(name: str) -> str:
    return str(_FOLDER / f"{name}.pem")


def key(name: str) -> str:
    return str(_FOLDER / f"{name}.key")


ENFORCING = {
    "tlsMode": "enforcing",
    "tlsEnable": "true",
    "tlsServerCertPath": certificate("server"),
    "tlsServerKeyPath": key("server"),
    "tlsClientAuthServer": "true",
    "tlsClientTrustCertPath": certificate("ca"),
}
"""A broker that speaks TLS alone."""

HA_MASTER = {
    "haSecret": "",
    "haAuthentication": "tls",
    "tlsServerCertPath": certificate("server"),
    "tlsServerKeyPath": key("server"),
    "tlsServerTrustCertPath": certificate("ca"),
}
"""A master whose slaves show their certificates."""


def ha_slave(name: str) -> dict[str, str]:
    """A slave that shows this certificate, and wants to see its master's."""
    return {
        "haSecret": "",
        "haAuthentication": "tls",
        "tlsClientCertPath": certificate(name),
        "tlsClientKeyPath": key(name),
        "tlsClientTrustCertPath": certificate("ca"),
    }
