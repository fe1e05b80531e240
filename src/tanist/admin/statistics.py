"""How much comes and goes: topics and their groups, over a minute and over a day."""

from collections.abc import Sequence

from tanist.admin.cluster import topic_route
from tanist.admin.groups import addresses_in
from tanist.admin.offsets import consume_stats
from tanist.admin.parallel import ask_each, in_parallel
from tanist.admin.rows import Row
from tanist.admin.topics import consuming_groups, topic_names
from tanist.client.session.wire import Wire
from tanist.errors import ResponseError
from tanist.model.topics import DLQ_PREFIX, RETRY_PREFIX
from tanist.protocol.bodies.stats import BrokerStats
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.messages import ViewBrokerStatsRequest
from tanist.protocol.java_json import decode_java_json

_PUT, _GET = "TOPIC_PUT_NUMS", "GROUP_GET_NUMS"


class TopicRates(Row, frozen=True, kw_only=True):
    """One topic and one of its groups."""

    topic: str
    consumer_group: str | None
    accumulation: int
    in_tps: float
    out_tps: float
    in_24_hours: int
    out_24_hours: int


async def broker_stats(wire: Wire, address: str, name: str, key: str) -> BrokerStats:
    """One counter of a broker. Raises ResponseError if nothing was counted in the last day."""
    header = ViewBrokerStatsRequest(stats_name=name, stats_key=key)
    answer = await wire.ask(address, Command.request(RequestCode.VIEW_BROKER_STATS_DATA, header))
    return decode_java_json(answer.body, BrokerStats)


async def stats_all(
    wire: Wire, name_server: str, *, topic: str | None = None, is_active_only: bool = False
) -> list[TopicRates]:
    """The rates of all topics and their groups, or of one topic."""
    names = [
        name
        for name in await topic_names(wire, name_server)
        if topic in (None, name) and not name.startswith((RETRY_PREFIX, DLQ_PREFIX))
    ]
    found = await in_parallel(names, lambda name: _topic_rates(wire, name_server, name), at_once=4)
    rows = [row for rows in found for row in rows]
    return [row for row in rows if not is_active_only or row.in_24_hours or row.out_24_hours]


async def _topic_rates(wire: Wire, name_server: str, topic: str) -> list[TopicRates]:
    try:
        route = await topic_route(wire, name_server, topic)
        groups: Sequence[str | None] = await consuming_groups(wire, route, topic) or [None]
    except ResponseError:
        # It was deleted since, or none of its brokers is there.
        return []
    addresses = addresses_in(route)
    in_tps, in_day = await _sums(wire, addresses, _PUT, topic)
    rows: list[TopicRates] = []
    for group in groups:
        out_tps, out_day = (
            (0.0, 0) if group is None else await _sums(wire, addresses, _GET, f"{topic}@{group}")
        )
        rows.append(
            TopicRates(
                topic=topic,
                consumer_group=group,
                accumulation=0 if group is None else await _behind(wire, addresses, group, topic),
                in_tps=in_tps,
                out_tps=out_tps,
                in_24_hours=in_day,
                out_24_hours=out_day,
            )
        )
    return rows


async def _sums(wire: Wire, addresses: Sequence[str], name: str, key: str) -> tuple[float, int]:
    """A counter of all brokers together: its rate in the last minute, and its sum of the last day."""
    told = await ask_each(addresses, lambda address: broker_stats(wire, address, name, key))
    stats = [each.value for each in told if each.value is not None]
    return sum(each.minute.tps for each in stats), sum(_day(each) for each in stats)


def _day(stats: BrokerStats) -> int:
    """Before a broker has counted for an hour or a minute its longer spans are empty."""
    return next((span.sum for span in (stats.day, stats.hour, stats.minute) if span.sum), 0)


async def _behind(wire: Wire, addresses: Sequence[str], group: str, topic: str) -> int:
    told = await ask_each(addresses, lambda address: consume_stats(wire, address, group, topic))
    tables = [each.value.offset_table for each in told if each.value is not None]
    return sum(
        max(0, queue.broker_offset - queue.consumer_offset) for table in tables for queue in table.values()
    )
