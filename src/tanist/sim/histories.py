"""Many histories of the simulated worlds, on all cores, and which of them broke a rule."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from tanist.sim import reign
from tanist.sim.group import walk as group_walk
from tanist.sim.reading import walk

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


def _group(seed: int) -> Story:
    return _group_story(group_walk.walk(seed))


def _group_story(history: group_walk.History) -> Story:
    troubles = tuple(str(trouble) for trouble in history.troubles)
    return Story("group", history.seed, history.broken, history.switches, history.transcript, troubles)


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
        "group": _group,
        "reading": _reading,
        "all-ack": partial(_reign, is_all_ack=True),
        "lease": partial(_reign, is_all_ack=False),
    }
)
"""A group under a controller through many reigns; who is read in a group with fixed roles; what a master
acknowledges that waits for all in step; and what one acknowledges that waits for one slave, on the word of
its lease."""


def tell(world: str, seed: int) -> Story:
    """The story of one seed, the same each time."""
    return WORLDS[world](seed)


def tell_shortest(world: str, seed: int) -> Story:
    """The story of one seed with no more troubles than break it, where some can be left out."""
    return _group_story(group_walk.shortest(seed)) if world == "group" else tell(world, seed)


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
