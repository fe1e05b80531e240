"""Many histories of the simulated worlds, on all cores, and which of them broke a rule."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

from tanist.sim import reign
from tanist.sim.group import walk as group_walk
from tanist.sim.reading import walk as reading_walk
from tanist.sim.reset import walk as reset_walk
from tanist.sim.shrinking import shortest

_CHUNK = 25


@dataclass(frozen=True, slots=True)
class Story:
    """What came of one seed in one world."""

    world: str
    seed: int
    broken: str | None
    """The rule that did not hold, if any."""
    switches: int
    """How often another broker took over."""
    transcript: tuple[str, ...]
    troubles: tuple[str, ...] = ()
    """What was done to it."""


History: TypeAlias = group_walk.History | reading_walk.History | reset_walk.History | reign.History
Tell: TypeAlias = Callable[..., History]
"""Tells the history of a seed, with all troubles that were drawn for it or with ``troubles`` of them."""

WORLDS: MappingProxyType[str, Tell] = MappingProxyType(
    {
        "group": group_walk.walk,
        "reading": reading_walk.walk,
        "reset": reset_walk.walk,
        "all-ack": partial(reign.run_history, is_all_ack=True),
        "lease": partial(reign.run_history, is_all_ack=False),
    }
)
"""A group under a controller through many reigns; who is read in a group with fixed roles; where consumers go
on that are moved; what a master acknowledges that waits for all in step; and what one acknowledges that waits
for one slave, on the word of its lease."""


def tell(world: str, seed: int) -> Story:
    """The story of one seed, the same each time."""
    return _story_of(world, WORLDS[world](seed))


def tell_shortest(world: str, seed: int) -> Story:
    """The story of one seed with no more troubles than break it."""
    return _story_of(world, shortest(lambda troubles: WORLDS[world](seed, troubles=troubles)))


def _story_of(world: str, history: History) -> Story:
    troubles = tuple(str(trouble) for trouble in history.troubles)
    return Story(world, history.seed, history.broken, history.switches, tuple(history.transcript), troubles)


def tell_many(worlds: Iterable[str], seeds: range, *, jobs: int) -> Iterator[Story]:
    """All stories of these worlds, as they are told. Sound ones come without their transcript."""
    asked = [(world, seed) for seed in seeds for world in worlds]
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_tell_briefly, asked, chunksize=_CHUNK)


def _tell_briefly(asked: tuple[str, int]) -> Story:
    story = tell(*asked)
    if story.broken is not None:
        return story
    return Story(story.world, story.seed, None, story.switches, ())
