"""Numbers, sizes and times as pages show them. Pure."""

from datetime import UTC, datetime

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")
NOT_KNOWN = "\u2013"


def count(value: float | None) -> str:
    """A number in groups of three digits; a rate has one decimal while it is small."""
    if value is None:
        return NOT_KNOWN
    if value < 100 and not float(value).is_integer():
        return f"{value:.1f}"
    return f"{round(value):,}".replace(",", "\u202f")


def size(value: float | None) -> str:
    """Bytes, in the unit that leaves three digits."""
    if value is None:
        return NOT_KNOWN
    if value < 1024:
        return f"{round(value)} B"
    for unit in _UNITS:
        value /= 1024
        if value < 1024:
            return f"{value:.1f} {unit}"
    return f"{value:.0f} {_UNITS[-1]}"


def moment(at_ms: int | None) -> str:
    """A time in UTC."""
    if not at_ms or at_ms < 0:
        return "never"
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def moment_iso(at_ms: int | None) -> str:
    """The same for machines, and for the tooltip that has it to the millisecond."""
    if not at_ms or at_ms < 0:
        return ""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")


def span(value_ms: float | None) -> str:
    """A duration, in its two largest units."""
    if value_ms is None:
        return NOT_KNOWN
    if value_ms < 1000:
        return f"{round(value_ms)} ms"
    seconds = int(value_ms / 1000)
    if seconds < 60:
        return f"{value_ms / 1000:.1f} s"
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


def percent(ratio: float | None) -> str:
    return NOT_KNOWN if ratio is None else f"{ratio * 100:.0f} %"


def yes_no(value: bool | None) -> str:
    return NOT_KNOWN if value is None else "yes" if value else "no"
