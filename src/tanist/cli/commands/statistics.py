"""Figures: how much comes and goes in topics and groups."""

import click

from tanist.admin import statistics
from tanist.cli.commanding import Asker, command
from tanist.cli.shown import Shown, listing


@command(
    "statsAll",
    click.option("-a", "--activeTopic", "is_active_only", is_flag=True, help="Only where something comes."),
    click.option("-t", "--topic", help="Only this topic."),
    repeats=True,
)
async def stats_all(ask: Asker, *, is_active_only: bool, topic: str | None) -> Shown:
    """Show what comes into each topic and goes out to each of its groups, a second and in 24 hours."""
    rows = await statistics.stats_all(
        ask.wire, await ask.name_server(), topic=topic, is_active_only=is_active_only
    )
    return listing(rows, statistics.TopicRates, none="no topic")


COMMANDS = (stats_all,)
