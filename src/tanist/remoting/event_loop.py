"""The event loop that sockets are served with: uvloop where there is one, else Python's own."""

import asyncio
from collections.abc import Callable


def find_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes the loop; None leaves it to Python."""
    try:
        import uvloop  # noqa: PLC0415  It is not to be had on every platform.
    except ImportError:
        return None
    return uvloop.new_event_loop
