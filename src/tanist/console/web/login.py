"""Coming in and going out."""

import logging
import math

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from tanist.console.access.audit import AuditEntry
from tanist.console.web.forms import read_form
from tanist.console.web.guard import (
    COOKIE,
    MAX_NAME_CHARS,
    address_of,
    desk_of,
    find_session,
    is_from_here,
    refusal,
    try_password,
    user_of,
    viewers,
    wait_s,
)
from tanist.console.web.templating import page

_log = logging.getLogger(__name__)


async def show_login(request: Request) -> Response:
    target = local_path(request.query_params.get("next"))
    if find_session(request) is not None:
        return RedirectResponse(target, status_code=303)
    return page(request, "login.html", next=target, name="", problem=None)


async def log_in(request: Request) -> Response:
    if not is_from_here(request):
        return refusal(request, 403, "this form is not of this console; load the page again")
    form = await read_form(request)
    name, password = form.get("name", "")[:MAX_NAME_CHARS], form.get("password", "")
    target = local_path(form.get("next"))
    user = await try_password(request, name, password)
    if user is None:
        wait = wait_s(request, name)
        problem = (
            f"Too many tries. The next is possible in {math.ceil(wait)} seconds."
            if wait > 0
            else "Name or password is wrong."
        )
        status = 429 if wait > 0 else 401
        return page(request, "login.html", status=status, next=target, name=name, problem=problem)
    desk = desk_of(request)
    token = desk.sessions.begin(user, now_s=desk.clock.monotonic_s())
    desk.audit.write(
        AuditEntry(
            at_ms=desk.clock.now_ms(),
            user=user.name,
            address=address_of(request),
            action="log in",
            subject=user.role.value,
            outcome="done",
        )
    )
    _log.info("logged in user=%s role=%s address=%s", user.name, user.role.value, address_of(request))
    answer = RedirectResponse(target, status_code=303)
    answer.set_cookie(
        COOKIE, token, httponly=True, samesite="lax", secure=request.url.scheme == "https", path="/"
    )
    return answer


@viewers
async def log_out(request: Request) -> Response:
    desk_of(request).sessions.end(request.cookies.get(COOKIE, ""))
    _log.info("logged out user=%s", user_of(request).name)
    answer = RedirectResponse("/login", status_code=303)
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="lax")
    return answer


def local_path(target: str | None) -> str:
    """The path that a login leads to: one of this console, whatever the address says."""
    is_local = target is not None and target.startswith("/") and target[1:2] not in {"/", "\\"}
    return target if target is not None and is_local and target.isprintable() else "/"


ROUTES: list[BaseRoute] = [
    Route("/login", show_login, methods=["GET"]),
    Route("/login", log_in, methods=["POST"]),
    Route("/logout", log_out, methods=["POST"]),
]
