"""What figures did since they were seen before. Pure: values and times in, growth out."""

from collections import OrderedDict, deque
from dataclasses import dataclass, field

GROWTH_MS = 5 * 60_000
"""Growth of a counter is told for so long."""
_MAX_SUBJECTS = 10_000
_MAX_STEPS = 200


@dataclass(slots=True)
class _Counter:
    value: int
    steps: deque[tuple[int, int]] = field(default_factory=lambda: deque[tuple[int, int]](maxlen=_MAX_STEPS))


@dataclass(slots=True)
class _Level:
    value: int
    least: int


class Trends:
    """Remembers figures by what they are of."""

    def __init__(self) -> None:
        self._counters: OrderedDict[str, _Counter] = OrderedDict()
        self._levels: OrderedDict[str, _Level] = OrderedDict()

    def grown(self, subject: str, value: int, now_ms: int) -> int:
        """How much a counter grew in the last minutes; one that is seen first, or fell, begins anew."""
        known = self._counters.get(subject)
        if known is None:
            self._counters[subject] = known = _Counter(value)
            if len(self._counters) > _MAX_SUBJECTS:
                self._counters.popitem(last=False)
        if value > known.value:
            known.steps.append((now_ms, value - known.value))
        known.value = value
        while known.steps and now_ms - known.steps[0][0] >= GROWTH_MS:
            known.steps.popleft()
        return sum(step for _, step in known.steps)

    def rising(self, subject: str, value: int) -> int:
        """How much a level rose since it last fell."""
        known = self._levels.get(subject)
        if known is None:
            self._levels[subject] = known = _Level(value, value)
            if len(self._levels) > _MAX_SUBJECTS:
                self._levels.popitem(last=False)
        if value < known.value:
            known.least = value
        known.value = value
        return value - known.least
