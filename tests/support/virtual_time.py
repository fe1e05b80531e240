"""An event loop whose time passes when nobody has anything to do: minutes of waiting take no time."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")
_TICK_S = 0.001


class VirtualClock:
    """The time of the loop that runs, as a ``Clock``."""

    def now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000)

    def monotonic_s(self) -> float:
        return asyncio.get_running_loop().time()


class _Selector(selectors.DefaultSelector):
    """Waits for nothing: it lets the time pass that it was to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 1_000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if not found:
            assert timeout is not None, "everybody waits for something that will never happen"
            self.now_s += max(0.0, timeout)
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """Its time passes when nobody has anything to do."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now_s

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """At once: a thread would work in another time."""
        done: asyncio.Future[Any] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done


def run_virtually(
    scenario: Coroutine[Any, Any, _T],
    make_loop: Callable[[], asyncio.AbstractEventLoop] = VirtualLoop,
) -> _T:
    """Run a scenario in its own time. It may sleep."""
    with asyncio.Runner(loop_factory=make_loop) as runner:
        return runner.run(scenario)


async def virtually_until(is_so: Callable[[], bool], *, within_s: float = 10.0) -> float:
    """Let time pass until something is so; how long that took. It must be so in time."""
    begun_s = asyncio.get_running_loop().time()
    async with asyncio.timeout(within_s):
        while True:
            if is_so():
                break
            await asyncio.sleep(_TICK_S)
    return asyncio.get_running_loop().time() - begun_s
