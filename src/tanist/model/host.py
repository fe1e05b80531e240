"""Host addresses: as text, and as records carry them, 4 or 16 address bytes, then the port in 4 bytes.

Inside the store a host stays in the packed form: a record is encoded and decoded without ever
turning an address into text.
"""

import ipaddress
import struct

PACKED_V4_BYTES = 8
PACKED_V6_BYTES = 20

MAX_PORT = 65535
FAST_PORT_DISTANCE = 2
"""A broker's second port lies this far below the first; slaves of RocketMQ ask for topics only there."""

_PORT = struct.Struct(">i")


def pack_host(address: str, port: int) -> bytes:
    """Pack a numeric address and a port. Names are not resolved here: that would be I/O."""
    return ipaddress.ip_address(address).packed + _PORT.pack(port)


def unpack_host(packed: bytes | memoryview) -> tuple[str, int]:
    """The address as text, and the port."""
    raw = bytes(packed)
    if len(raw) not in (PACKED_V4_BYTES, PACKED_V6_BYTES):
        raise ValueError(f"a packed host has 8 or 20 bytes, not {len(raw)}")
    (port,) = _PORT.unpack_from(raw, len(raw) - _PORT.size)
    return str(ipaddress.ip_address(raw[: -_PORT.size])), port


def host_and_port(address: str, port: int) -> str:
    """One word for both; an IPv6 address stands in brackets."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def is_address(text: str) -> bool:
    """Whether this is an IP address, not a name."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def is_host_and_port(text: str) -> bool:
    """Whether this is an address or a name, and a port that can be connected to."""
    host, _, port = text.rpartition(":")
    return bool(host) and port.isascii() and port.isdecimal() and 0 < int(port[:6]) <= MAX_PORT
