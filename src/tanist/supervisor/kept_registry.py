"""A session with the registry that is there when it is needed: opened beforehand, and anew after a loss."""

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from tanist.backoff import Backoff
from tanist.coord import Record, Registry, RegistryUnavailable, SessionState
from tanist.errors import ConfigError, MQError
from tanist.log import ToldFailures

AGAIN_S = 0.05
"""After so long the registry is asked again, if it did not answer."""

_log = logging.getLogger(__name__)


class KeptRegistry:
    """One session after the other, as long as ``keep`` runs."""

    def __init__(self, open_session: Callable[[], AbstractAsyncContextManager[Registry]]) -> None:
        self._open_session = open_session
        self._registry: Registry | None = None
        self._opened = asyncio.Event()
        self._failures = ToldFailures()

    async def keep(self) -> None:
        """Hold a session, for ever; nothing is held if the settings name a registry that can not be used."""
        backoff = Backoff()
        while True:
            try:
                await self._hold_one(backoff)
            except ConfigError as error:
                # The broker does not start with it either.
                _log.error("registry can not be used error=%s", error)
                return
            except (MQError, OSError) as error:
                if self._failures.is_news("open", str(error)):
                    _log.warning("registry not reached error=%s", error)
            await asyncio.sleep(backoff.next_s(random.random()))  # noqa: S311

    async def opened(self) -> Registry:
        """The session, which is waited for."""
        while self._registry is None:
            await self._opened.wait()
        return self._registry

    async def follow(self, path: str, on_record: Callable[[Record | None], None]) -> None:
        """Have ``on_record`` called with what a path has, now and after each change, for ever."""
        while True:
            await _follow(await self.opened(), path, on_record)
            await asyncio.sleep(AGAIN_S)

    async def _hold_one(self, backoff: Backoff) -> None:
        async with self._open_session() as registry:
            lost = asyncio.Event()

            def on_session(state: SessionState) -> None:
                if state is SessionState.LOST:
                    lost.set()

            registry.on_session(on_session)
            on_session(registry.session)
            backoff.reset()
            self._failures.is_over("open")
            self._registry = registry
            self._opened.set()
            try:
                await lost.wait()
            finally:
                self._registry = None
                self._opened.clear()


async def _follow(registry: Registry, path: str, on_record: Callable[[Record | None], None]) -> None:
    """Follow a path as long as the session lives."""
    touched = asyncio.Event()
    registry.on_session(lambda _state: touched.set())
    watch = registry.watch(path, touched.set)
    try:
        while registry.session is not SessionState.LOST:
            await touched.wait()
            touched.clear()
            try:
                on_record(await registry.read(path))
            except RegistryUnavailable:
                await asyncio.sleep(AGAIN_S)
                touched.set()
    finally:
        watch.close()
