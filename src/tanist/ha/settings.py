"""The settings of replication, under RocketMQ's names where it has them."""

import ipaddress
from enum import Enum

import msgspec

from tanist.config import Secret
from tanist.errors import ConfigError
from tanist.model.host import MAX_PORT, is_host_and_port
from tanist.model.integers import INT32_MAX
from tanist.protocol.ha_link import AckKind

MIN_SECRET_CHARS = 16
"""Who connects gets a proof to try guesses on: a short secret would be found."""
_LEAST = {
    "ha_send_heartbeat_interval": 1,
    "ha_housekeeping_interval": 1,
    "ha_transfer_batch_size": 1,
    "max_ha_transfer_byte_in_second": 0,
    "in_sync_replicas": 1,
    "min_in_sync_replicas": 1,
    "slave_timeout": 1,
    "ha_slave_fallbehind_max": 1,
    "ha_max_time_slave_not_catchup": 1,
}
"""The least value of each number; the most is Java's greatest int."""


class HaAuthentication(Enum):
    """What a peer on the HA port proves itself by."""

    SECRET = "secret"  # noqa: S105  It is the name of a way, not a secret.
    TLS = "tls"
    NONE = "none"


class HaCompatibility(Enum):
    """Whose slaves a master takes beside Tanist's, and whose masters a slave follows."""

    NONE = "none"
    CLASSIC = "classic"
    """Those with fixed roles."""
    AUTOSWITCH = "autoswitch"
    """Those of 5.1.1 and later under a controller."""


class HaAckMode(Enum):
    """What a slave's ack promises."""

    RECEIVED = "received"
    FLUSHED = "flushed"

    @property
    def kind(self) -> AckKind:
        return AckKind.FLUSHED if self is HaAckMode.FLUSHED else AckKind.RECEIVED


class HaSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Replication of one broker. A wrong value stops the start."""

    ha_listen_port: int = 0
    """With 0 the port above ``listenPort``; a broker whose ``listenPort`` is 0 has any that is free."""
    ha_master_address: str = ""
    """host:port of the master's HA port. Without it a slave asks the name server."""
    broker_ip2: str = msgspec.field(name="brokerIP2", default="")
    """The address that slaves are told, if it is not ``brokerIP1``."""
    ha_authentication: HaAuthentication = HaAuthentication.SECRET
    """What peers prove at the port for slaves: ``secret``, ``tls`` or ``none``."""
    ha_secret: Secret = ""
    """The secret that master and slaves share, long and random."""
    ha_compatibility: HaCompatibility = HaCompatibility.NONE
    """Which peers of RocketMQ are let in, who can prove nothing; they need ``haAllowedAddresses`` too."""
    ha_allowed_addresses: str = ""
    """From where slaves of RocketMQ may come: addresses and networks, separated by semicolons."""
    ha_counted_addresses: str = ""
    """Those of them whose acks count for double write. None by default: they prove nothing."""
    ha_ack_mode: HaAckMode = HaAckMode.RECEIVED
    """What an ack of a slave says: that it has received the bytes, or that they are on its disk."""
    ha_send_heartbeat_interval: int = 5_000
    """After so long without a byte an end of a link sends a heartbeat, in milliseconds."""
    ha_housekeeping_interval: int = 20_000
    """After so long without a byte from its peer it gives the link up, in milliseconds."""
    ha_transfer_batch_size: int = 32 << 10
    """The largest body of a frame to a slave of RocketMQ. Between Tanist's the batch follows the load."""
    ha_flow_control_enable: bool = False
    """Whether what goes to a slave is limited."""
    max_ha_transfer_byte_in_second: int = 100 << 20
    """To one slave, all bytes counted, if ``haFlowControlEnable`` is true."""
    sync_from_last_file: bool = False
    """Whether an empty slave begins with the master's newest file, as in RocketMQ, and not with its first."""
    in_sync_replicas: int = 2
    """How many replicas hold a message before a SYNC_MASTER answers, the master counted. RocketMQ's default
    of 1 waits for nobody."""
    min_in_sync_replicas: int = 1
    """With fewer in step, the master counted, a SYNC_MASTER takes no messages."""
    slave_timeout: int = 3_000
    """How long a send of a SYNC_MASTER waits for slaves, in milliseconds."""
    ha_slave_fallbehind_max: int = 256 << 20
    """A slave that lags by as much is not worth waiting for."""
    all_ack_in_sync_state_set: bool = True
    """Under a controller: whether a send waits for every replica of the sync state set, so that none of them
    can become master without it. RocketMQ's default is false."""
    ha_max_time_slave_not_catchup: int = 15_000
    """Under a controller: after so long behind, a slave leaves the sync state set."""
    async_learner: bool = False
    """Under a controller: whether this replica only follows; it is in no sync state set and never master."""

    def __post_init__(self) -> None:
        if not 0 <= self.ha_listen_port <= MAX_PORT:
            raise ConfigError("haListenPort", self.ha_listen_port, f"0 to {MAX_PORT}")
        if self.ha_master_address and not is_host_and_port(self.ha_master_address):
            raise ConfigError("haMasterAddress", self.ha_master_address, "host:port of the master's HA port")
        for name, least in _LEAST.items():
            if not least <= (value := getattr(self, name)) <= INT32_MAX:
                raise ConfigError(_KEYS[name], value, f"{least} to {INT32_MAX}")
        if self.ha_housekeeping_interval <= self.ha_send_heartbeat_interval:
            raise ConfigError(
                "haHousekeepingInterval",
                self.ha_housekeeping_interval,
                f"more than haSendHeartbeatInterval, {self.ha_send_heartbeat_interval}",
            )
        if self.ha_secret and len(self.ha_secret) < MIN_SECRET_CHARS:
            raise ConfigError("haSecret", "", f"at least {MIN_SECRET_CHARS} characters, long and random")
        if self.ha_secret and self.ha_authentication is not HaAuthentication.SECRET:
            raise ConfigError(
                "haAuthentication", self.ha_authentication.value, "secret, or no haSecret beside it"
            )
        if self.min_in_sync_replicas > self.in_sync_replicas:
            raise ConfigError(
                "minInSyncReplicas",
                self.min_in_sync_replicas,
                f"at most inSyncReplicas, {self.in_sync_replicas}",
            )
        self._check_compatibility()

    @property
    def heartbeat_s(self) -> float:
        """After so long without a byte to its peer an end of a link sends a heartbeat."""
        return self.ha_send_heartbeat_interval / 1000

    @property
    def silence_s(self) -> float:
        """After so long without a byte from its peer it gives the link up."""
        return self.ha_housekeeping_interval / 1000

    def _check_compatibility(self) -> None:
        for key, text in (
            ("haAllowedAddresses", self.ha_allowed_addresses),
            ("haCountedAddresses", self.ha_counted_addresses),
        ):
            try:
                parse_networks(text)
            except ValueError as error:
                raise ConfigError(
                    key, text, f"addresses or networks separated by semicolons: {error}"
                ) from error
        is_for_rocketmq = self.ha_compatibility is not HaCompatibility.NONE
        if is_for_rocketmq and self.ha_authentication is HaAuthentication.TLS:
            raise ConfigError(
                "haCompatibility",
                self.ha_compatibility.value,
                "none with haAuthentication=tls: RocketMQ speaks none",
            )


Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def parse_networks(text: str) -> tuple[Network, ...]:
    """Addresses and networks, separated by semicolons. Raises ValueError."""
    return tuple(ipaddress.ip_network(part.strip()) for part in text.split(";") if part.strip())


def is_within(address: str, networks: tuple[Network, ...]) -> bool:
    """Whether one of the networks has this address. One that is not known, or is none, is in no network."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    # A socket for both versions of IP tells the old addresses in the new form.
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return any((mapped or found) in network for network in networks)


_KEYS = {field.name: field.encode_name for field in msgspec.structs.fields(HaSettings)}
