"""The pages, each with an address of its own."""

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tanist.console.change_desk import GRAVE_KEYS
from tanist.console.views.brokers import brokers_view
from tanist.console.views.epoch_timeline import epoch_timeline
from tanist.console.views.groups import groups_view
from tanist.console.views.overview import overview
from tanist.console.views.slave_consumption import slave_consumption_view
from tanist.console.views.topics import topics_view
from tanist.console.web.guard import desk_of, operators, viewers
from tanist.console.web.search import search_of
from tanist.console.web.templating import page
from tanist.up.control import Act


@viewers
async def show_overview(request: Request) -> Response:
    view = overview(await desk_of(request).snapshot())
    return page(request, "overview.html", view=view, live="overview")


@viewers
async def show_brokers(request: Request) -> Response:
    view = brokers_view(await desk_of(request).snapshot())
    return page(request, "brokers.html", view=view, live="brokers")


@viewers
async def show_broker(request: Request) -> Response:
    view = await desk_of(request).broker(request.path_params["address"])
    return page(request, "broker.html", view=view, live="brokers", grave_keys=sorted(GRAVE_KEYS))


@viewers
async def show_replication(request: Request) -> Response:
    view = await desk_of(request).replication()
    # Made of numbers and escaped parts; see there.
    timelines = {group.name: Markup(epoch_timeline(group.epochs)) for group in view.groups}  # noqa: S704
    return page(request, "replication.html", view=view, timelines=timelines, live="replication")


@viewers
async def show_slave_consumption(request: Request) -> Response:
    view = slave_consumption_view(await desk_of(request).snapshot())
    return page(request, "slave_consumption.html", view=view, live="slave-consumption")


@viewers
async def show_topics(request: Request) -> Response:
    wanted, snapshot = search_of(request), await desk_of(request).snapshot()
    view = topics_view(snapshot, search=wanted.text, are_all_shown=wanted.are_all_shown)
    return page(request, "topics.html", view=view, live="topics", wanted=wanted, names=snapshot.names)


@viewers
async def show_groups(request: Request) -> Response:
    wanted, snapshot = search_of(request), await desk_of(request).snapshot()
    view = groups_view(snapshot, search=wanted.text, are_all_shown=wanted.are_all_shown)
    return page(request, "groups.html", view=view, live="groups", wanted=wanted)


@viewers
async def show_group(request: Request) -> Response:
    view = await desk_of(request).group(request.path_params["group"])
    return page(request, "group.html", view=view, live="groups")


@viewers
async def show_machine(request: Request) -> Response:
    view = await desk_of(request).order(Act.STATUS)
    return page(request, "machine.html", view=view, live="machine")


@viewers
async def show_alarms(request: Request) -> Response:
    await desk_of(request).snapshot()
    return page(request, "alarms.html", view=desk_of(request).alarms.view, live="alarms")


@operators
async def show_audit(request: Request) -> Response:
    return page(request, "audit.html", entries=desk_of(request).audit.last, live="audit")


ROUTES: list[BaseRoute] = [
    Route("/", show_overview, methods=["GET"]),
    Route("/brokers", show_brokers, methods=["GET"]),
    Route("/brokers/{address}", show_broker, methods=["GET"]),
    Route("/replication", show_replication, methods=["GET"]),
    Route("/slave-consumption", show_slave_consumption, methods=["GET"]),
    Route("/topics", show_topics, methods=["GET"]),
    Route("/groups", show_groups, methods=["GET"]),
    Route("/groups/{group}", show_group, methods=["GET"]),
    Route("/machine", show_machine, methods=["GET"]),
    Route("/alarms", show_alarms, methods=["GET"]),
    Route("/audit", show_audit, methods=["GET"]),
]
