"""Pages from templates. Everything that is put into one is escaped."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from tanist import __version__
from tanist.console.web import shown

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class LiveView:
    """Which views a page shows, with blanks between them, and how they were when the page was asked for.

    A look that ends while the browser loads the page is news to it: who shows the page compares this with
    what he is told first.
    """

    name: str
    digest: str


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "count": shown.count,
        "size": shown.size,
        "moment": shown.moment,
        "moment_iso": shown.moment_iso,
        "span": shown.span,
        "percent": shown.percent,
        "yes_no": shown.yes_no,
        "in_path": lambda text: quote(str(text), safe=":"),
        "in_query": lambda text: quote(str(text), safe=""),
    }
    return environment


def _live_view(live: str, digests: Mapping[str, str]) -> LiveView:
    return LiveView(live, " ".join(digests.get(name, "") for name in live.split()))


def page(
    request: Request, template: str, *, status: int = 200, live: str | None = None, **values: Any
) -> HTMLResponse:
    """Render a page for whoever asks: the layout shows who that is, and what is to be told once.

    ``live`` is the view that the page shows, if it is one that changes while it is looked at, or several.
    """
    session = request.scope.get("session")
    desk = request.app.state.desk
    told: list[str] = [] if session is None else session.take_told()
    text = (
        _environment()
        .get_template(template)
        .render(
            path=request.url.path,
            session=session,
            told=told,
            is_local=desk.control is not None,
            has_certificates=desk.certificates is not None,
            alarm_count=desk.alarms.board.firing_count,
            version=__version__,
            live_view=None if live is None else _live_view(live, request.scope["digests"]),
            **values,
        )
    )
    return HTMLResponse(text, status_code=status)
