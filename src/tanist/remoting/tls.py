"""TLS settings under RocketMQ's names, and the contexts made of them.

RocketMQ reads these as ``tls.server.certPath`` and so on; the keys here are the names of the same
settings inside it. Where we differ: without a certificate a server offers no TLS, while RocketMQ makes
up a certificate that nobody can trust; and a client certificate that is asked for is always checked.
"""

import ssl
from enum import Enum

import msgspec

from tanist.config import Secret
from tanist.errors import ConfigError


class TlsMode(Enum):
    """Whether a server speaks TLS, plain text, or what the peer begins with."""

    DISABLED = "disabled"
    PERMISSIVE = "permissive"
    ENFORCING = "enforcing"


class ClientAuth(Enum):
    """Whether a server asks its peers for a certificate."""

    NONE = "none"
    OPTIONAL = "optional"
    REQUIRE = "require"


class TlsSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Both sides of TLS in one process. Paths are of PEM files; an empty one is not set."""

    tls_enable: bool = False
    """Whether connections that we open use TLS."""
    tls_mode: TlsMode = TlsMode.PERMISSIVE
    """``permissive`` takes TLS beside plain text, ``enforcing`` nothing else, ``disabled`` none."""
    tls_server_cert_path: str = ""
    """The server's certificate."""
    tls_server_key_path: str = ""
    """Its key."""
    tls_server_key_password: Secret = ""
    """The password of that key."""
    tls_server_need_client_auth: ClientAuth = ClientAuth.NONE
    """Whether clients must show a certificate: ``none``, ``optional`` or ``require``."""
    tls_server_trust_cert_path: str = ""
    """Who may have signed it."""
    tls_client_cert_path: str = ""
    """The certificate to show to servers."""
    tls_client_key_path: str = ""
    """Its key."""
    tls_client_key_password: Secret = ""
    """The password of that key."""
    tls_client_auth_server: bool = False
    """Whether a server's certificate is checked."""
    tls_client_trust_cert_path: str = ""
    """Who may have signed it."""

    def __post_init__(self) -> None:
        if self.tls_mode is TlsMode.ENFORCING and not self.tls_server_cert_path:
            raise ConfigError("tlsServerCertPath", "", "a certificate, which tlsMode=enforcing needs")
        if self.tls_server_need_client_auth is not ClientAuth.NONE and not self.tls_server_trust_cert_path:
            raise ConfigError(
                "tlsServerTrustCertPath", "", "the certificates that sign the clients', to check them by"
            )
        if self.tls_client_auth_server and not self.tls_client_trust_cert_path:
            raise ConfigError(
                "tlsClientTrustCertPath", "", "the certificates that sign the servers', to check them by"
            )


def server_context(settings: TlsSettings) -> ssl.SSLContext | None:
    """What a server speaks TLS with; None if it speaks none."""
    if settings.tls_mode is TlsMode.DISABLED or not settings.tls_server_cert_path:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # A peer could have us compute a new key as often as it likes; nothing needs that.
    context.options |= ssl.OP_NO_RENEGOTIATION
    _load_certificate(
        context,
        ("tlsServerCertPath", settings.tls_server_cert_path),
        ("tlsServerKeyPath", settings.tls_server_key_path),
        settings.tls_server_key_password,
    )
    if settings.tls_server_need_client_auth is not ClientAuth.NONE:
        is_required = settings.tls_server_need_client_auth is ClientAuth.REQUIRE
        context.verify_mode = ssl.CERT_REQUIRED if is_required else ssl.CERT_OPTIONAL
        _load_trusted(context, "tlsServerTrustCertPath", settings.tls_server_trust_cert_path)
    return context


def client_context(settings: TlsSettings) -> ssl.SSLContext | None:
    """What a client speaks TLS with; None if it speaks none.

    Like RocketMQ's, it checks who signed the server's certificate and not which host it names:
    brokers go by addresses that come from a route.
    """
    if not settings.tls_enable:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False
    if settings.tls_client_auth_server:
        _load_trusted(context, "tlsClientTrustCertPath", settings.tls_client_trust_cert_path)
    else:
        context.verify_mode = ssl.CERT_NONE
    if settings.tls_client_cert_path:
        _load_certificate(
            context,
            ("tlsClientCertPath", settings.tls_client_cert_path),
            ("tlsClientKeyPath", settings.tls_client_key_path),
            settings.tls_client_key_password,
        )
    return context


def _load_certificate(
    context: ssl.SSLContext, certificate: tuple[str, str], key: tuple[str, str], password: str
) -> None:
    """Load a certificate and its key, each a setting's name and value."""
    try:
        # Always with a password, or OpenSSL would ask for one on the terminal.
        context.load_cert_chain(certificate[1], key[1] or None, password)
    except OSError as error:
        name, path = key if key[1] else certificate
        raise ConfigError(
            name, path, f"a readable PEM file with the key of {certificate[0]}={certificate[1]} ({error})"
        ) from error


def _load_trusted(context: ssl.SSLContext, name: str, path: str) -> None:
    try:
        context.load_verify_locations(path)
    except OSError as error:
        raise ConfigError(name, path, f"a readable PEM file of certificates ({error})") from error
