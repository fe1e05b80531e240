"""Pages and REST of resets: plan, preview, apply, receipts, approval, undo."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from tanist.admin.resets.plan import Plan
from tanist.admin.resets.refused import ResetRefused
from tanist.console.access.sessions import Session
from tanist.console.errors import Refused
from tanist.console.views.resets import ResetPage, Resets
from tanist.console.web.actions import MAX_REASON_CHARS, act, answered, check_typed, read_request
from tanist.console.web.guard import API, desk_of, operators, user_of, viewers
from tanist.console.web.templating import page
from tanist.errors import MQError

_T = TypeVar("_T")


class PlanRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to plan; ``target`` as in ``tanist admin resetOffset plan --to``."""

    group: str
    topic: str
    target: str
    reason: str = ""


class MoveRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What moves a group: ``confirm`` is its name."""

    confirm: str
    reason: str = ""


class ReasonRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why, for the brokers' records."""

    reason: str = ""


async def look_list(request: Request) -> Resets:
    desk = desk_of(request)
    return await desk.resets.list(name_server=(await desk.snapshot()).name_server)


async def look_one(request: Request) -> ResetPage:
    desk = desk_of(request)
    name_server = (await desk.snapshot()).name_server
    return await desk.resets.page(request.path_params["plan"], name_server=name_server)


@viewers
async def show_list(request: Request) -> Response:
    wish = {name: request.query_params.get(name, "") for name in ("group", "topic")}
    return page(request, "resets.html", view=await look_list(request), wish=wish, live="resets")


@viewers
async def show_one(request: Request) -> Response:
    return page(request, "reset.html", view=await look_one(request), live="groups resets")


@operators
async def plan(request: Request) -> Response:
    asked = await read_request(request, PlanRequest)
    desk = desk_of(request)

    async def make() -> Plan:
        return await desk.resets.plan(
            (await desk.snapshot()).name_server,
            group=asked.group.strip(),
            topic=asked.topic.strip(),
            target=asked.target.strip(),
            caller=user_of(request).name,
            reason=asked.reason[:MAX_REASON_CHARS],
        )

    return await _planned(request, make, action="plan reset", subject=f"{asked.group} in {asked.topic}")


@operators
async def undo(request: Request) -> Response:
    desk, plan_id = desk_of(request), request.path_params["plan"]

    async def make() -> Plan:
        name_server = (await desk.snapshot()).name_server
        return await desk.resets.undo(plan_id, name_server=name_server, caller=user_of(request).name)

    return await _planned(request, make, action="plan undo", subject=plan_id)


@operators
async def apply(request: Request) -> Response:
    asked = await read_request(request, MoveRequest)
    desk, plan_id = desk_of(request), request.path_params["plan"]
    group = desk.resets.find(plan_id).group

    async def change() -> str:
        check_typed(asked.confirm, group)
        name_server = (await desk.snapshot()).name_server
        return await _refusing(
            desk.resets.apply(
                plan_id,
                name_server=name_server,
                caller=user_of(request).name,
                reason=asked.reason[:MAX_REASON_CHARS],
            )
        )

    return await answered(
        request, f"/resets/{plan_id}", action="apply reset", subject=plan_id, details=group, change=change
    )


@operators
async def approve(request: Request) -> Response:
    asked = await read_request(request, MoveRequest)
    desk, order_id = desk_of(request), request.path_params["order"]

    async def check() -> None:
        name_server = (await desk.snapshot()).name_server
        check_typed(asked.confirm, await _refusing(desk.resets.group_of(order_id, name_server=name_server)))

    return await _decided(request, asked.reason, check)


@operators
async def reject(request: Request) -> Response:
    return await _decided(request, (await read_request(request, ReasonRequest)).reason)


async def _decided(
    request: Request, reason: str, check_approval: Callable[[], Awaitable[None]] | None = None
) -> Response:
    """Approve an order if what is to be checked before that holds; without a check reject it."""
    desk, order_id = desk_of(request), request.path_params["order"]

    async def change() -> str:
        if check_approval is not None:
            await check_approval()
        return await _refusing(
            desk.resets.decide(
                order_id,
                name_server=(await desk.snapshot()).name_server,
                decider=user_of(request).name,
                is_approved=check_approval is not None,
                reason=reason[:MAX_REASON_CHARS],
            )
        )

    action = "reject reset" if check_approval is None else "approve reset"
    return await answered(request, "/resets", action=action, subject=order_id, details=reason, change=change)


async def _planned(
    request: Request, make: Callable[[], Awaitable[Plan]], *, action: str, subject: str
) -> Response:
    """Make a plan, write that down, and lead to its page."""
    made: list[Plan] = []

    async def change() -> str:
        made.append(await _refusing(make()))
        return f"plan {made[0].plan_id}"

    is_api = request.url.path.startswith(API)
    try:
        done = await act(request, action=action, subject=subject, details="", change=change)
    except MQError as error:
        if is_api:
            raise
        session = request.scope["session"]
        assert isinstance(session, Session)
        session.told.append(f"Not done: {error}")
        return RedirectResponse("/resets", status_code=303)
    if is_api:
        return JSONResponse({"done": done})
    return RedirectResponse(f"/resets/{made[0].plan_id}", status_code=303)


async def _refusing(asked: Awaitable[_T]) -> _T:
    try:
        return await asked
    except ResetRefused as refusal:
        raise Refused(str(refusal)) from refusal


ROUTES: list[BaseRoute] = [
    Route("/resets", show_list, methods=["GET"]),
    Route("/resets", plan, methods=["POST"]),
    Route("/resets/{plan}", show_one, methods=["GET"]),
    Route("/resets/{plan}/apply", apply, methods=["POST"]),
    Route("/resets/{plan}/undo", undo, methods=["POST"]),
    Route("/resets/orders/{order}/approve", approve, methods=["POST"]),
    Route("/resets/orders/{order}/reject", reject, methods=["POST"]),
]
