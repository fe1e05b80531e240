"""The port for slaves: where it is, who can reach it, and what slaves are told."""

import ipaddress
import logging
import socket
from contextlib import suppress

from tanist.broker.settings import HA_PORT_DISTANCE, BrokerSettings
from tanist.errors import ConfigError
from tanist.ha.settings import HaAuthentication, HaCompatibility, HaSettings
from tanist.model.host import host_and_port
from tanist.remoting import bind_port

_log = logging.getLogger(__name__)


def ha_port(settings: BrokerSettings, ha: HaSettings) -> int:
    """The port for slaves; 0 for any that is free."""
    if ha.ha_listen_port or not settings.listen_port:
        return ha.ha_listen_port
    return settings.listen_port + HA_PORT_DISTANCE


def ha_address(settings: BrokerSettings, ha: HaSettings) -> str:
    """What slaves are told to connect to. Those of this machine alone would find no port elsewhere."""
    bound = ha_bind_address(settings, ha)
    own = settings.broker_ip1 if bound == settings.bind_address else bound
    return host_and_port(ha.broker_ip2 or own, ha_port(settings, ha))


def ha_bind_address(settings: BrokerSettings, ha: HaSettings) -> str:
    """Where the port for slaves is open.

    Whoever connects may get the whole log. So where nobody has to prove anything the port is open to this
    machine alone, unless the config says in so many words that it need not be.
    """
    is_guarded = bool(ha.ha_secret) or ha.ha_authentication is HaAuthentication.TLS
    is_meant = (
        ha.ha_authentication is HaAuthentication.NONE or ha.ha_compatibility is not HaCompatibility.NONE
    )
    if is_guarded or is_meant:
        return settings.bind_address
    return "::1" if ":" in settings.bind_address else "127.0.0.1"


def bind_ha_port(settings: BrokerSettings, ha: HaSettings) -> socket.socket:
    """Take the port for slaves, and say what is wrong with how it is guarded. Raises ConfigError."""
    port, address = ha_port(settings, ha), ha_bind_address(settings, ha)
    try:
        bound = bind_port(address, port)
        if not port:
            # By its number, or the system takes the port back when nobody listens any more.
            with bound as found:
                bound = bind_port(address, found.getsockname()[1])
    except OSError as error:
        found = error.strerror or error
        if ha.ha_listen_port:
            remedy = f"a free port for slaves ({found})"
            raise ConfigError("haListenPort", ha.ha_listen_port, remedy) from error
        remedy = f"one with a free port above it, or haListenPort, for slaves ({found})"
        raise ConfigError("listenPort", settings.listen_port, remedy) from error
    _warn(settings, ha, address)
    return bound


def refuse_slaves(bound: socket.socket) -> None:
    """Have the system refuse who comes, and keep the port.

    To close what listened is not enough: as long as another socket has the port the system takes connections
    for it, and nobody answers them.
    """
    with suppress(OSError):  # Nobody listened.
        bound.shutdown(socket.SHUT_RDWR)


def _warn(settings: BrokerSettings, ha: HaSettings, address: str) -> None:
    if ha.ha_compatibility is not HaCompatibility.NONE:
        _log.warning(
            "brokers of RocketMQ prove nothing, and get every message from these addresses "
            "haCompatibility=%s haAllowedAddresses=%s address=%s",
            ha.ha_compatibility.value,
            ha.ha_allowed_addresses,
            address,
        )
    if ha.ha_authentication is HaAuthentication.NONE:
        _log.warning(
            "anybody who reaches the port for slaves gets every message haAuthentication=none address=%s",
            address,
        )
    elif address != settings.bind_address and not ipaddress.ip_address(settings.bind_address).is_loopback:
        _log.warning(
            "slaves are taken from this machine alone; set haSecret for others bindAddress=%s address=%s",
            settings.bind_address,
            address,
        )
