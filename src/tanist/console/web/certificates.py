"""Pages and REST of what Spark jobs wrote down, and the check of a certificate."""

import asyncio

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tanist.console.certificates import CertificateDesk, Results
from tanist.console.errors import Unknown
from tanist.console.web.actions import answered, read_request
from tanist.console.web.guard import desk_of, operators, viewers
from tanist.console.web.templating import page


class VerifyRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which of the stores that a certificate names is read again."""

    store: str


async def look(request: Request) -> Results:
    return await asyncio.to_thread(_desk(request).list)


@viewers
async def show(request: Request) -> Response:
    return page(request, "certificates.html", view=await look(request))


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
    Route("/certificates/{name}/verify", verify, methods=["POST"]),
]
