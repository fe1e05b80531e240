"""``resetOffsetByTime`` and ``skipAccumulatedMessage``, with ``mqadmin``'s flags and its table."""

import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import click
from rich.console import Console

from tanist.admin.asking import Access
from tanist.admin.resets.by_time import ByTime, reset_group
from tanist.admin.resets.places import find_places
from tanist.admin.resets.plan import END
from tanist.admin.resets.refused import ResetRefused
from tanist.admin.resets.stock import reset_one_queue
from tanist.admin.resets.times import check_not_ahead, read_time_ms
from tanist.cli.asked import JSON, NAME_SERVER, name_server_of, run_asking
from tanist.cli.reset_options import WAIT
from tanist.cli.reset_views import APPROVE, line, to_json
from tanist.client.session.wire import Wire
from tanist.model.route import MessageQueue

_GROUP = click.option("-g", "--group", required=True, help="The consumer group.")
_TOPIC = click.option("-t", "--topic", required=True, help="The topic.")
_FORCE = click.option(
    "-f",
    "--force",
    "is_force",
    type=bool,
    default=True,
    show_default=True,
    help="Whether a queue may go forward too, true or false.",
)
_LIGHT = click.option(
    "-c", "--cluster", hidden=True, expose_value=False, help="For light queues, which Tanist has not."
)


@click.command(name="resetOffsetByTime")
@_GROUP
@_TOPIC
@click.option("-s", "--timestamp", required=True, help="now, milliseconds, or yyyy-MM-dd#HH:mm:ss:SSS.")
@_FORCE
@click.option("-b", "--broker", "address", help="With -q, only at this broker, host:port.")
@click.option("-q", "--queue", "queue_id", type=click.IntRange(0), help="With -b, only this queue.")
@click.option("-o", "--offset", type=click.IntRange(0), help="With -b and -q, to this offset.")
@_LIGHT
@NAME_SERVER
@WAIT
@JSON
@click.pass_obj
def by_time_command(
    access: Access,
    *,
    group: str,
    topic: str,
    timestamp: str,
    is_force: bool,
    address: str | None,
    queue_id: int | None,
    offset: int | None,
    name_server: str | None,
    wait_s: float,
    as_json: bool,
) -> None:
    """Reset a group to a time at once, as mqadmin does, and tell which clients have confirmed.

    There is no plan of it, and nothing to undo; resetOffset has both.
    """
    now_ms = time.time_ns() // 1_000_000
    zone = datetime.now().astimezone().tzinfo or UTC
    at_ms = now_ms if timestamp == "now" else read_time_ms(timestamp, zone)
    if at_ms is None:
        raise ResetRefused(f"{timestamp!r} is no time; use now, milliseconds, or yyyy-MM-dd#HH:mm:ss:SSS")
    check_not_ahead(at_ms, now_ms, timestamp)
    if not as_json:
        line(
            Console(),
            f"rollback consumer offset by specified group[{group}], topic[{topic}], "
            f"force[{str(is_force).lower()}], timestamp(string)[{timestamp}], timestamp(long)[{at_ms}]",
        )
    if address is not None and queue_id is not None:
        _reset_queue(
            access,
            lambda wire: reset_one_queue(
                wire,
                address,
                topic=topic,
                group=group,
                queue_id=queue_id,
                timestamp_ms=at_ms,
                queue_offset=offset,
            ),
            as_json=as_json,
        )
        return
    if address is not None or queue_id is not None or offset is not None:
        raise click.UsageError("-b and -q go together, and -o needs both")
    _reset(
        access,
        name_server,
        group=group,
        topic=topic,
        timestamp_ms=at_ms,
        is_force=is_force,
        wait_s=wait_s,
        as_json=as_json,
    )


@click.command(name="skipAccumulatedMessage")
@_GROUP
@_TOPIC
@_FORCE
@_LIGHT
@NAME_SERVER
@WAIT
@JSON
@click.pass_obj
def skip_command(
    access: Access,
    *,
    group: str,
    topic: str,
    is_force: bool,
    name_server: str | None,
    wait_s: float,
    as_json: bool,
) -> None:
    """Skip all that a group has not consumed, as mqadmin does, and tell which clients have confirmed."""
    _reset(
        access,
        name_server,
        group=group,
        topic=topic,
        timestamp_ms=END,
        is_force=is_force,
        wait_s=wait_s,
        as_json=as_json,
    )


def _reset_queue(
    access: Access, reset: Callable[[Wire], Awaitable[dict[MessageQueue, int]]], *, as_json: bool
) -> None:
    found = ByTime(run_asking(access, reset), {}, {})
    if as_json:
        click.echo(to_json(_to_json(found)))
    else:
        _print_offsets(found)


def _reset(
    access: Access,
    name_server: str | None,
    *,
    group: str,
    topic: str,
    timestamp_ms: int,
    is_force: bool,
    wait_s: float,
    as_json: bool,
) -> None:
    async def reset(wire: Wire) -> ByTime:
        places = await find_places(wire, await name_server_of(wire, name_server), topic)
        return await reset_group(
            wire, places, group=group, timestamp_ms=timestamp_ms, is_force=is_force, wait_s=wait_s
        )

    found = run_asking(access, reset)
    if as_json:
        click.echo(to_json(_to_json(found)))
    else:
        _print(found)
    if found.outcome:
        raise SystemExit(found.outcome)


def _print_offsets(found: ByTime) -> None:
    click.echo(f"{'#brokerName':40}  {'#queueId':40}  {'#offset':40}")
    for queue, offset in sorted(found.offsets.items()):
        click.echo(f"{queue.broker_name:40}  {queue.queue_id:<40}  {offset:<40}")


def _print(found: ByTime) -> None:
    _print_offsets(found)
    if len(found.orders) > len(found.waiting):
        click.echo(found.tally.sentence())
    for order in found.waiting:
        click.echo(f"{order.broker_name}: nothing is changed before another says {APPROVE} {order.order_id}")
    for name, failure in found.failures.items():
        click.echo(f"{name}: {failure}", err=True)


def _to_json(found: ByTime) -> dict[str, object]:
    count = found.tally
    return {
        "outcome": found.outcome.name,
        "offsets": [
            {"brokerName": queue.broker_name, "queueId": queue.queue_id, "offset": offset}
            for queue, offset in sorted(found.offsets.items())
        ],
        "confirmed": count.confirmed,
        "missing": count.missing,
        "orders": found.orders,
        "failures": found.failures,
    }
