"""Ports for servers that are started beside others."""

import secrets
import socket
from collections.abc import Sequence
from contextlib import ExitStack

_PORTS = range(5_000, 12_000)
"""Below those that outgoing connections get: a server that was down has to get its own again."""


def free_port(host: str, distances: Sequence[int], held: ExitStack) -> int:
    """A port that is free, as are those at these distances from it, which its process takes too."""
    while True:
        port = secrets.choice(_PORTS)
        try:
            for distance in (0, *distances):
                # All are held until the last is chosen, so that they differ.
                held.enter_context(socket.create_server((host, port + distance)))
        except OSError:
            continue
        return port
