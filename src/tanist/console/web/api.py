"""REST: the data of the pages as JSON, below ``/api/v1``, and the document that describes it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tanist.console.access.audit import AuditEntry
from tanist.console.alarm_desk import Alarms
from tanist.console.certificates import Results
from tanist.console.views.base import View
from tanist.console.views.brokers import BrokerPage, Brokers, brokers_view
from tanist.console.views.dead_letters import DeadLetters, DeadLettersOfGroup
from tanist.console.views.groups import GroupPage, Groups, groups_view
from tanist.console.views.messages import MessagePage, Messages
from tanist.console.views.overview import Overview, overview
from tanist.console.views.replication import Replication
from tanist.console.views.resets import ResetPage, Resets
from tanist.console.views.slave_consumption import SlaveConsumption, slave_consumption_view
from tanist.console.views.topics import TopicPage, Topics, topics_view
from tanist.console.watching.history import History
from tanist.console.web import health
from tanist.console.web.actions import EndRequest, MachineOrder, end_reading, kill_member, restart_member
from tanist.console.web.certificates import VerifyRequest, verify
from tanist.console.web.certificates import look as look_at_results
from tanist.console.web.changes import (
    DeleteRequest,
    SettingChange,
    TestMessage,
    TopicUpdate,
    change_setting,
    delete_topic,
    send_test,
    update_topic,
)
from tanist.console.web.guard import desk_of, operators, viewers
from tanist.console.web.messages import (
    EXPORT_MEDIA,
    ResendRequest,
    export,
    look_at,
    look_at_group,
    look_at_groups,
    look_for,
    resend,
)
from tanist.console.web.openapi import Operation, describe
from tanist.console.web.resets import (
    MoveRequest,
    PlanRequest,
    ReasonRequest,
    apply,
    approve,
    look_list,
    look_one,
    plan,
    reject,
    undo,
)
from tanist.console.web.search import SEARCH, search_of
from tanist.up.control import Act, ClusterState

PREFIX = "/api/v1"

Look = Callable[[Request], Awaitable[msgspec.Struct]]


class Audit(View, frozen=True, kw_only=True):
    """The last changes, the newest first."""

    entries: list[AuditEntry]


class Done(View, frozen=True, kw_only=True):
    """What was done, in words."""

    done: str


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One question, and what looks the answer up."""

    operation: Operation
    look: Look
    is_for_operators: bool = False


async def _overview(request: Request) -> Overview:
    return overview(await desk_of(request).snapshot())


async def _brokers(request: Request) -> Brokers:
    return brokers_view(await desk_of(request).snapshot())


async def _broker(request: Request) -> BrokerPage:
    return await desk_of(request).broker(request.path_params["address"])


async def _replication(request: Request) -> Replication:
    return await desk_of(request).replication()


async def _slave_consumption(request: Request) -> SlaveConsumption:
    return slave_consumption_view(await desk_of(request).snapshot())


async def _topics(request: Request) -> Topics:
    wanted, snapshot = search_of(request), await desk_of(request).snapshot()
    return topics_view(snapshot, search=wanted.text, are_all_shown=wanted.are_all_shown)


async def _topic(request: Request) -> TopicPage:
    return await desk_of(request).topic(request.path_params["topic"])


async def _groups(request: Request) -> Groups:
    wanted, snapshot = search_of(request), await desk_of(request).snapshot()
    return groups_view(snapshot, search=wanted.text, are_all_shown=wanted.are_all_shown)


async def _group(request: Request) -> GroupPage:
    return await desk_of(request).group(request.path_params["group"])


async def _machine(request: Request) -> ClusterState:
    return await desk_of(request).order(Act.STATUS)


async def _history(request: Request) -> History:
    desk = desk_of(request)
    desk.watcher.touch()
    return desk.watcher.history


async def _alarms(request: Request) -> Alarms:
    await desk_of(request).snapshot()
    return desk_of(request).alarms.view


async def _audit(request: Request) -> Audit:
    return Audit(entries=desk_of(request).audit.last)


_SPAN = {
    "begin": "From when on: -2h, a time of UTC, or milliseconds.",
    "end": "Until when; now by default.",
}
_MESSAGE = {
    "topic": "The topic; not needed for the id of a place.",
    "id": "The id of a message: that of its place, or with its topic the one that its producer gave.",
    "key": "A key of the message.",
    **_SPAN,
}

