"""A registry that is away when a test says so."""

from collections.abc import Callable

from tanist.coord import Change, Record, Registry, RegistryUnavailable, SessionState, Watch


class FaultyRegistry:
    """A session that works like the one it stands for, until it is told to fail."""

    def __init__(self, real: Registry) -> None:
        self._real = real
        self.is_away = False
        self.is_in_doubt = False
        """Whether nobody knows if the session still lives."""
        self._listeners: list[Callable[[], None]] = []
        self.loses_answers = False
        """Whether commits are made, and nobody is told."""
        self.mistake: Exception | None = None
        """What nobody thought of, and a commit raises."""

    @property
    def session(self) -> SessionState:
        return self._real.session

    @property
    def held_until_s(self) -> float:
        return 0.0 if self.is_in_doubt else self._real.held_until_s

    def on_session(self, listener: Callable[[SessionState], None]) -> None:
        self._real.on_session(listener)

    async def read(self, path: str) -> Record | None:
        self._be_there()
        return await self._real.read(path)

    async def children(self, path: str) -> list[str]:
        self._be_there()
        return await self._real.children(path)

    async def commit(self, *changes: Change) -> list[int]:
        self._be_there()
        if self.mistake is not None:
            raise self.mistake
        versions = await self._real.commit(*changes)
        if self.loses_answers:
            raise RegistryUnavailable("the answer was lost")
        return versions

    def watch(self, path: str, listener: Callable[[], None]) -> Watch:
        self._listeners.append(listener)
        return self._real.watch(path, listener)

    def come_back(self) -> None:
        """Be there again, and have those who watch look anew."""
        self.is_away = self.is_in_doubt = self.loses_answers = False
        for listener in self._listeners:
            listener()

    async def close(self) -> None:
        await self._real.close()

    def _be_there(self) -> None:
        if self.is_away:
            raise RegistryUnavailable("it is away")
