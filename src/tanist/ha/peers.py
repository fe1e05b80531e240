"""Which dialect a peer on the HA port may speak, by its address and its first byte. Pure."""

from dataclasses import dataclass
from typing import Self

from tanist.ha.replicas import Dialect
from tanist.ha.settings import (
    HaAuthentication,
    HaCompatibility,
    HaSettings,
    Network,
    is_within,
    parse_networks,
)
from tanist.protocol.ha_hello import MAGIC

_THIS_MACHINE = parse_networks("127.0.0.0/8;::1")
_NO_HELLO = (
    "no hello of Tanist's; slaves of RocketMQ are let in by haCompatibility, "
    "if haAllowedAddresses has their address"
)
_NOT_PROVEN = "without haSecret only this machine and haAllowedAddresses are let in"


def rocketmq_dialect(compatibility: HaCompatibility) -> Dialect | None:
    """What is spoken with brokers of RocketMQ; None if nothing is."""
    match compatibility:
        case HaCompatibility.NONE:
            return None
        case HaCompatibility.CLASSIC:
            return Dialect.CLASSIC
        case HaCompatibility.AUTOSWITCH:
            return Dialect.AUTOSWITCH


@dataclass(frozen=True, slots=True)
class Peers:
    """Who is let in to say anything at all. Slaves of RocketMQ prove nothing but where they are."""

    rocketmq: tuple[Network, ...]
    """From where slaves of RocketMQ may come."""
    rocketmq_dialect: Dialect | None
    """What is spoken with them."""
    counted: tuple[Network, ...]
    is_proof_asked: bool
    """Whether Tanist's own slaves prove who they are, or are let in from everywhere on purpose."""

    @classmethod
    def of(cls, settings: HaSettings) -> Self:
        dialect = rocketmq_dialect(settings.ha_compatibility)
        return cls(
            rocketmq=parse_networks(settings.ha_allowed_addresses) if dialect is not None else (),
            rocketmq_dialect=dialect,
            counted=parse_networks(settings.ha_counted_addresses),
            is_proof_asked=bool(settings.ha_secret)
            or settings.ha_authentication is not HaAuthentication.SECRET,
        )

    def may_be_rocketmq(self, host: str) -> bool:
        """Whether a slave of RocketMQ may come from this address."""
        return is_within(host, self.rocketmq)

    def counts(self, dialect: Dialect, host: str) -> bool:
        """Whether the acks of such a slave count for double write."""
        return dialect is Dialect.TANIST or is_within(host, self.counted)

    def dialect(self, first_byte: int, host: str) -> Dialect | str:
        """What is spoken with who begins so, or why nothing is.

        As RocketMQ's the first byte of a hello would be that of a negative report or state, which none is.
        """
        if first_byte != MAGIC[0]:
            if self.rocketmq_dialect is None or not self.may_be_rocketmq(host):
                return _NO_HELLO
            return self.rocketmq_dialect
        # The port is open to others than this machine for the sake of slaves of RocketMQ.
        is_let_in = self.is_proof_asked or is_within(host, _THIS_MACHINE) or self.may_be_rocketmq(host)
        return Dialect.TANIST if is_let_in else _NOT_PROVEN
