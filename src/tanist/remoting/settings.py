"""The bounds of remoting, under RocketMQ's names and with its defaults where it has them."""

from dataclasses import dataclass

import msgspec

from tanist.errors import ConfigError
from tanist.model.integers import INT32_MAX
from tanist.protocol.frame import MAX_FRAME_BYTES

_DEFAULT_HIGH_WATER_BYTES = 1 << 20
_DEFAULT_LOW_WATER_BYTES = 256 << 10
_CLIENT_PATIENCE_S = 60.0
"""A client chose its peer: how long it waits for half a frame, or for a peer that reads, is no setting."""
_LEAST = {
    "server_channel_max_idle_time_seconds": 0,
    "server_async_semaphore_value": 1,
    "server_socket_backlog": 1,
    "server_socket_snd_buf_size": 0,
    "server_socket_rcv_buf_size": 0,
    "server_max_connections": 1,
    "server_frame_timeout_millis": 1,
    "server_write_timeout_millis": 1,
    "server_max_held_bytes": MAX_FRAME_BYTES,
    "client_channel_max_idle_time_seconds": 0,
    "client_async_semaphore_value": 1,
    "connect_timeout_millis": 1,
    "write_buffer_high_water_mark": 0,
    "write_buffer_low_water_mark": 0,
}
"""The least value of each; they have one upper bound, Java's greatest int."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What one connection may cost, whichever side it is on."""

    idle_s: float | None
    """Neither a read nor a write for so long closes it; None: never."""
    frame_s: float
    """A frame that has begun must be whole after so long."""
    write_s: float
    """A peer that takes nothing of what waits for it for so long is given up."""
    high_water_bytes: int
    low_water_bytes: int
    max_outstanding: int
    """Requests of ours that may wait for this peer's answer."""
    send_buffer_bytes: int = 0
    receive_buffer_bytes: int = 0
    """What the kernel keeps for the peer; 0 leaves it to the kernel."""


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the connections of one server may cost. A wrong value stops the start."""

    server_channel_max_idle_time_seconds: int = 120
    """A connection that is silent for so long is closed."""
    server_async_semaphore_value: int = 64
    """Requests to one client that may wait for its answers."""
    server_socket_backlog: int = 1024
    """Connections that may wait to be taken."""
    server_socket_snd_buf_size: int = 0
    """What the kernel keeps to send, in bytes; 0 leaves it to the kernel."""
    server_socket_rcv_buf_size: int = 0
    """What the kernel keeps that was received, in bytes; 0 leaves it to the kernel."""
    server_max_connections: int = 20_000
    """So many connections there may be."""
    server_frame_timeout_millis: int = 60_000
    """A frame that has begun must be whole after so long."""
    server_write_timeout_millis: int = 30_000
    """A peer that takes nothing for so long is given up."""
    server_max_held_bytes: int = 256 << 20
    """What slow peers may have us hold together: frames that are not whole, answers that wait."""
    write_buffer_high_water_mark: int = 0
    """With so many bytes waiting for a peer, no more is made for it; 0 for the default of 1 MiB."""
    write_buffer_low_water_mark: int = 0
    """With so few it goes on; 0 for the default of 256 KiB."""

    def __post_init__(self) -> None:
        _check(self)

    @property
    def connection(self) -> ConnectionLimits:
        """The part that each connection is held to."""
        high, low = _water_marks(self.write_buffer_high_water_mark, self.write_buffer_low_water_mark)
        return ConnectionLimits(
            idle_s=self.server_channel_max_idle_time_seconds or None,
            frame_s=self.server_frame_timeout_millis / 1000,
            write_s=self.server_write_timeout_millis / 1000,
            high_water_bytes=high,
            low_water_bytes=low,
            max_outstanding=self.server_async_semaphore_value,
            send_buffer_bytes=self.server_socket_snd_buf_size,
            receive_buffer_bytes=self.server_socket_rcv_buf_size,
        )


class ClientLimits(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the connections of one client may cost. A wrong value stops the start."""

    client_channel_max_idle_time_seconds: int = 120
    """A connection that is silent for so long is closed."""
    client_async_semaphore_value: int = 65_535
    """Requests to one server that may wait for its answers."""
    connect_timeout_millis: int = 3_000
    """How long a connection may take to be made."""
    write_buffer_high_water_mark: int = 0
    """With so many bytes waiting for a peer, no more is made for it; 0 for the default of 1 MiB."""
    write_buffer_low_water_mark: int = 0
    """With so few it goes on; 0 for the default of 256 KiB."""

    def __post_init__(self) -> None:
        _check(self)

    @property
    def connection(self) -> ConnectionLimits:
        """The part that each connection is held to."""
        high, low = _water_marks(self.write_buffer_high_water_mark, self.write_buffer_low_water_mark)
        return ConnectionLimits(
            idle_s=self.client_channel_max_idle_time_seconds or None,
            frame_s=_CLIENT_PATIENCE_S,
            write_s=_CLIENT_PATIENCE_S,
            high_water_bytes=high,
            low_water_bytes=low,
            max_outstanding=self.client_async_semaphore_value,
        )


def _check(limits: ServerLimits | ClientLimits) -> None:
    for field in msgspec.structs.fields(limits):
        value, least = getattr(limits, field.name), _LEAST[field.name]
        if not least <= value <= INT32_MAX:
            raise ConfigError(field.encode_name, value, f"{least} to {INT32_MAX}")
    high, low = _water_marks(limits.write_buffer_high_water_mark, limits.write_buffer_low_water_mark)
    if low > high:
        raise ConfigError("writeBufferLowWaterMark", low, f"at most writeBufferHighWaterMark, {high}")


def _water_marks(high_bytes: int, low_bytes: int) -> tuple[int, int]:
    """Zero leaves a mark to us, as it leaves it to the network library in RocketMQ."""
    high_bytes = high_bytes or max(_DEFAULT_HIGH_WATER_BYTES, low_bytes)
    return high_bytes, low_bytes or min(_DEFAULT_LOW_WATER_BYTES, high_bytes)
