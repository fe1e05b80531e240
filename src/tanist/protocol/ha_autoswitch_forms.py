"""Other forms of the auto-switch handshake. No link offers or takes them by default.

Slaves of 5.0.0 and 5.1.0 told their address where later ones tell their broker id, and masters of 5.0.0
answered with a header as long as that of a frame of the log. Both can be read, so that a peer of such a
version is told from one that talks nonsense; ha_autoswitch has the form of today.

The compact form writes a state as one bit of one byte, the lowest for READY, and both flags of a slave in one
more. It is for two ends that have agreed on it beforehand, since nothing in the bytes tells the forms apart.
"""

import ipaddress
import struct
from typing import NamedTuple

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.protocol.ha_autoswitch import HaState

MAX_ADDRESS_BYTES = 50
"""The room that the old form has for a slave's address."""

# state, sync_from_last_file, async_learner, address_bytes
_ADDRESS_HEAD = struct.Struct(">ihhi")
# state, body_bytes, log_end, epoch, epoch_start, additional
_LONG_ANSWER = struct.Struct(">iiqiqq")
# state, flags
_COMPACT = struct.Struct(">BB")
_SYNC_FROM_LAST_FILE, _ASYNC_LEARNER = 1, 2


class AddressHandshake(NamedTuple):
    """A slave of 5.0.0 or 5.1.0 says where it is: ``host:port``, the host of either version of IP."""

    address: str
    sync_from_last_file: bool = False
    async_learner: bool = False

    @property
    def is_ipv6(self) -> bool:
        """Whether the address is of the newer version of IP."""
        host = self.address.rpartition(":")[0].strip("[]")
        return isinstance(ipaddress.ip_address(host), ipaddress.IPv6Address)


class LongAnswer(NamedTuple):
    """The header with which a master of 5.0.0 answers; the epochs follow as they do today."""

    body_bytes: int
    log_end: int
    epoch: int


class CompactHead(NamedTuple):
    """How a frame of a slave opens in the compact form. A master's has the state alone, and no flag."""

    state: HaState
    sync_from_last_file: bool = False
    async_learner: bool = False


def encode_address_handshake(handshake: AddressHandshake) -> bytes:
    address = handshake.address.encode()
    if len(address) > MAX_ADDRESS_BYTES:
        raise LocalProtocolError(f"an address of {len(address)} bytes; at most {MAX_ADDRESS_BYTES} have room")
    head = _ADDRESS_HEAD.pack(
        HaState.HANDSHAKE, handshake.sync_from_last_file, handshake.async_learner, len(address)
    )
    return head + address


def decode_address_handshake(data: bytes | memoryview) -> AddressHandshake | None:
    """The handshake that this begins with, None while some of it is still to come."""
    if len(data) < _ADDRESS_HEAD.size:
        return None
    state, sync_from_last_file, async_learner, address_bytes = _ADDRESS_HEAD.unpack_from(data)
    are_flags = sync_from_last_file in (0, 1) and async_learner in (0, 1)
    if state != HaState.HANDSHAKE or not are_flags or not 0 < address_bytes <= MAX_ADDRESS_BYTES:
        raise RemoteProtocolError(
            f"state {state}, flags {sync_from_last_file} and {async_learner} and an address of "
            f"{address_bytes} bytes; a handshake with 1 to {MAX_ADDRESS_BYTES} was due"
        )
    end = _ADDRESS_HEAD.size + address_bytes
    if len(data) < end:
        return None
    try:
        found = AddressHandshake(
            str(data[_ADDRESS_HEAD.size : end], "ascii"), bool(sync_from_last_file), bool(async_learner)
        )
        _ = found.is_ipv6
    except ValueError as error:
        raise RemoteProtocolError(f"a handshake of no address: {error}") from error
    return found


def encode_long_answer(answer: LongAnswer) -> bytes:
    return _LONG_ANSWER.pack(HaState.HANDSHAKE, *answer, 0, 0)


def decode_long_answer(data: bytes | memoryview) -> LongAnswer | None:
    """The header that this begins with, None while some of it is still to come."""
    if len(data) < _LONG_ANSWER.size:
        return None
    state, body_bytes, log_end, epoch, epoch_start, additional = _LONG_ANSWER.unpack_from(data)
    if state != HaState.HANDSHAKE or body_bytes < 0 or log_end < 0 or epoch_start or additional:
        raise RemoteProtocolError(f"no answer of 5.0.0: {bytes(data[: _LONG_ANSWER.size]).hex()}")
    return LongAnswer(body_bytes, log_end, epoch)


def encode_compact_state(state: HaState) -> bytes:
    """The state that a master's frame opens with."""
    return bytes([1 << state])


def encode_compact_head(head: CompactHead) -> bytes:
    """The state and the flags that a slave's handshake opens with."""
    flags = head.sync_from_last_file * _SYNC_FROM_LAST_FILE | head.async_learner * _ASYNC_LEARNER
    return _COMPACT.pack(1 << head.state, flags)


def decode_compact_state(raw: int) -> HaState:
    """The state that a byte has the bit of. Raises RemoteProtocolError if it has none, several or another."""
    for state in HaState:
        if raw == 1 << state:
            return state
    raise RemoteProtocolError(f"{raw:#04x} has not the bit of one state")


def decode_compact_head(data: bytes | memoryview) -> CompactHead | None:
    """The head that this begins with, None while some of it is still to come."""
    if len(data) < _COMPACT.size:
        return None
    raw, flags = _COMPACT.unpack_from(data)
    if flags & ~(_SYNC_FROM_LAST_FILE | _ASYNC_LEARNER):
        raise RemoteProtocolError(f"flags {flags:#04x}; only the two lowest bits mean something")
    return CompactHead(
        decode_compact_state(raw), bool(flags & _SYNC_FROM_LAST_FILE), bool(flags & _ASYNC_LEARNER)
    )
