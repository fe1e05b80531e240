"""Pages of which no look at the cluster has the data: how they look by now, if somebody has one open."""

from collections.abc import Awaitable, Callable, Mapping

from tanist.console.views.digests import digest_of
from tanist.console.watching.snapshot import Snapshot
from tanist.errors import MQError

Ask = Callable[[Snapshot], Awaitable[object]]
"""What a page shows, or that of it which changes."""


class PageWatch:
    """Asks at each look for what the pages show that lie open, and for nothing else."""

    def __init__(self, pages: Mapping[str, Ask], *, is_open: Callable[[str], bool]) -> None:
        self._pages = pages
        self._is_open = is_open

    async def on_snapshot(self, snapshot: Snapshot) -> dict[str, str]:
        return {name: await _seen(ask, snapshot) for name, ask in self._pages.items() if self._is_open(name)}


async def _seen(ask: Ask, snapshot: Snapshot) -> str:
    try:
        return digest_of(await ask(snapshot))
    except MQError as error:
        # The page says so too.
        return digest_of(str(error))
