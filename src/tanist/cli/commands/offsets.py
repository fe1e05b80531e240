"""Offsets: how far groups are behind, and one group's offsets given to another.

``resetOffset``, ``resetOffsetByTime`` and ``skipAccumulatedMessage`` move them.
"""

import click

from tanist.admin import offsets
from tanist.cli.commanding import BROKER, TOPIC, Asker, command
from tanist.cli.shown import Shown, done_at, listing, table_of


@command(
    "consumerProgress",
    click.option("-g", "--groupName", "group", help="One group; without it all of them."),
    click.option("-t", "--topicName", "topic", help="Only in this topic."),
    click.option(
        "-s", "--showClientIP", "with_clients", type=bool, default=False, help="Who has each queue."
    ),
    click.option("-c", "--cluster", hidden=True, help="For light queues, which Tanist has not."),
    repeats=True,
)
async def consumer_progress(
    ask: Asker, *, group: str | None, topic: str | None, with_clients: bool, cluster: str | None
) -> Shown:
    """Show how far a group is behind, queue by queue, or all groups together."""
    del cluster
    name_server = await ask.name_server()
    if group is None:
        return listing(await offsets.all_groups(ask.wire, name_server), offsets.GroupRow, none="no group")
    found = await offsets.group_progress(ask.wire, name_server, group, topic=topic, with_clients=with_clients)
    total = (
        f"consume tps: {found.consume_tps:.2f}, diff total: {found.diff_total}, "
        f"inflight total: {found.inflight_total}"
    )
    return Shown(found, [table_of(found.queues, offsets.ProgressRow), total])


@command(
    "brokerConsumeStats",
    BROKER,
    click.option("-o", "--order", "is_ordered", type=bool, default=False, help="Ordered topics."),
    click.option("-l", "--level", "least_diff", type=int, default=0, help="Only what is so far behind."),
    click.option("-t", "--timeoutMillis", "timeout_ms", type=int, hidden=True),
    repeats=True,
)
async def broker_consume_stats(
    ask: Asker, *, address: str, is_ordered: bool, least_diff: int, timeout_ms: int | None
) -> Shown:
    """Show how far every group of a broker is behind, queue by queue."""
    del timeout_ms
    rows, total = await offsets.broker_progress(
        ask.wire, address, is_ordered=is_ordered, least_diff=least_diff
    )
    return Shown(
        {"queues": rows, "diffTotal": total}, [table_of(rows, offsets.BehindRow), f"diff total: {total}"]
    )


@command(
    "cloneGroupOffset",
    click.option("-s", "--srcGroup", "source", required=True, help="The group whose offsets are taken."),
    click.option("-d", "--destGroup", "destination", required=True, help="The group that gets them."),
    TOPIC,
    click.option("-o", "--offline", "is_offline", type=bool, default=False, help="Whether it is offline."),
)
async def clone_group_offset(
    ask: Asker, *, source: str, destination: str, topic: str, is_offline: bool
) -> Shown:
    """Let a group go on where another one stands. It should be offline, or its clients go on as they were."""
    told = await offsets.clone_group_offset(
        ask.wire,
        await ask.name_server(),
        source=source,
        destination=destination,
        topic=topic,
        is_offline=is_offline,
    )
    return done_at(told, f"{destination} stands where {source} does in {topic}")


COMMANDS = (consumer_progress, broker_consume_stats, clone_group_offset)
