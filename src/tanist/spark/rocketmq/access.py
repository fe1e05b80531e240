"""Whom to ask and as whom: the options that everything that talks to brokers shares."""

from tanist.client.errors import InvalidArgument
from tanist.client.settings import ClientSettings, Credentials, make_settings
from tanist.errors import ConfigError
from tanist.remoting.tls import TlsSettings, client_context
from tanist.spark.errors import BadOption, SparkError
from tanist.spark.options import Options

TIMEOUT_S = 10.0

ACCESS_OPTIONS = (
    "namesrv",
    "accessKey",
    "secretKey",
    "securityToken",
    "tlsEnable",
    "tlsClientCertPath",
    "tlsClientKeyPath",
    "tlsClientKeyPassword",
    "tlsClientAuthServer",
    "tlsClientTrustCertPath",
)
"""By the names that RocketMQ's clients and its settings have for them."""


def read_access(options: Options) -> ClientSettings:
    """Raises BadOption or SparkError for what is missing, half given or can not be read."""
    text = options.text("namesrv")
    if text is None:
        raise BadOption("namesrv", None, "host:port of the name server, several separated by semicolons")
    try:
        return make_settings(
            namesrv=text,
            credentials=_credentials(options),
            tls=_tls(options),
            timeout_s=TIMEOUT_S,
            instance=None,
        )
    except InvalidArgument as error:
        raise BadOption("namesrv", text, "host:port, several separated by semicolons") from error


def _credentials(options: Options) -> Credentials | None:
    access_key, secret_key = options.text("accessKey"), options.text("secretKey")
    if not access_key and not secret_key and not options.has("securityToken"):
        return None
    if not access_key or not secret_key:
        raise SparkError("accessKey and secretKey are one pair: give both of them")
    return Credentials(access_key, secret_key, options.text("securityToken") or None)


def _tls(options: Options) -> TlsSettings:
    given = [name for name in ACCESS_OPTIONS if name.startswith("tlsClient") and options.has(name)]
    is_on = options.flag("tlsEnable", default=bool(given))
    if given and not is_on:
        raise SparkError(f"{given[0]} is given, and tlsEnable=false says to use no TLS")
    try:
        settings = TlsSettings(
            tls_enable=is_on,
            tls_client_cert_path=options.text("tlsClientCertPath") or "",
            tls_client_key_path=options.text("tlsClientKeyPath") or "",
            tls_client_key_password=options.text("tlsClientKeyPassword") or "",
            tls_client_auth_server=options.flag(
                "tlsClientAuthServer", default=options.has("tlsClientTrustCertPath")
            ),
            tls_client_trust_cert_path=options.text("tlsClientTrustCertPath") or "",
        )
        # A file that can not be read is told now, on the driver, and not by every task.
        client_context(settings)
    except ConfigError as error:
        raise SparkError(str(error)) from error
    return settings
