"""Reading what a client says of itself."""

from tanist.errors import ResponseError
from tanist.protocol.bodies.client import HeartbeatData, decode_heartbeat
from tanist.protocol.codes import ResponseCode
from tanist.protocol.command import Command

MAX_HEARTBEAT_BYTES = 1 << 20
"""Some 4,000 subscriptions. What a client says of itself stays in memory for as long as it is there."""


def read_heartbeat(command: Command) -> HeartbeatData:
    """The heartbeat that this request brings, if it is one and not too large."""
    if len(command.body) > MAX_HEARTBEAT_BYTES:
        raise ResponseError(
            ResponseCode.SYSTEM_ERROR,
            f"a heartbeat of {len(command.body)} bytes: at most {MAX_HEARTBEAT_BYTES} are taken",
        )
    return decode_heartbeat(command.body)
