"""The epochs of a log as a drawing: one bar a reign, as long as what it wrote. Pure."""

from collections.abc import Sequence
from html import escape
from typing import Protocol

_WIDTH, _HEIGHT, _BAR = 900, 44, 22
_LEAST_WIDTH = 24
_LABEL_WIDTH = 70
_MAX_BARS = 24


class Epoch(Protocol):
    """What is drawn of one."""

    @property
    def epoch(self) -> int: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int | None: ...
    @property
    def share(self) -> float: ...


def epoch_timeline(epochs: Sequence[Epoch]) -> str:
    """The drawing of the newest epochs; none is so short that it is not seen."""
    shown = epochs[-_MAX_BARS:]
    whole = sum(epoch.share for epoch in shown) or 1.0
    free = _WIDTH - _LEAST_WIDTH * len(shown)
    described = f"epochs {shown[0].epoch} to {shown[-1].epoch}" if shown else "no epochs"
    parts = [f'<svg class="timeline" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{described}">']
    x = 0.0
    for epoch in shown:
        width = _LEAST_WIDTH + free * epoch.share / whole
        start = _short(epoch.start) if width > _LABEL_WIDTH else ""
        end = "now" if epoch.end is None else str(epoch.end)
        parts.append(
            f'<g class="{"open" if epoch.end is None else "past"}">'
            f"<title>{escape(f'epoch {epoch.epoch}: log offsets {epoch.start} to {end}')}</title>"
            f'<rect x="{x:.1f}" y="0" width="{width - 2:.1f}" height="{_BAR}" rx="3"/>'
            f'<text x="{x + width / 2:.1f}" y="{_BAR / 2:g}">{epoch.epoch}</text>'
            f'<text class="start" x="{x:.1f}" y="{_HEIGHT - 8}">{start}</text>'
            "</g>"
        )
        x += width
    return "".join([*parts, "</svg>"])


def _short(offset: int) -> str:
    for unit, size in (("G", 1 << 30), ("M", 1 << 20), ("k", 1 << 10)):
        if offset >= size:
            return f"{offset / size:.1f}{unit}"
    return str(offset)
