"""Telling open pages which views have changed, as server-sent events."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from tanist.console.web.guard import COOKIE, desk_of, viewers

HEARTBEAT_S = 15.0
MAX_STREAMS = 200
MAX_VIEWS = 4
"""Of one page."""


class Streams:
    """How many pages listen. More than so many are refused: each holds a connection."""

    def __init__(self) -> None:
        self.count = 0


@viewers
async def stream(request: Request) -> Response:
    streams: Streams = request.app.state.streams
    if streams.count >= MAX_STREAMS:
        return Response("too many pages are open", status_code=503)
    return StreamingResponse(_events(request, streams), media_type="text/event-stream")


async def _events(request: Request, streams: Streams) -> AsyncGenerator[bytes]:
    desk = desk_of(request)
    token = request.cookies.get(COOKIE)
    views = request.query_params.get("views", "").split()[:MAX_VIEWS]
    streams.count += 1
    try:
        async with aclosing(desk.watcher.changes(heartbeat_s=HEARTBEAT_S, views=views)) as changes:
            async for digests in changes:
                # A page that lies open does not keep its user logged in, and hears no more when he is not.
                if desk.sessions.find(token, now_s=desk.clock.monotonic_s(), is_use=False) is None:
                    yield b"event: logged-out\ndata: {}\n\n"
                    return
                yield b": still here\n\n" if digests is None else _event(dict(digests))
    finally:
        streams.count -= 1


def _event(digests: dict[str, str]) -> bytes:
    return b"event: views\ndata: " + msgspec.json.encode(digests) + b"\n\n"


ROUTES: list[BaseRoute] = [Route("/events", stream, methods=["GET"])]
