"""Where the master of a slave is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MasterPlace:
    """Both ports of one broker, each as ``host:port``."""

    address: str
    """Its own port."""
    ha_address: str
    """Its port for slaves."""
