"""Changes of topics and of brokers' settings, from pages and REST, and the page of one topic."""

from typing import Literal
from urllib.parse import quote

import msgspec
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tanist.client.errors import InvalidArgument
from tanist.console.change_desk import GRAVE_KEYS
from tanist.console.errors import BadRequest
from tanist.console.views.topic_picture import topic_picture
from tanist.console.web.actions import answered, check_typed, read_request
from tanist.console.web.guard import desk_of, operators, viewers
from tanist.console.web.templating import page

_MAX_TEST_BYTES = 64 << 10


class TopicUpdate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A topic as it is to be, on these replica groups or on all; to change one its name is typed."""

    topic: str
    queues: int = 8
    permission: Literal["RW", "R", "W"] = "RW"
    ordered: bool = False
    brokers: list[str] = []
    confirm: str = ""


class DeleteRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``confirm`` is the topic's name."""

    confirm: str


class TestMessage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message to try a topic with; ``keys`` are separated by blanks."""

    body: str = ""
    tags: str = ""
    keys: str = ""


class SettingChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One setting. ``confirm`` is the broker's address, for those that can stop its clients."""

    key: str
    value: str
    confirm: str = ""


@viewers
async def show_topic(request: Request) -> Response:
    view = await desk_of(request).topic(request.path_params["topic"])
    # Made of escaped parts; see there.
    picture = Markup(topic_picture(view.producers, view.topic.topic, view.groups))  # noqa: S704
    return page(request, "topic.html", view=view, picture=picture, live="topics")


@operators
async def update_topic(request: Request) -> Response:
    asked = await read_request(request, TopicUpdate)
    desk, topic = desk_of(request), asked.topic.strip()

    async def change() -> str:
        snapshot = await desk.snapshot()
        if any(topic in look.tables.topics for look in snapshot.speakers()):
            check_typed(asked.confirm, topic)
        return await desk.changes.update_topic(
            snapshot,
            topic,
            broker_names=asked.brokers,
            queue_count=asked.queues,
            permission=asked.permission,
            is_ordered=asked.ordered,
        )

    details = f"{asked.queues} queues, {asked.permission}{', ordered' if asked.ordered else ''}"
    return await answered(
        request, "/topics", action="update topic", subject=topic, details=details, change=change
    )


@operators
async def delete_topic(request: Request) -> Response:
    asked = await read_request(request, DeleteRequest)
    desk, topic = desk_of(request), request.path_params["topic"]

    async def change() -> str:
        check_typed(asked.confirm, topic)
        return await desk.changes.delete_topic(await desk.snapshot(), topic)

    return await answered(request, "/topics", action="delete topic", subject=topic, details="", change=change)


@operators
async def send_test(request: Request) -> Response:
    asked = await read_request(request, TestMessage)
    desk, topic = desk_of(request), request.path_params["topic"]

    async def change() -> str:
        if len(asked.body.encode()) > _MAX_TEST_BYTES:
            raise BadRequest(f"a test message has at most {_MAX_TEST_BYTES} bytes")
        try:
            return await desk.changes.send(
                await desk.snapshot(), topic, body=asked.body, tags=asked.tags, keys=asked.keys
            )
        except InvalidArgument as error:
            raise BadRequest(str(error)) from error

    details = f"{len(asked.body)} characters, tag {asked.tags or 'none'}, keys {asked.keys or 'none'}"
    return await answered(
        request,
        f"/topics/{quote(topic, safe='')}",
        action="send test message",
        subject=topic,
        details=details,
        change=change,
    )


@operators
async def change_setting(request: Request) -> Response:
    asked = await read_request(request, SettingChange)
    desk, address = desk_of(request), request.path_params["address"]
    key, value = asked.key.strip(), asked.value.strip()

    async def change() -> str:
        if key in GRAVE_KEYS:
            check_typed(asked.confirm, address)
        return await desk.changes.change_setting(await desk.snapshot(), address, key, value)

    return await answered(
        request,
        f"/brokers/{quote(address, safe=':')}",
        action="change setting",
        subject=address,
        details=f"{key}={value}",
        change=change,
    )


ROUTES: list[BaseRoute] = [
    Route("/topics/{topic}", show_topic, methods=["GET"]),
    Route("/topics", update_topic, methods=["POST"]),
    Route("/topics/{topic}/delete", delete_topic, methods=["POST"]),
    Route("/topics/{topic}/send", send_test, methods=["POST"]),
    Route("/brokers/{address}/settings", change_setting, methods=["POST"]),
]
