"""What operators change. Each change is written down before it is made, and what came of it after."""

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar, get_origin

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from tanist.admin.slave_consume import end_slave_consume, slave_consume_status
from tanist.console.access.audit import AuditEntry, AuditFailed
from tanist.console.access.sessions import Session
from tanist.console.errors import BadRequest, Partly, Refused, Unknown
from tanist.console.views.slave_consumption import slave_consumption_view
from tanist.console.web.forms import read_body, read_fields
from tanist.console.web.guard import API, address_of, desk_of, operators, user_of
from tanist.errors import MQError, ResponseError
from tanist.protocol.java_json import BAD_JSON
from tanist.up.control import Act, OrderFailed

_log = logging.getLogger(__name__)

_T = TypeVar("_T", bound=msgspec.Struct)

MAX_REASON_CHARS = 500


async def act(
    request: Request, *, action: str, subject: str, details: str, change: Callable[[], Awaitable[str]]
) -> str:
    """Make a change and write it down; what was done, in words. Raises what the change raises.

    Raises AuditFailed, and does nothing, if it can not be written down before.
    """
    desk = desk_of(request)

    def note(outcome: str, text: str) -> None:
        desk.audit.write(
            AuditEntry(
                at_ms=desk.clock.now_ms(),
                user=user_of(request).name,
                address=address_of(request),
                action=action,
                subject=subject,
                outcome=outcome,
                details=text,
            )
        )

    def note_after(outcome: str, text: str) -> str:
        """What came of it, with the words that it is not written down if it is not: it can not be undone."""
        try:
            note(outcome, text)
        except AuditFailed as failure:
            _log.error("audit failed action=%s outcome=%s reason=%s", action, outcome, failure.problem)
            return f"{text}; this could not be written down: {failure.problem}"
        return text

    note("asked", details)
    try:
        done = await change()
    except (Refused, ResponseError) as refusal:
        note_after("refused", str(refusal))
        raise
    except Partly as error:
        note_after("partly", str(error))
        desk.watcher.look_soon()
        raise
    except MQError as error:
        note_after("failed", str(error))
        raise
    desk.watcher.look_soon()
    return note_after("done", done)


def check_typed(typed: str, name: str) -> None:
    """A change that can not be taken back is made only by who has typed the name of what it is made to."""
    if typed != name:
        raise Refused(f"type {name} to say that you mean it; nothing was changed")


class EndRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The end of a slave consumption, as REST takes it: ``confirm`` is the group's name."""

    confirm: str
    reason: str = ""


@operators
async def end_reading(request: Request) -> Response:
    """Have the master of a group be read again whose slave does not come back."""
    group, asked = request.path_params["group"], await read_request(request, EndRequest)

    async def change() -> str:
        check_typed(asked.confirm, group)
        view = slave_consumption_view(await desk_of(request).snapshot())
        found = next((each for each in view.groups if each.group == group), None)
        if found is None:
            raise Unknown(f"no group {group} has a registry")
        if found.ending is None:
            raise Refused(f"{group} has no slave consumption that an operator could end")
        wire = desk_of(request).wire
        status = await slave_consume_status(wire, found.ending.master)
        return await end_slave_consume(wire, status, reason=asked.reason[:MAX_REASON_CHARS])

    return await answered(
        request,
        "/slave-consumption",
        action="end slave consumption",
        subject=group,
        details=asked.reason,
        change=change,
    )


class MachineOrder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whom to kill or to start again: ``master``, or a process by its name; empty for all that are dead."""

    whom: str = ""


def _machine(act: Act) -> Callable[[Request], Awaitable[Response]]:
    @operators
    async def order(request: Request) -> Response:
        """Kill a process of the cluster that ``tanist up`` runs as a crash would, or start it again."""
        asked = await read_request(request, MachineOrder)

        async def change() -> str:
            try:
                return (await desk_of(request).order(act, asked.whom)).done
            except OrderFailed as failure:
                raise Refused(str(failure)) from failure

        return await answered(
            request, "/machine", action=act.value, subject=asked.whom or "all", details="", change=change
        )

    return order


kill_member, restart_member = _machine(Act.KILL), _machine(Act.RESTART)


async def answered(
    request: Request,
    back: str,
    *,
    action: str,
    subject: str,
    details: str,
    change: Callable[[], Awaitable[str]],
) -> Response:
    """Make a change and say what came of it: REST in JSON, browsers on the page that they came from."""
    is_api = request.url.path.startswith(API)
    try:
        done = await act(request, action=action, subject=subject, details=details, change=change)
    except MQError as error:
        if is_api:
            raise
        done = f"{'Done only in part' if isinstance(error, Partly) else 'Not done'}: {error}"
    if is_api:
        return JSONResponse({"done": done})
    session = request.scope["session"]
    assert isinstance(session, Session)
    session.told.append(done)
    return RedirectResponse(back, status_code=303)


async def read_request(request: Request, kind: type[_T]) -> _T:
    """What REST or a form sent; a field that a form leaves out is as by default. Raises BadRequest."""
    try:
        if request.url.path.startswith(API):
            return msgspec.json.decode(await read_body(request), type=kind)
        fields = await read_fields(request)
        known = {field.name: field for field in msgspec.structs.fields(kind)}
        given: dict[str, object] = {name: value for name, value in fields if name in known}
        for name, field in known.items():
            if get_origin(field.type) is list:
                given[name] = [value for found, value in fields if found == name]
        # Numbers come as text in a form, and boxes that are ticked as "on".
        return msgspec.convert(given, kind, strict=False)
    except BAD_JSON as error:
        raise BadRequest(str(error)) from error


ROUTES: list[BaseRoute] = [
    Route("/machine/kill", kill_member, methods=["POST"]),
    Route("/machine/restart", restart_member, methods=["POST"]),
    Route("/slave-consumption/{group}/end", end_reading, methods=["POST"]),
]
