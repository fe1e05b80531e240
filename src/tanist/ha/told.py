"""Which refused peers are worth a line of the log. Pure.

Whoever can reach the port can be refused a thousand times a second, each time for a reason of other words.
"""

EVERY_MS = 60_000
MAX_TOLD = 256
"""So many lines a minute, however many hosts there are. The counts are kept elsewhere, and go on."""


class ToldRefusals:
    """One line a minute of each kind from each host."""

    def __init__(self) -> None:
        # In the order of their times.
        self._told_ms: dict[tuple[str, str], int] = {}

    def is_news(self, host: str, kind: str, *, now_ms: int) -> bool:
        """Note a refusal; whether it is to be told."""
        for oldest, told_ms in tuple(self._told_ms.items()):
            if now_ms - told_ms < EVERY_MS:
                break
            del self._told_ms[oldest]
        if (host, kind) in self._told_ms or len(self._told_ms) >= MAX_TOLD:
            return False
        self._told_ms[host, kind] = now_ms
        return True
