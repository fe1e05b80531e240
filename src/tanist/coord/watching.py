"""Who wants to be told of which path. On the event loop."""

import asyncio
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet


class WatchTable:
    """The watches of one session. A change that comes while a call is due is told by that call."""

    def __init__(self) -> None:
        self._watches: dict[str, set[PathWatch]] = {}

    @property
    def paths(self) -> AbstractSet[str]:
        """The paths that somebody wants to be told of."""
        return self._watches.keys()

    def add(self, path: str, listener: Callable[[], None], *, is_due: bool = True) -> "PathWatch":
        """Begin a watch; its first call is due, unless whoever adds it will touch it for that."""
        watch = PathWatch(self, path, listener)
        self._watches.setdefault(path, set()).add(watch)
        if is_due:
            watch.touch()
        return watch

    def touch(self, paths: Iterable[str]) -> None:
        """Something changed at these paths."""
        for path in paths:
            for watch in self._watches.get(path, ()):
                watch.touch()

    def close(self) -> None:
        """End all watches."""
        for watch in [each for watches in self._watches.values() for each in watches]:
            watch.close()

    def remove(self, watch: "PathWatch") -> None:
        watches = self._watches.get(watch.path, set())
        watches.discard(watch)
        if not watches:
            self._watches.pop(watch.path, None)


class PathWatch:
    """One listener of one path, until it is closed."""

    def __init__(self, table: WatchTable, path: str, listener: Callable[[], None]) -> None:
        self.path = path
        self._table = table
        self._listener = listener
        self._due: asyncio.Handle | None = None

    def touch(self) -> None:
        """Have the listener called in one of the next turns of the event loop."""
        if self._due is None:
            self._due = asyncio.get_running_loop().call_soon(self._call)

    def close(self) -> None:
        """End the calls, also one that is due."""
        self._table.remove(self)
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _call(self) -> None:
        self._due = None
        self._listener()
