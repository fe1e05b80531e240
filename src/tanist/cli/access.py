"""As whom ``tanist admin`` and ``tanist spark`` ask, and over TLS or not: one bundle for all their commands.

What is secret has a place in a file or the environment, so that no list of processes shows it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click
import msgspec

from tanist.admin.asking import Access
from tanist.client.settings import Credentials
from tanist.config import HIDDEN, Secret, load_properties, parse_settings
from tanist.errors import ConfigError
from tanist.remoting.tls import TlsSettings

_F = TypeVar("_F", bound=Callable[..., Any])
_FILE = click.Path(dir_okay=False, path_type=Path)


class AccessGiven(NamedTuple):
    """What the options say."""

    access_file: Path | None = None
    access_key: str | None = None
    secret_key: str | None = None
    security_token: str | None = None
    is_tls: bool | None = None
    tls_trust: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None


class _AccessKeys(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The keys of an access file beside those of TLS."""

    access_key: str = ""
    secret_key: Secret = ""
    security_token: Secret = ""


_OPTIONS = (
    click.option(
        "--access-file",
        type=_FILE,
        envvar="TANIST_ACCESS_FILE",
        help="A file with accessKey, secretKey and the client's TLS settings, as mqadmin's tools.yml.",
    ),
    click.option(
        "--access-key", envvar="TANIST_ACCESS_KEY", help="As whom to ask a broker that has access rules."
    ),
    click.option("--secret-key", envvar="TANIST_SECRET_KEY", help="Its secret, better by TANIST_SECRET_KEY."),
    click.option("--security-token", envvar="TANIST_SECURITY_TOKEN", hidden=True),
    click.option("--tls/--no-tls", "is_tls", default=None, envvar="TANIST_TLS", help="Ask over TLS."),
    click.option(
        "--tls-trust",
        type=_FILE,
        envvar="TANIST_TLS_TRUST",
        help="Certificates that a server's has to be signed by; without it any is taken.",
    ),
    click.option("--tls-cert", type=_FILE, envvar="TANIST_TLS_CERT", help="Our own certificate."),
    click.option(
        "--tls-key",
        type=_FILE,
        envvar="TANIST_TLS_KEY",
        help="Its key; the key's password is tlsClientKeyPassword of the access file.",
    ),
)


def access_options(function: _F) -> _F:
    """Give a command, or a group of them, the options of ``AccessGiven``."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def take_access(context: click.Context, given: AccessGiven) -> None:
    """Have the commands of a group ask as its options say, and the log keep their secret to itself."""
    access = read_access(given)
    if access.credentials is not None:
        context.obj.hide(access.credentials.secret_key)
    context.obj = access


def read_access(given: AccessGiven) -> Access:
    """The access that options and file mean; what an option says goes before the file.

    Raises ConfigError for a key without its secret, or a file that makes no sense.
    """
    raw = {} if given.access_file is None else load_properties(given.access_file)
    keys, tls, unknown = parse_settings(raw, _AccessKeys, TlsSettings, source=given.access_file)
    if unknown:
        raise ConfigError(
            min(unknown),
            HIDDEN,  # Of a key that is misspelt nobody knows whether its value is secret.
            "accessKey, secretKey, securityToken or a tlsClient… setting",
            given.access_file,
        )
    access_key, secret_key = given.access_key or keys.access_key, given.secret_key or keys.secret_key
    if bool(access_key) != bool(secret_key):
        missing = "secretKey" if access_key else "accessKey"
        raise ConfigError(
            missing, "", "both keys: TANIST_ACCESS_KEY and TANIST_SECRET_KEY, or --access-file with the two"
        )
    credentials = None
    if access_key:
        token = given.security_token or keys.security_token
        credentials = Credentials(access_key, secret_key, token or None)
    return Access(credentials, _tls(given, tls))


def _tls(given: AccessGiven, read: TlsSettings) -> TlsSettings:
    paths = {
        "tls_client_trust_cert_path": given.tls_trust,
        "tls_client_cert_path": given.tls_cert,
        "tls_client_key_path": given.tls_key,
    }
    changed: dict[str, Any] = {name: str(path) for name, path in paths.items() if path is not None}
    is_enabled = read.tls_enable or bool(changed) if given.is_tls is None else given.is_tls
    trust = changed.get("tls_client_trust_cert_path", read.tls_client_trust_cert_path)
    return msgspec.structs.replace(read, **changed, tls_enable=is_enabled, tls_client_auth_server=bool(trust))
