"""The order of the tests: those that take long begin first, shared out among the workers.

A worker that begins a long test when the others are done has them wait for it. And what waits for partners
comes before what only reckons: while one waits others work.

xdist gives each worker as many tests as the others, in the order in which they stand, and later lets those
that are done take from the ends of the others.
"""

from collections.abc import Sequence
from itertools import chain, pairwise
from typing import NamedTuple, TypeVar

import pytest

_WAITING = ("integration", "interop", "contract")
"""The folders of tests that wait for other processes."""

T = TypeVar("T")


class Long(NamedTuple):
    """Tests that belong together, and how long they take."""

    seconds: float
    tests: list[pytest.Item]


def dealt(
    long: Sequence[tuple[float, Sequence[T]]], waiting: Sequence[T], reckoning: Sequence[T], *, count: int
) -> list[T]:
    """All tests in the order in which ``count`` workers get them, as many each.

    Of the long ones the next goes to the worker that has the least of them. Of those that reckon each gets as
    many as it lacks.
    """
    hands: list[list[T]] = [[] for _ in range(count)]
    load_s = [0.0] * count
    for seconds, tests in sorted(long, key=lambda one: -one[0]):
        lightest = load_s.index(min(load_s))
        hands[lightest].extend(tests)
        load_s[lightest] += seconds
    for hand, share in zip(hands, _cut(waiting, [1.0] * count), strict=True):
        hand.extend(share)
    even = (sum(map(len, hands)) + len(reckoning)) / count
    for hand, share in zip(
        hands, _cut(reckoning, [max(0.0, even - len(hand)) for hand in hands]), strict=True
    ):
        hand.extend(share)
    return list(chain.from_iterable(hands))


def _cut(tests: Sequence[T], sizes: Sequence[float]) -> list[Sequence[T]]:
    """Cut into pieces in these proportions: neighbours share what their module has made."""
    total = sum(sizes) or 1.0
    ends = [round(len(tests) * sum(sizes[:number]) / total) for number in range(len(sizes) + 1)]
    return [tests[start:end] for start, end in pairwise(ends)]


def _long_ones(items: Sequence[pytest.Item]) -> list[Long]:
    """Tests that say how many seconds they take, and modules that say it of all their tests together."""
    found: dict[str, Long] = {}
    for item in items:
        if (marker := item.get_closest_marker("takes")) is not None:
            module = item.getparent(pytest.Module)
            is_of_module = module is not None and marker in module.own_markers
            name = module.nodeid if module is not None and is_of_module else item.nodeid
            found.setdefault(name, Long(marker.args[0], [])).tests.append(item)
    return list(found.values())


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the tests of a worker, which has to have them in the same order as all others, into order."""
    worker: dict[str, int] | None = getattr(config, "workerinput", None)
    if worker is None:
        return
    long = _long_ones(items)
    taken = {item.nodeid for one in long for item in one.tests}
    rest = [item for item in items if item.nodeid not in taken]
    waiting = [item for item in rest if item.path.parent.name in _WAITING]
    reckoning = [item for item in rest if item.path.parent.name not in _WAITING]
    items[:] = dealt(long, waiting, reckoning, count=worker["workercount"])
