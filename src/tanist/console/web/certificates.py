"""Pages and REST of what Spark jobs wrote down, and the check of a certificate."""

import asyncio

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from tanist.console.certificates import CertificateDesk, Results
from tanist.console.errors import Unknown
from tanist.console.web.actions import answered, read_request
from tanist.console.web.guard import desk_of, operators, viewers
from tanist.console.web.templating import page

_HARMLESS = "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"


class VerifyRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which of the stores that a certificate names is read again."""

    store: str


async def look(request: Request) -> Results:
    return await asyncio.to_thread(_desk(request).list)


@viewers
async def show(request: Request) -> Response:
    return page(request, "certificates.html", view=await look(request), live="certificates")


@viewers
async def show_page(request: Request) -> Response:
    """A page of a job as it is. It is a file of anybody's who may write there: nothing in it is run."""
    found = await asyncio.to_thread(_desk(request).page, request.path_params["name"])
    return HTMLResponse(found, headers={"Content-Security-Policy": _HARMLESS})


@operators
async def verify(request: Request) -> Response:
    asked, name = await read_request(request, VerifyRequest), request.path_params["name"]
    certificates = _desk(request)
    return await answered(
        request,
        "/certificates",
        action="verify certificate",
        subject=name,
        details=asked.store,
        change=lambda: certificates.verify(name, asked.store),
    )


def _desk(request: Request) -> CertificateDesk:
    certificates = desk_of(request).certificates
    if certificates is None:
        raise Unknown("this console was given no folder of results; start it with --certificates FOLDER")
    return certificates


ROUTES: list[BaseRoute] = [
    Route("/certificates", show, methods=["GET"]),
    Route("/certificates/{name}", show_page, methods=["GET"]),
    Route("/certificates/{name}/verify", verify, methods=["POST"]),
]
