"""What only one page needs, asked when the page is, and kept for some seconds for the next who looks."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from tanist.clock import Clock

KEPT_S = 3.0
_MAX_ANSWERS = 256

_T = TypeVar("_T")


@dataclass(slots=True)
class _Answer:
    at_s: float
    asked: "asyncio.Future[Any]"


class Lookups:
    """Answers by what was asked. Who asks the same at the same time waits for the same answer."""

    def __init__(self, clock: Clock, *, kept_s: float = KEPT_S) -> None:
        self._clock = clock
        self._kept_s = kept_s
        self._answers: OrderedDict[tuple[str, ...], _Answer] = OrderedDict()

    async def find(self, question: tuple[str, ...], ask: Callable[[], Awaitable[_T]]) -> _T:
        """The answer, from now or from a moment ago. A failure is raised to all who waited, and forgotten."""
        now_s = self._clock.monotonic_s()
        known = self._answers.get(question)
        if known is None or now_s - known.at_s >= self._kept_s:
            known = _Answer(now_s, asyncio.ensure_future(_awaited(ask)))
            self._answers[question] = known
            self._answers.move_to_end(question)
            while len(self._answers) > _MAX_ANSWERS:
                self._answers.popitem(last=False)
        try:
            # Who goes away does not take the answer from others.
            return cast("_T", await asyncio.shield(known.asked))
        except Exception:
            if self._answers.get(question) is known:
                del self._answers[question]
            raise


async def _awaited(ask: Callable[[], Awaitable[_T]]) -> _T:
    return await ask()
