"""How much of the log's end the machine's memory is taken to hold."""

from functools import cache

import psutil

from tanist.store import StoreSettings


def hot_bytes(settings: StoreSettings) -> int:
    """What lies further back than this from the log's end is read from the disk."""
    return _memory_bytes() * settings.access_message_in_memory_max_ratio // 100


@cache
def _memory_bytes() -> int:
    return int(psutil.virtual_memory().total)
