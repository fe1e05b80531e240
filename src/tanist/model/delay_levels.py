"""Delay levels: RocketMQ's fixed steps for messages that are delivered later."""

_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_UNKNOWN_LEVEL_MS = 1_000


def parse_delay_levels(text: str) -> tuple[int, ...]:
    """Milliseconds per level, the first level first. Raises ValueError for what is no list of times."""
    levels: list[int] = []
    for word in text.split():
        if word[-1] not in _UNIT_MS or not word[:-1].isdecimal():
            raise ValueError(f"{word!r} is no delay; write a number and s, m, h or d, such as 10s")
        levels.append(int(word[:-1]) * _UNIT_MS[word[-1]])
    if not levels:
        raise ValueError("at least one delay level is needed")
    return tuple(levels)


def due_ms(levels: tuple[int, ...], level: int, store_timestamp_ms: int) -> int:
    """When a message of a level is due. Levels past the last count as the last."""
    level = min(level, len(levels))
    return store_timestamp_ms + (levels[level - 1] if level > 0 else _UNKNOWN_LEVEL_MS)
