"""For whoever keeps the console running: does it live, and does it see the cluster. Nobody has to log in."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from tanist.console.web.guard import desk_of


async def live(_request: Request) -> Response:
    return JSONResponse({"status": "live"})


async def ready(request: Request) -> Response:
    lack = desk_of(request).watcher.lack()
    if lack is None:
        return JSONResponse({"status": "ready"})
    return JSONResponse({"status": "not ready", "reason": lack}, status_code=503)


ROUTES: list[BaseRoute] = [
    Route("/health/live", live, methods=["GET"]),
    Route("/health/ready", ready, methods=["GET"]),
]
