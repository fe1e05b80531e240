"""Times and spans of time as operators write them. Pure: the present and the time zone are given."""

import re
from datetime import datetime, tzinfo

from tanist.admin.resets.refused import ResetRefused

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SPAN = re.compile(r"-(?:\d{1,19}(?:ms|[smhd]))+")
_STEP = re.compile(r"(\d+)(ms|[smhd])")
_MILLISECONDS = re.compile(r"[0-9]{1,19}")
"""No time has more digits, and Python refuses to read thousands of them."""
_STOCK_TIME = "%Y-%m-%d#%H:%M:%S:%f"
"""``mqadmin``'s own, with milliseconds at its end."""


def is_span(text: str) -> bool:
    """Whether this is a duration back, such as ``-2h`` or ``-1h30m``."""
    return _SPAN.fullmatch(text) is not None


def read_span_ms(text: str) -> int:
    """The length of a duration back.

    >>> read_span_ms("-1h30m")
    5400000
    """
    return sum(int(number) * _UNITS_MS[unit] for number, unit in _STEP.findall(text))


def read_time_ms(text: str, zone: tzinfo) -> int | None:
    """The time that a text stands for, in the zone if it names none itself; None if it is no time.

    >>> read_time_ms("1970-01-01T00:00:01Z", UTC), read_time_ms("1970-01-01#00:00:01:500", UTC)
    (1000, 1500)
    """
    if _MILLISECONDS.fullmatch(text) is not None:
        return int(text)
    try:
        if "#" in text:
            found = datetime.strptime(text, _STOCK_TIME).replace(tzinfo=zone)
        else:
            found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return round((found if found.tzinfo else found.replace(tzinfo=zone)).timestamp() * 1000)


def check_not_ahead(at_ms: int, now_ms: int, text: str) -> None:
    """Refuse a time that has not come: what will be stored until then is not known."""
    if at_ms > now_ms:
        raise ResetRefused(
            f"{text} lies {(at_ms - now_ms) / 1000:.0f} s in the future; use a time that is over, or latest"
        )
