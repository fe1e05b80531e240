"""Host addresses as records carry them: 4 or 16 address bytes, then the port in 4 bytes.

Inside Tanist a host stays in this packed form: a record is encoded and decoded without ever
turning an address into text.
"""

import ipaddress
import struct

PACKED_V4_BYTES = 8
PACKED_V6_BYTES = 20

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
