"""``tanist sim``: thousands of histories on a virtual clock, each of which one seed tells again."""

import os
import sys
import time
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.progress import Progress

from tanist.cli.asked import JSON, RECORD
from tanist.sim import WORLDS, Story, tell, tell_many, tell_shortest

EXIT_BROKEN = 1
_CLOCK_S = 0.01
"""How exactly a core's time is told."""


@click.command()
@click.option(
    "--world",
    "worlds",
    multiple=True,
    type=click.Choice(list(WORLDS)),
    help="What is simulated; without it all worlds.",
)
@click.option("--seed", default=0, show_default=True, help="The first history.")
@click.option(
    "--count", default=500, show_default=True, type=click.IntRange(1), help="Histories of each world."
)
@click.option("--jobs", default=os.cpu_count() or 1, show_default="all cores", type=click.IntRange(1, 256))
@click.option("--trace", is_flag=True, help="Tell the story of --seed instead.")
@click.option(
    "--shrink", is_flag=True, help="Tell the story of --seed with no more troubles than it needs to break."
)
@JSON
@RECORD
def sim(
    *,
    worlds: tuple[str, ...],
    seed: int,
    count: int,
    jobs: int,
    trace: bool,
    shrink: bool,
    as_json: bool,
    record: Path | None,
) -> None:
    """Run the machines of the brokers on a virtual clock, network and registry, and look for a broken rule.

    The same seed gives the same history: `tanist sim --world reading --seed 17 --trace` tells it again. Exit
    code 1 if a rule was broken.
    """
    asked = worlds or tuple(WORLDS)
    if trace or shrink:
        stories = [tell_shortest(world, seed) if shrink else tell(world, seed) for world in asked]
        _show_traces(stories, as_json=as_json)
    else:
        stories = _run(asked, range(seed, seed + count), jobs=jobs, as_json=as_json, record=record)
    if any(story.broken is not None for story in stories):
        sys.exit(EXIT_BROKEN)


def _run(
    worlds: tuple[str, ...], seeds: range, *, jobs: int, as_json: bool, record: Path | None
) -> list[Story]:
    began_s, busy_s = time.monotonic(), _busy_s()
    with Progress(console=Console(stderr=True), transient=True) as progress:
        told = tell_many(worlds, seeds, jobs=jobs)
        stories = list(progress.track(told, total=len(worlds) * len(seeds), description="histories"))
    took_s, busy_s = time.monotonic() - began_s, _busy_s() - busy_s
    broken = [story for story in stories if story.broken is not None]
    found = {
        "worlds": worlds,
        "firstSeed": seeds.start,
        "histories": len(stories),
        "switches": sum(story.switches for story in stories),
        "seconds": round(took_s, 3),
        "coreSeconds": round(busy_s, 3),
        "broken": [{"world": each.world, "seed": each.seed, "rule": each.broken} for each in broken],
    }
    told = msgspec.json.format(msgspec.json.encode(found), indent=2)
    if record is not None:
        record.write_bytes(told)
    if as_json:
        click.echo(told)
        return stories
    for story in broken:
        click.echo(f"{story.world} seed {story.seed}: {story.broken}")
    switches = sum(story.switches for story in stories)
    click.echo(
        f"{len(stories):,} histories with {switches:,} switches in {took_s:.1f} s "
        f"({len(stories) / max(busy_s, _CLOCK_S) * 60:,.0f} a minute of a core): {len(broken)} broke a rule"
    )
    return stories


def _busy_s() -> float:
    """For how long cores have worked for us, whatever else they did."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _show_traces(stories: list[Story], *, as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(stories), indent=2))
        return
    for story in stories:
        click.echo(f"{story.world} seed {story.seed}: {story.broken or 'all rules held'}")
        for trouble in story.troubles:
            click.echo(f"  trouble: {trouble}")
        for line in story.transcript:
            click.echo(f"  {line}")
