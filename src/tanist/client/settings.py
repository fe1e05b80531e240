"""What every client needs to know: whom to ask, as whom, and how long to wait."""

import os
import random
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from tanist.client.checks import check_number
from tanist.client.errors import InvalidArgument
from tanist.clock import Clock, SystemClock
from tanist.remoting.tls import TlsSettings

DEFAULT_NAMESRV = "127.0.0.1:9876"
DEFAULT_TIMEOUT_S = 3.0
MAX_TIMEOUT_S = 3600.0
_FAR_AWAY = "192.0.2.1"
"""An address that is nobody's, for examples, and so is reached by the way that leads out."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """An access key and its secret, with which requests are signed. The secret is never shown.

    >>> credentials = Credentials("billing-app", "a-long-secret")
    >>> credentials
    Credentials(access_key='billing-app')
    >>> producer = Producer(group="orders", namesrv="mq.example.org:9876", credentials=credentials)
    """

    access_key: str
    secret_key: str = field(repr=False)
    security_token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in ("access_key", "secret_key", "security_token"):
            value = getattr(self, name)
            if (not isinstance(value, str) or not value) and (name, value) != ("security_token", None):
                raise InvalidArgument(name, "...", "give a str that is not empty")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """The settings that producers and consumers share."""

    namesrv: tuple[str, ...]
    credentials: Credentials | None = None
    tls: TlsSettings = field(default_factory=TlsSettings)
    timeout_s: float = DEFAULT_TIMEOUT_S
    instance: str | None = None
    route_poll_s: float = 30.0
    heartbeat_s: float = 30.0
    clock: Clock = field(default_factory=SystemClock)


def make_settings(
    *,
    namesrv: str | Sequence[str],
    credentials: Credentials | None,
    tls: TlsSettings | None,
    timeout_s: float,
    instance: str | None,
) -> ClientSettings:
    """The settings that a client's arguments stand for. Raises InvalidArgument for what is wrong."""
    check_number("timeout_s", timeout_s, least=0.001, most=MAX_TIMEOUT_S)
    if credentials is not None and not isinstance(credentials, Credentials):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument("credentials", "...", "give Credentials(access_key, secret_key)")
    if instance is not None:
        _check_instance(instance)
    if not isinstance(tls, TlsSettings | None):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument("tls", tls, "give TlsSettings(tls_enable=True, ...)")
    return ClientSettings(
        namesrv=_addresses(namesrv),
        credentials=credentials,
        tls=tls or TlsSettings(),
        timeout_s=timeout_s,
        instance=instance,
    )


def make_client_id(settings: ClientSettings, *, default_instance: str | None = None) -> str:
    """The name a client goes by: its address and its instance, unique unless the instance is given.

    Members of a group sort themselves by these names, so two members must not share one.
    """
    instance = settings.instance or default_instance
    if instance is None:
        instance = f"{os.getpid()}#{settings.clock.now_ms()}{random.getrandbits(32):08x}"
    return f"{local_address(settings.namesrv[0])}@{instance}"


def local_address(namesrv: str) -> str:
    """The address of this machine on the way to a name server. Nothing is sent.

    Looking a name up may take long, and the event loop stands still meanwhile. So of a name server that is
    given by its name it is the address on the way out, and the name is looked up only where there is no such.
    """
    host, _, port = namesrv.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    for place, flags in ((host, socket.AI_NUMERICHOST), (_FAR_AWAY, socket.AI_NUMERICHOST), (host, 0)):
        with suppress(OSError, ValueError):  # Of a name that can not be one there is a ValueError.
            found = socket.getaddrinfo(place, int(port), type=socket.SOCK_DGRAM, flags=flags)
            family, kind, _, _, address = found[0]
            with socket.socket(family, kind) as probe:
                probe.connect(address)
                return str(probe.getsockname()[0])
    return "127.0.0.1"


def _check_instance(instance: object) -> None:
    if not isinstance(instance, str) or not instance.strip():
        raise InvalidArgument("instance", instance, "give a str that is not blank")
    if "/" in instance or not instance.isprintable():
        # Broadcasting consumers keep their offsets in a folder of this name.
        raise InvalidArgument("instance", instance, "it must not hold slashes or control characters")


def _addresses(namesrv: Any) -> tuple[str, ...]:
    """``host:port``, several of them separated by semicolons or in a sequence."""
    texts: Any = namesrv.split(";") if isinstance(namesrv, str) else namesrv
    if not isinstance(texts, Sequence) or not texts:
        raise InvalidArgument("namesrv", namesrv, "give 'host:port', or several as 'host:port;host:port'")
    for text in cast("Sequence[Any]", texts):
        host, _, port = text.strip().rpartition(":") if isinstance(text, str) else ("", "", "")
        if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            raise InvalidArgument("namesrv", namesrv, f"{text!r} is not host:port")
    return tuple(str(text).strip() for text in cast("Sequence[Any]", texts))
