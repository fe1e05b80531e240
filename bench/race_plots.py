"""Plots of a race as SVG, readable on light and on dark pages. Pure."""

import math
from collections.abc import Sequence
from html import escape

from bench.figures import OURS, Figure, Goal, Verdict, shown

_STYLE = (
    "<style>text{font:12px sans-serif;fill:#444}.axis{stroke:#999;stroke-width:1}.goal{stroke:#888;"
    "stroke-width:2}.won{stroke:#2a8f4e;fill:#2a8f4e}.lost{stroke:#cc3d3d;fill:#cc3d3d}"
    ".unclear{stroke:#c08a1a;fill:#c08a1a}.line0{stroke:#2f6fd0;fill:#2f6fd0}"
    ".line1{stroke:#d07a2f;fill:#d07a2f}.line2{stroke:#8a5cc2;fill:#8a5cc2}"
    ".line{fill:none;stroke-width:2}text.key{stroke:none}"
    "@media (prefers-color-scheme:dark){text{fill:#ccc}.axis{stroke:#777}}</style>"
)
_WIDTH = 960
_LABEL = 500
_ROW = 20
_TOP = 48
_RIGHT = 20
_PLOT_HEIGHT = 260
_LEFT = 80
_LEAST, _MOST = 0.05, 20.0
"""Ratios beyond these are drawn at the edge."""


def ratio_plot(figures: Sequence[Figure]) -> str:
    """Each goal beside a peer: the range of the ratios, their median, and a mark where the goal is.

    Ratios are turned so that more is better in all of them.
    """
    judged = [
        (figure, goal, figure.ratios(goal.peer))
        for figure in figures
        for goal in figure.goals
        if goal.peer and figure.ratios(goal.peer)
    ]
    height = _TOP + _ROW * len(judged) + 20
    parts = [
        f'<text x="{_LABEL}" y="16">ours ÷ peer, right is better; the mark is the goal</text>',
        *(_tick(value, height) for value in (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)),
    ]
    for number, (figure, goal, ratios) in enumerate(judged):
        parts.append(_ratio_row(figure, goal, ratios, _TOP + _ROW * number + _ROW // 2))
    return _svg(height, parts)


def _ratio_row(figure: Figure, goal: Goal, ratios: Sequence[float], y: int) -> str:
    turned = sorted(ratios if figure.is_more_better else [1 / one for one in ratios if one])
    bound = goal.bound if figure.is_more_better else 1 / goal.bound
    verdict = figure.judge(goal)
    low, middle, high = _x(turned[0]), _x(turned[len(turned) // 2]), _x(turned[-1])
    name = escape(f"{figure.row}: {figure.what} / {goal.peer}")
    return (
        f'<text x="{_LABEL - 10}" y="{y + 4}" text-anchor="end">{name}</text>'
        f'<line class="{_class(verdict)}" x1="{low}" x2="{high}" y1="{y}" y2="{y}" stroke-width="2"/>'
        f'<circle class="{_class(verdict)}" cx="{middle}" cy="{y}" r="4"/>'
        f'<line class="goal" x1="{_x(bound)}" x2="{_x(bound)}" y1="{y - 7}" y2="{y + 7}"/>'
    )


def _class(verdict: Verdict) -> str:
    return str(verdict).replace(" ", "-")


def _tick(value: float, height: int) -> str:
    x = _x(value)
    return (
        f'<line class="axis" x1="{x}" x2="{x}" y1="{_TOP - 8}" y2="{height - 10}" stroke-dasharray="2 4"/>'
        f'<text x="{x}" y="{_TOP - 12}" text-anchor="middle">{value:g}</text>'
    )


def _x(ratio: float) -> float:
    bounded = min(max(ratio, _LEAST), _MOST)
    return round(_scaled(bounded, _LEAST, _MOST, _LABEL, _WIDTH - _RIGHT), 1)


def curve_plot(name: str, figures: Sequence[Figure]) -> str:
    """What something costs against its size; both axes grow by factors."""
    points = sorted(figures, key=lambda figure: figure.at)
    sides = list(dict.fromkeys(one.side for figure in points for one in figure.series if one.samples))
    values = [one.median for figure in points for one in figure.series if one.samples and one.median > 0]
    if not values:
        return _svg(_TOP, [f'<text x="10" y="20">{escape(name)}: nothing was measured</text>'])
    low, high = min(values) / 1.5, max(values) * 1.5
    bottom = _TOP + _PLOT_HEIGHT
    first, last = points[0].at, points[-1].at

    def place(figure: Figure, value: float) -> tuple[float, float]:
        x = _scaled(figure.at, first, last, _LEFT + 20, _WIDTH - 160)
        return round(x, 1), round(_scaled(value, low, high, bottom, _TOP), 1)

    parts = [
        f'<text x="10" y="18">{escape(name)}</text>',
        f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH - 150}" y1="{bottom}" y2="{bottom}"/>',
        f'<line class="axis" x1="{_LEFT}" x2="{_LEFT}" y1="{_TOP}" y2="{bottom}"/>',
    ]
    for value in (min(values), max(values)):
        y = place(points[0], value)[1]
        text = escape(shown(value, points[0].unit))
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{text}</text>')
    for figure in points:
        x = place(figure, low)[0]
        label = escape(figure.what.rpartition(": ")[2])
        parts.append(f'<text x="{x}" y="{bottom + 18}" text-anchor="middle">{label}</text>')
    for number, side in enumerate([OURS, *(one for one in sides if one != OURS)]):
        seen = [(figure, figure.side(side)) for figure in points]
        way = [place(figure, one.median) for figure, one in seen if one and one.samples and one.median > 0]
        parts += _curve(side, number % 3, way, _TOP + 20 * number + 10)
    return _svg(bottom + 30, parts)


def _curve(side: str, number: int, way: Sequence[tuple[float, float]], key_y: int) -> list[str]:
    joined = " ".join(f"{x},{y}" for x, y in way)
    return [
        f'<polyline class="line{number} line" points="{joined}"/>',
        *(f'<circle class="line{number}" cx="{x}" cy="{y}" r="3"/>' for x, y in way),
        f'<circle class="line{number}" cx="{_WIDTH - 130}" cy="{key_y - 4}" r="4"/>',
        f'<text class="key" x="{_WIDTH - 120}" y="{key_y}">{escape(side)}</text>',
    ]


def _scaled(value: float, low: float, high: float, start: float, end: float) -> float:
    """Where a value is on an axis that grows by factors."""
    if low <= 0 or high <= low:
        return (start + end) / 2
    return start + (end - start) * math.log(value / low) / math.log(high / low)


def _svg(height: int, parts: Sequence[str]) -> str:
    size = f'width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}"'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size}>', _STYLE, *parts, "</svg>"]) + "\n"
