"""Draws lag as a page of its own: HTML with pictures in SVG, which needs no other program. Pure."""

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape

from tanist.spark.lag.analysis import GroupLag
from tanist.spark.lag.latency import PERCENTILES, Latency
from tanist.spark.progress import shown_seconds

WIDTH, HEIGHT = 720, 160
_MARGIN = 8

_STYLE = (
    "body{font:14px system-ui,sans-serif;margin:2em auto;max-width:60em;color:#222}"
    "svg{background:#f7f7f9;width:100%}table{border-collapse:collapse}"
    "td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid #ddd}td:first-child,th:first-child"
    "{text-align:left}.slow{color:#b00}"
)


def make_page(groups: Sequence[GroupLag], latencies: Sequence[Latency] = ()) -> str:
    """The page, whole."""
    parts = [_group(one, [each for each in latencies if _is_of(each, one)]) for one in groups]
    body = "\n".join(parts) or "<p>No group has consumed anything yet.</p>"
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>Consumer lag</title><style>{_STYLE}</style>"
        f"<h1>Consumer lag</h1>\n{body}</html>\n"
    )


def picture(points: Sequence[tuple[int, int]]) -> str:
    """A line of values over time, from nothing to the most there was."""
    first, last = points[0][0], points[-1][0]
    most = max(value for _, value in points) or 1
    wide, high = WIDTH - 2 * _MARGIN, HEIGHT - 2 * _MARGIN
    span = max(1, last - first)
    drawn = " ".join(
        f"{_MARGIN + wide * (at - first) / span:.1f},{HEIGHT - _MARGIN - high * value / most:.1f}"
        for at, value in points
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img"><title>{most} at most, from {_time(first)} to '
        f'{_time(last)}</title><polyline fill="none" stroke="#36c" stroke-width="2" points="{drawn}"/></svg>'
    )


def _group(one: GroupLag, latencies: Sequence[Latency]) -> str:
    rows = "".join(
        f"<tr><td>{escape(queue.broker)}:{queue.queue_id}</td><td>{queue.lag}</td>"
        f"<td>{queue.late_ms / 1000:.1f}</td><td>{queue.consumed_per_s:.1f}</td>"
        f"<td>{queue.produced_per_s:.1f}</td></tr>"
        for queue in one.queues
    )
    notes = [f"{one.lag} behind, {one.most_lag} at most", forecast(one)]
    notes += ["<b class=slow>not faster than its producers</b>"] if one.is_slow else []
    notes += (
        [f"<b class=slow>one queue is {one.skew:.1f} times as far behind as the mean</b>"]
        if one.is_skewed
        else []
    )
    return (
        f"<h2>{escape(one.group)} in {escape(one.topic)}</h2><p>{'; '.join(notes)}</p>{picture(one.history)}"
        "<table><tr><th>queue</th><th>behind</th><th>late, s</th><th>consumed a second</th>"
        f"<th>produced a second</th></tr>{rows}</table>{''.join(map(_latency, latencies))}"
    )


def forecast(one: GroupLag) -> str:
    """When the backlog is gone, in words."""
    if not one.lag:
        return "no backlog"
    if one.gone_in_s is None:
        return "at these rates it is never gone"
    return f"gone in about {shown_seconds(one.gone_in_s)}"


def _latency(one: Latency) -> str:
    heads = "".join(f"<th>{100 * each:g} %</th>" for each in PERCENTILES)
    rows = "".join(
        f"<tr><td>{name}</td>{''.join(f'<td>{value:.0f}</td>' for value in values)}</tr>"
        for name, values in (
            ("born to stored, ms", one.born_to_stored_ms),
            ("stored to consumed, ms", one.stored_to_consumed_ms),
            ("born to consumed, ms", one.born_to_consumed_ms),
        )
    )
    return f"<table><tr><th>{one.messages} messages</th>{heads}</tr>{rows}</table>"


def _is_of(latency: Latency, group: GroupLag) -> bool:
    return (latency.group, latency.topic) == (group.group, group.topic)


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="seconds")
