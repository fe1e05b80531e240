"""Pages and REST of messages and dead letters: search, look at one, resend, export."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from urllib.parse import quote, urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from tanist.admin.message_search import ALWAYS, TimeSpan
from tanist.console.errors import BadRequest
from tanist.console.message_desk import MAX_EXPORTED, MessageQuery
from tanist.console.views.dead_letters import (
    DeadLetters,
    DeadLettersOfGroup,
    csv_cut,
    csv_head,
    csv_line,
    dead_letters_view,
    json_cut,
    json_line,
)
from tanist.console.views.messages import MessagePage, Messages
from tanist.console.web.actions import answered, check_typed, read_request
from tanist.console.web.guard import desk_of, operators, viewers
from tanist.console.web.templating import page
from tanist.errors import MQError

_CHUNK_BYTES = 64 << 10
_CUT = f"there are more than {MAX_EXPORTED} dead letters; ask for a shorter time with begin and end"
_EXPORTS = {
    "jsonl": ("application/x-ndjson", b"", json_line, json_cut),
    "csv": ("text/csv; charset=utf-8", csv_head(), csv_line, csv_cut),
}
EXPORT_MEDIA = tuple(media.partition(";")[0] for media, *_ in _EXPORTS.values())
"""As what an export can be had."""


class ResendRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dead letters: those with these ids, or with none all of a span of time.

    For the latter ``confirm`` has to be the group's name.
    """

    ids: list[str] = []
    confirm: str = ""
    begin: str = ""
    end: str = ""


async def look_for(request: Request) -> Messages:
    desk, query = desk_of(request), _query(request)
    if query.is_empty:
        raise BadRequest("give an id, or a topic with a key or a span of time")
    return await desk.messages.search(await desk.snapshot(), query)


async def look_at(request: Request) -> MessagePage:
    desk = desk_of(request)
    return await desk.messages.page(await desk.snapshot(), request.path_params["id"])


async def look_at_groups(request: Request) -> DeadLetters:
    return dead_letters_view(await desk_of(request).snapshot())


async def look_at_group(request: Request) -> DeadLettersOfGroup:
    desk, group, span = desk_of(request), request.path_params["group"], _dead_span(request)
    found = await desk.messages.dead_letters(await desk.snapshot(), group, span)
    return DeadLettersOfGroup(group=group, begin_ms=span.begin_ms, end_ms=span.end_ms, found=found)


@viewers
async def show_search(request: Request) -> Response:
    asked = {name: request.query_params.get(name, "") for name in ("topic", "id", "key", "begin", "end")}
    found, problem, more = None, None, None
    if any(asked.values()):
        try:
            found = await look_for(request)
        except MQError as error:
            problem = str(error)
    if found is not None and found.is_cut and found.messages and not asked["key"]:
        more = "?" + urlencode({**asked, "begin": str(found.messages[-1].stored_ms)})
    snapshot = await desk_of(request).snapshot()
    topics = sorted({topic for look in snapshot.speakers() for topic in look.tables.topics})
    return page(
        request,
        "messages.html",
        asked=asked,
        found=found,
        problem=problem,
        more=more,
        topics=topics,
    )


@viewers
async def show_message(request: Request) -> Response:
    return page(request, "message.html", view=await look_at(request))


@viewers
async def show_dead_letters(request: Request) -> Response:
    return page(request, "dead_letters.html", view=await look_at_groups(request), live="dead-letters")


@viewers
async def show_dead_letters_of(request: Request) -> Response:
    asked = {name: request.query_params.get(name, "") for name in ("begin", "end")}
    view = await look_at_group(request)
    more = None
    if view.found.is_cut and view.found.messages:
        more = "?" + urlencode({**asked, "begin": str(view.found.messages[-1].stored_ms)})
    query = urlencode(asked)
    return page(
        request,
        "dead_letters_of.html",
        live="dead-letters",
        view=view,
        asked=asked,
        query=query,
        more=more,
    )


@viewers
async def export(request: Request) -> Response:
    """The dead letters of a group as a file, read from the brokers while it is sent."""
    kind = request.query_params.get("format", "jsonl")
    if kind not in _EXPORTS:
        raise BadRequest(f"format={kind[:20]} is not known; use {' or '.join(_EXPORTS)}")
    desk, group, span = desk_of(request), request.path_params["group"], _dead_span(request)
    snapshot = await desk.snapshot()
    media, head, line, cut = _EXPORTS[kind]

    async def lines() -> AsyncGenerator[bytes]:
        waiting = [head]
        size = len(head)
        async with aclosing(desk.messages.export_dead_letters(snapshot, group, span)) as messages:
            async for message in messages:
                waiting.append(cut(_CUT) if message is None else line(message))
                size += len(waiting[-1])
                if size >= _CHUNK_BYTES:
                    yield b"".join(waiting)
                    waiting, size = [], 0
        yield b"".join(waiting)

    name = quote(f"dead-letters-{group}.{kind}", safe="")
    return StreamingResponse(
        lines(), media_type=media, headers={"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
    )


@operators
async def resend(request: Request) -> Response:
    asked = await read_request(request, ResendRequest)
    desk, group = desk_of(request), request.path_params["group"]

    async def change() -> str:
        snapshot = await desk.snapshot()
        if asked.ids:
            return await desk.messages.resend(snapshot, group, asked.ids)
        check_typed(asked.confirm, group)
        span = desk.messages.span(asked.begin or "0", asked.end)
        return await desk.messages.resend_range(snapshot, group, span)

    details = (
        ", ".join(asked.ids[:20])
        if asked.ids
        else f"from {asked.begin or 'the first'} to {asked.end or 'now'}"
    )
    return await answered(
        request,
        f"/dead-letters/{quote(group, safe='')}",
        action="resend dead letters",
        subject=group,
        details=details,
        change=change,
    )


def _query(request: Request) -> MessageQuery:
    given = request.query_params
    return desk_of(request).messages.query(
        topic=given.get("topic", ""),
        message_id=given.get("id", ""),
        key=given.get("key", ""),
        begin=given.get("begin", ""),
        end=given.get("end", ""),
    )


def _dead_span(request: Request) -> TimeSpan:
    """All that is kept, unless somebody wants less."""
    begin, end = (request.query_params.get(name, "") for name in ("begin", "end"))
    if not begin and not end:
        return ALWAYS
    return desk_of(request).messages.span(begin or "0", end)


ROUTES: list[BaseRoute] = [
    Route("/messages", show_search, methods=["GET"]),
    Route("/messages/{id}", show_message, methods=["GET"]),
    Route("/dead-letters", show_dead_letters, methods=["GET"]),
    Route("/dead-letters/{group}", show_dead_letters_of, methods=["GET"]),
    Route("/dead-letters/{group}/export", export, methods=["GET"]),
    Route("/dead-letters/{group}/resend", resend, methods=["POST"]),
]
