"""Many histories of the simulated worlds, on all cores, and which of them broke a rule."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from tanist.sim import reign
from tanist.sim.group import walk as group_walk
from tanist.sim.reading import walk
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
    """What was done to it, where that is drawn before the history begins."""


_DRAWN: MappingProxyType[str, Callable[..., group_walk.History | reset_walk.History]] = MappingProxyType(
    {"group": group_walk.walk, "reset": reset_walk.walk}
)
"""The worlds whose troubles are drawn before a history begins."""


def _drawn(seed: int, *, world: str) -> Story:
    return _story_of(world, _DRAWN[world](seed))


def _story_of(world: str, history: group_walk.History | reset_walk.History) -> Story:
    troubles = tuple(str(trouble) for trouble in history.troubles)
    return Story(world, history.seed, history.broken, history.switches, history.transcript, troubles)


def _reading(seed: int) -> Story:
    history = walk.walk(seed)
    return Story("reading", seed, history.broken, history.switches, history.transcript)


def _reign(seed: int, *, is_all_ack: bool) -> Story:
    history = reign.run_history(seed, is_all_ack=is_all_ack)
    lost = history.lost if is_all_ack else history.lost_after_election
    rule = "S1" if is_all_ack else "S8"
    broken = f"{rule}: acknowledged and not in the successor's log: {lost}" if lost else None
    name = "all-ack" if is_all_ack else "lease"
    return Story(name, seed, broken, int(history.elected_s is not None), tuple(history.transcript))


WORLDS: MappingProxyType[str, Callable[[int], Story]] = MappingProxyType(
    {
        "group": partial(_drawn, world="group"),
        "reading": _reading,
        "reset": partial(_drawn, world="reset"),
        "all-ack": partial(_reign, is_all_ack=True),
        "lease": partial(_reign, is_all_ack=False),
    }
)
"""A group under a controller through many reigns; who is read in a group with fixed roles; where consumers go
on that are moved; what a master acknowledges that waits for all in step; and what one acknowledges that waits
for one slave, on the word of its lease."""


def tell(world: str, seed: int) -> Story:
    """The story of one seed, the same each time."""
    return WORLDS[world](seed)


def tell_shortest(world: str, seed: int) -> Story:
    """The story of one seed with no more troubles than break it, where some can be left out."""
    if world not in _DRAWN:
        return tell(world, seed)
    return _story_of(world, shortest(lambda troubles: _DRAWN[world](seed, troubles=troubles)))


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
