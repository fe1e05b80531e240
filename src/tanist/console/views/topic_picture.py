"""Producers → topic → groups as a drawing. Pure: names in, SVG out, with classes for the style sheet.

Everything that is written into it is escaped here, since it goes into the page as it is.
"""

from collections.abc import Iterator, Sequence
from html import escape
from urllib.parse import quote

_BOX_WIDTH, _BOX_HEIGHT, _GAP = 210, 28, 10
_ARROW_WIDTH = 70
_MAX_BOXES = 12
_MAX_CHARS = 26
_EDGE = 1
WIDTH = 3 * _BOX_WIDTH + 2 * _ARROW_WIDTH + 2 * _EDGE


def topic_picture(producers: Sequence[str], topic: str, groups: Sequence[str]) -> str:
    """The drawing; the groups in it lead to their pages."""
    rows = max(1, _count(producers), _count(groups))
    height = rows * (_BOX_HEIGHT + _GAP) - _GAP + 2 * _EDGE
    middle = height / 2
    left, centre, right = (_EDGE + number * (_BOX_WIDTH + _ARROW_WIDTH) for number in range(3))
    described = escape(_described(producers, topic, groups))
    parts = [f'<svg class="picture" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{described}">']
    for name, y in _column(producers, height):
        parts.append(_arrow(left + _BOX_WIDTH, y, centre, middle))
        parts.append(_box(left, y, name, "producer"))
    for name, y in _column(groups, height):
        parts.append(_arrow(centre + _BOX_WIDTH, middle, right, y))
        link = None if name not in groups else f"/groups/{quote(name, safe='')}"
        parts.append(_box(right, y, name, "group", link=link))
    parts.append(_box(centre, middle, topic, "topic"))
    return "".join([*parts, "</svg>"])


def _count(names: Sequence[str]) -> int:
    return min(len(names), _MAX_BOXES)


def _column(names: Sequence[str], height: float) -> Iterator[tuple[str, float]]:
    """Each name with the middle of its box; the last says how many have none."""
    shown = list(names[:_MAX_BOXES])
    if len(names) > _MAX_BOXES:
        shown[-1] = f"and {len(names) - _MAX_BOXES + 1} more"
    step = _BOX_HEIGHT + _GAP
    first = height / 2 - (len(shown) - 1) * step / 2
    return ((name, first + number * step) for number, name in enumerate(shown))


def _box(x: float, y: float, text: str, kind: str, *, link: str | None = None) -> str:
    short = text if len(text) <= _MAX_CHARS else text[: _MAX_CHARS - 1] + "…"
    drawn = (
        f"<title>{escape(text)}</title>"
        f'<rect x="{x:g}" y="{y - _BOX_HEIGHT / 2:g}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" rx="5"/>'
        f'<text x="{x + _BOX_WIDTH / 2:g}" y="{y:g}">{escape(short)}</text>'
    )
    if link is not None:
        drawn = f'<a href="{escape(link)}">{drawn}</a>'
    return f'<g class="{kind}">{drawn}</g>'


def _arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    bend = (x1 + x2) / 2
    return (
        f'<path class="flow" d="M{x1:g} {y1:g}C{bend:g} {y1:g} {bend:g} {y2:g} {x2 - 6:g} {y2:g}"/>'
        f'<path class="tip" d="M{x2:g} {y2:g}l-8 -4v8z"/>'
    )


def _described(producers: Sequence[str], topic: str, groups: Sequence[str]) -> str:
    return f"{len(producers)} producer groups, topic {topic}, {len(groups)} consumer groups"
