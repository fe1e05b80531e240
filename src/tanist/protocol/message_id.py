"""The two ids of a message, both upper-case hex.

The *offset id* says where the message lies: store host (4 or 16 address bytes, 4 of port) and log
offset. The *unique id* is made by the producer and travels as the property UNIQ_KEY: address, the
low half of the process id, a discriminator of the producer within its process, milliseconds since
the month began, and a counter. Both have 32 characters with IPv4 and 56 with IPv6, so from the
text alone they can not be told apart.
"""

import struct
from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.model.host import PACKED_V4_BYTES, PACKED_V6_BYTES
from tanist.model.offsets import LogOffset

MAX_PORT = 0xFFFF
_ADDRESS_BYTES = (4, 16)

# port, log_offset
_PLACE = struct.Struct(">iq")
_LOG_OFFSET = struct.Struct(">q")
# pid, discriminator, month_ms, counter
_UNIQUE_TAIL = struct.Struct(">HIIH")
# Both tails have 12 bytes.
_ID_BYTES = tuple(address_bytes + _PLACE.size for address_bytes in _ADDRESS_BYTES)


class OffsetId(NamedTuple):
    """Where a message lies. ``store_host`` is packed, as in the record."""

    store_host: bytes
    log_offset: LogOffset


class UniqueId(NamedTuple):
    """The parts of a unique id. ``month_ms`` counts from the month's begin in the producer's zone."""

    address: bytes
    pid: int
    discriminator: int
    month_ms: int
    counter: int


def encode_offset_id(store_host: bytes, log_offset: int) -> str:
    if len(store_host) not in (PACKED_V4_BYTES, PACKED_V6_BYTES) or log_offset < 0:
        raise LocalProtocolError(f"no id for a host of {len(store_host)} bytes and log offset {log_offset}")
    return (store_host + _LOG_OFFSET.pack(log_offset)).hex().upper()


def encode_offset_ids(store_host: bytes, log_offsets: Iterable[bytes]) -> str:
    """The offset ids of messages on one host, separated by commas; their log offsets are packed already."""
    # The host comes before each, the first one too: that follows nothing.
    packed = store_host.join((b"", *log_offsets))
    return packed.hex(",", len(store_host) + _LOG_OFFSET.size).upper()


def decode_offset_id(text: str) -> OffsetId:
    """Raises RemoteProtocolError for what is no offset id. Most unique ids fail too, by port or offset."""
    raw = _from_hex(text)
    port, log_offset = _PLACE.unpack_from(raw, len(raw) - _PLACE.size)
    if not 0 <= port <= MAX_PORT or log_offset < 0:
        raise RemoteProtocolError(f"{text!r} is no offset id: port {port}, log offset {log_offset}")
    return OffsetId(raw[: -_LOG_OFFSET.size], LogOffset(log_offset))


def decode_unique_id(text: str) -> UniqueId:
    raw = _from_hex(text)
    split = len(raw) - _UNIQUE_TAIL.size
    return UniqueId(raw[:split], *_UNIQUE_TAIL.unpack_from(raw, split))


def _from_hex(text: str) -> bytes:
    try:
        raw = bytes.fromhex(text)
    except ValueError as error:
        raise RemoteProtocolError(f"{text[:64]!r} is not hex") from error
    # fromhex skips blanks, which no id holds.
    if len(raw) not in _ID_BYTES or len(raw) * 2 != len(text):
        raise RemoteProtocolError(f"an id of {len(text)} characters; it must have 32 or 56")
    return raw


class UniqueIds:
    """Makes the unique ids of one producer.

    ``zone`` is the time zone that the month begins in. RocketMQ's tools turn the id back into a
    time in *their* zone and search from there on, so pass the local one.
    """

    def __init__(self, *, address: bytes, pid: int, discriminator: int, zone: tzinfo = UTC) -> None:
        if len(address) not in _ADDRESS_BYTES:
            raise LocalProtocolError(f"an address has 4 or 16 bytes, not {len(address)}")
        self._address = address
        self._pid = pid & 0xFFFF
        self._discriminator = discriminator & 0xFFFFFFFF
        self._zone = zone
        self._counter = 0
        self._month_start_ms = 0
        self._month_end_ms = 0

    def next_id(self, now_ms: int) -> str:
        """A fresh id. No two are equal unless 65536 are made within one millisecond."""
        if not self._month_start_ms <= now_ms < self._month_end_ms:
            self._month_start_ms, self._month_end_ms = _month_around(now_ms, self._zone)
        month_ms = now_ms - self._month_start_ms
        tail = _UNIQUE_TAIL.pack(self._pid, self._discriminator, month_ms, self._counter)
        self._counter = (self._counter + 1) & 0xFFFF
        return (self._address + tail).hex().upper()


def _month_around(now_ms: int, zone: tzinfo) -> tuple[int, int]:
    start = datetime.fromtimestamp(now_ms / 1000, zone).replace(
        day=1, hour=0, minute=0, second=0, microsecond=0
    )
    is_december = start.month == 12
    end = start.replace(year=start.year + is_december, month=1 if is_december else start.month + 1)
    return int(start.timestamp()) * 1000, int(end.timestamp()) * 1000