ENDPOINTS: Sequence[Endpoint] = (
    Endpoint(
        Operation("/overview", "The cluster in short, and what asks for an operator", Overview), _overview
    ),
    Endpoint(Operation("/brokers", "All brokers", Brokers), _brokers),
    Endpoint(Operation("/brokers/{address}", "One broker, its settings and figures", BrokerPage), _broker),
    Endpoint(Operation("/replication", "Who follows whom, and how far behind", Replication), _replication),
    Endpoint(
        Operation("/slave-consumption", "Who is read, why, and what has happened", SlaveConsumption),
        _slave_consumption,
    ),
    Endpoint(
        Operation("/topics", "Topics", Topics, query=SEARCH),
        _topics,
    ),
    Endpoint(Operation("/topics/{topic}", "One topic, its route and queues", TopicPage), _topic),
    Endpoint(Operation("/groups", "Consumer groups", Groups, query=SEARCH), _groups),
    Endpoint(Operation("/groups/{group}", "One group, queue by queue, and its members", GroupPage), _group),
    Endpoint(Operation("/messages", "Messages by id, key or time", Messages, query=_MESSAGE), look_for),
    Endpoint(Operation("/messages/{id}", "One message, and who consumed it", MessagePage), look_at),
    Endpoint(Operation("/dead-letters", "Groups that gave up on messages", DeadLetters), look_at_groups),
    Endpoint(
        Operation("/dead-letters/{group}", "What a group gave up on", DeadLettersOfGroup, query=_SPAN),
        look_at_group,
    ),
    Endpoint(Operation("/resets", "Orders that brokers know, and plans of this console", Resets), look_list),
    Endpoint(Operation("/resets/{plan}", "One plan, and what became of it", ResetPage), look_one),
    Endpoint(Operation("/machine", "The processes that tanist up runs", ClusterState), _machine),
    Endpoint(Operation("/alarms", "What is the matter, what was, and by which rules", Alarms), _alarms),
    Endpoint(Operation("/certificates", "What Spark jobs wrote down", Results), look_at_results),
    Endpoint(Operation("/history", "Figures of the last minutes", History), _history),
    Endpoint(
        Operation("/audit", "The last changes", Audit, is_for_operators=True), _audit, is_for_operators=True
    ),
)


def _change(path: str, summary: str, body: type[msgspec.Struct]) -> Operation:
    return Operation(path, summary, Done, method="post", body=body, is_for_operators=True)


CHANGES: Sequence[tuple[Operation, Callable[[Request], Awaitable[Response]]]] = (
    (_change("/dead-letters/{group}/resend", "Give a group its dead letters again", ResendRequest), resend),
    (_change("/topics", "Make a topic, or change it", TopicUpdate), update_topic),
    (_change("/topics/{topic}/delete", "Delete a topic and its messages", DeleteRequest), delete_topic),
    (_change("/topics/{topic}/send", "Send a test message", TestMessage), send_test),
    (_change("/brokers/{address}/settings", "Change a setting of a broker", SettingChange), change_setting),
    (_change("/certificates/{name}/verify", "Check a store again", VerifyRequest), verify),
    (_change("/resets", "Plan a reset; nothing is changed", PlanRequest), plan),
    (_change("/resets/{plan}/apply", "Move the group as planned", MoveRequest), apply),
    (_change("/resets/{plan}/undo", "Plan the way back; nothing is changed", ReasonRequest), undo),
    (_change("/resets/orders/{order}/approve", "Let an order that waits be done", MoveRequest), approve),
    (_change("/resets/orders/{order}/reject", "Do not let it be done", ReasonRequest), reject),
    (
        _change(
            "/slave-consumption/{group}/end",
            "Have a master be read again whose slave does not come back",
            EndRequest,
        ),
        end_reading,
    ),
    (_change("/machine/kill", "Kill a process of tanist up, as a crash would", MachineOrder), kill_member),
    (_change("/machine/restart", "Start processes of tanist up again", MachineOrder), restart_member),
)


EXPORT = Operation(
    "/dead-letters/{group}/export",
    "The dead letters of a group as a file",
    None,
    query={**_SPAN, "format": "jsonl or csv"},
    files=EXPORT_MEDIA,
)

OPERATIONS: Sequence[Operation] = (
    *(endpoint.operation for endpoint in ENDPOINTS),
    *(operation for operation, _ in CHANGES),
    EXPORT,
    *(operation for operation, _ in health.OPERATIONS),
)
"""All that the document describes."""


def json_answer(value: object, *, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status_code=status, media_type="application/json")


def _handler(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        return json_answer(await endpoint.look(request))

    return operators(handle) if endpoint.is_for_operators else viewers(handle)


@viewers
async def show_document(_request: Request) -> Response:
    return json_answer(describe(PREFIX, OPERATIONS))


ROUTES: list[BaseRoute] = [
    *(Route(PREFIX + endpoint.operation.path, _handler(endpoint), methods=["GET"]) for endpoint in ENDPOINTS),
    *(Route(PREFIX + operation.path, handler, methods=["POST"]) for operation, handler in CHANGES),
    Route(PREFIX + EXPORT.path, export, methods=["GET"]),
    Route(f"{PREFIX}/openapi.json", show_document, methods=["GET"]),
]
