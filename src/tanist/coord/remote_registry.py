"""A session with the registry of a controller, over its port.

    async with RemoteRegistry("127.0.0.1:9878", timeout_s=4) as registry:
        await registry.commit(Create("/alive/broker-a", b"{}", is_ephemeral=True))

One task looks after the session: it keeps it, connects again when the connection is lost, and has the
controller watch what is watched here. Only that task opens connections, so nothing is ever asked on one on
which the session was not taken up first, and a commit whose answer is missing can not be made after the
session goes on elsewhere.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from tanist.backoff import Backoff
from tanist.clock import Clock, SystemClock
from tanist.coord.controller_wire import ControllerWire, SessionOver
from tanist.coord.registry import Change, Conflict, Record, RegistryError, RegistryUnavailable, SessionState
from tanist.coord.remote_hold import RemoteHold
from tanist.coord.remote_messages import MAX_WATCHES, check_remote_path, check_timeout, encode_changes
from tanist.coord.watching import PathWatch, WatchTable
from tanist.protocol import Command, RequestCode
from tanist.protocol.bodies.coord import ChildrenBody, CommitOutcome
from tanist.protocol.headers.base import Header
from tanist.protocol.headers.coord import (
    ChangedRequest,
    OpenSessionRequest,
    OpenSessionResponse,
    PathRequest,
    ReadResponse,
    SessionRequest,
    WatchRequest,
)
from tanist.remoting import Connection, RemotingClient, TlsSettings

# The session is kept so many times in its timeout, and the controller has twice that long to answer.
_KEEPS = 6
_SILENT_KEEPS = 2
_MOST_PAUSE_S = 1.0
"""A controller that is back is found again within this time, and before it ends the session."""
_CLOSE_S = 2.0

_log = logging.getLogger(__name__)


class RemoteRegistry:
    """One session, from ``async with`` to the end of its block; see ``Registry``."""

    def __init__(
        self, address: str, *, timeout_s: float, clock: Clock | None = None, tls: TlsSettings | None = None
    ) -> None:
        check_timeout(timeout_s)
        self.timeout_s = timeout_s
        self._clock = clock or SystemClock()
        self._client = RemotingClient(
            {int(RequestCode.REGISTRY_CHANGED): self._on_changed},
            tls=tls,
            on_disconnect=lambda _: self._on_cut("the connection is lost"),
        )
        self._wire = ControllerWire(self._client, address)
        self._token = ""
        self._hold: RemoteHold | None = None
        self._watches = WatchTable()
        self._armed: set[str] = set()
        self._cut_count = 0
        self._listeners: list[Callable[[SessionState], None]] = []
        self._wake = asyncio.Event()
        self._looking_after: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Open the session.

        Raises RegistryUnavailable if the controller does not answer; NoRegistryThere, which is one, if it
        keeps no registry for others.
        """
        asked_s = self._clock.monotonic_s()
        header = OpenSessionRequest(timeout_ms=round(self.timeout_s * 1000))
        try:
            answer = await self._wire.ask(RequestCode.REGISTRY_OPEN_SESSION, header, timeout_s=self.timeout_s)
            self._token = self._wire.header(answer, OpenSessionResponse).session
        except BaseException:
            await self._client.close()
            raise
        self._hold = RemoteHold(self.timeout_s, asked_s)
        if self._cut_count:
            self._hold.on_cut()
        self._looking_after = asyncio.get_running_loop().create_task(self._look_after())
        _log.info("registry session opened controller=%s timeout_s=%g", self._wire.address, self.timeout_s)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def session(self) -> SessionState:
        """How we stand to the controller."""
        return SessionState.LOST if self._hold is None else self._hold.state

    @property
    def held_until_s(self) -> float:
        """Up to when the controller surely holds the session: counted from when we asked it to."""
        return float("-inf") if self._hold is None else self._hold.held_until_s

    def on_session(self, listener: Callable[[SessionState], None]) -> None:
        """Have ``listener`` called whenever the state changes, but not when we close."""
        self._listeners.append(listener)

    async def read(self, path: str) -> Record | None:
        """A record as it is, or was a moment ago; None if it is not there."""
        header = PathRequest(session=self._token, path=check_remote_path(path))
        answer = await self._ask_live(RequestCode.REGISTRY_READ, header)
        version = self._wire.header(answer, ReadResponse).version
        return None if version is None else Record(bytes(answer.body), version)

    async def children(self, path: str) -> list[str]:
        """The names right below a path, sorted."""
        header = PathRequest(session=self._token, path=check_remote_path(path))
        answer = await self._ask_live(RequestCode.REGISTRY_CHILDREN, header)
        return self._wire.body(answer, ChildrenBody).names

    async def commit(self, *changes: Change) -> list[int]:
        """Make all changes in one step, on the controller's disk when this returns."""
        body = encode_changes(changes)
        header = SessionRequest(session=self._token)
        answer = await self._ask_live(RequestCode.REGISTRY_COMMIT, header, body)
        outcome = self._wire.body(answer, CommitOutcome)
        if outcome.conflict_at is not None and 0 <= outcome.conflict_at < len(changes):
            raise Conflict(changes[outcome.conflict_at])
        if len(outcome.versions) != len(changes):
            raise RegistryUnavailable(f"{self._wire.address} gave an answer to a commit that is none")
        return outcome.versions

    def watch(self, path: str, listener: Callable[[], None]) -> PathWatch:
        """Have ``listener`` called after changes by any session, and after the connection came back."""
        check_remote_path(path)
        if path not in self._watches.paths and len(self._watches.paths) >= MAX_WATCHES:
            raise RegistryError(f"{MAX_WATCHES} paths are watched already; close a watch first")
        # The controller tells of a path as soon as it watches it, and that is the first call.
        watch = self._watches.add(path, listener, is_due=path in self._armed)
        if self.session is SessionState.LOST:
            watch.close()
        self._wake.set()
        return watch

    async def close(self) -> None:
        """End the session: what is ephemeral goes at once, or with the timeout if nobody can be told."""
        is_over = self.session is SessionState.LOST
        self._stop()
        task, self._looking_after = self._looking_after, None
        try:
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
            if not is_over:
                await self._say_goodbye()
        finally:
            await self._client.close()

    async def _say_goodbye(self) -> None:
        header, timeout_s = SessionRequest(session=self._token), min(self.timeout_s, _CLOSE_S)
        try:
            await self._wire.ask(RequestCode.REGISTRY_CLOSE_SESSION, header, timeout_s=timeout_s)
        except SessionOver:
            return
        except RegistryUnavailable as error:
            _log.warning(
                "registry session left to its timeout controller=%s error=%s", self._wire.address, error
            )

    async def _look_after(self) -> None:
        """Keep the session until it is over."""
        loop = asyncio.get_running_loop()
        pause_s = self.timeout_s / _KEEPS
        backoff = Backoff(most_s=min(pause_s, _MOST_PAUSE_S))
        keep_at_s = loop.time() + pause_s
        while self.session is not SessionState.LOST:
            self._wake.clear()
            try:
                if self.session is SessionState.SUSPENDED or loop.time() >= keep_at_s:
                    await self._keep()
                    keep_at_s = loop.time() + pause_s
                    backoff.reset()
                await self._settle_watches()
            except SessionOver:
                self._lose()
                return
            except RegistryUnavailable as error:
                self._on_cut(str(error))
                self._client.give_up(self._wire.address, "the session is taken up on another connection")
                await asyncio.sleep(backoff.next_s(random.random()))  # noqa: S311  Jitter is no secret.
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout_at(keep_at_s):
                    await self._wake.wait()

    async def _keep(self) -> None:
        asked_s = self._clock.monotonic_s()
        timeout_s = _SILENT_KEEPS * self.timeout_s / _KEEPS
        await self._tend(RequestCode.REGISTRY_KEEP_SESSION, SessionRequest(session=self._token), timeout_s)
        assert self._hold is not None
        if self._hold.on_kept(asked_s):
            _log.info("registry session goes on controller=%s", self._wire.address)
            self._tell()

    async def _settle_watches(self) -> None:
        """Have the controller watch what is watched here, and nothing else."""
        while self.session is SessionState.CONNECTED and (differing := self._watches.paths ^ self._armed):
            for path in differing:
                is_wanted = path in self._watches.paths
                header = WatchRequest(session=self._token, path=path, is_wanted=is_wanted)
                await self._tend(RequestCode.REGISTRY_WATCH, header, self.timeout_s)
                # That the path was watched again meanwhile is seen in the next round.
                (self._armed.add if is_wanted else self._armed.discard)(path)

    async def _tend(self, code: RequestCode, header: Header, timeout_s: float) -> None:
        """Ask for something that lasts as long as the connection, which must be there still."""
        cut_count = self._cut_count
        await self._wire.ask(code, header, timeout_s=timeout_s)
        if self._cut_count != cut_count:
            raise RegistryUnavailable(f"the connection to {self._wire.address} was lost since it answered")

    def _on_changed(self, request: Command, _connection: Connection) -> None:
        path = request.header(ChangedRequest).path
        if path in self._watches.paths:
            self._armed.add(path)
            self._watches.touch([path])

    def _on_cut(self, reason: str) -> None:
        self._armed.clear()
        self._cut_count += 1
        if self._hold is not None and self._hold.on_cut():
            _log.warning("registry session suspended controller=%s reason=%s", self._wire.address, reason)
            self._wake.set()
            self._tell()

    def _lose(self) -> None:
        """The session is over, and not because we closed it."""
        if self.session is not SessionState.LOST:
            self._stop()
            _log.warning("registry session lost controller=%s", self._wire.address)
            self._tell()

    def _stop(self) -> None:
        if self._hold is not None:
            self._hold.on_over()
        self._watches.close()
        self._armed.clear()
        self._wake.set()

    def _tell(self) -> None:
        for listener in self._listeners:
            listener(self.session)

    async def _ask_live(self, code: RequestCode, header: Header, body: bytes = b"") -> Command:
        """Ask for what the owner of the session wants."""
        if self.session is SessionState.LOST:
            raise SessionOver
        if self.session is SessionState.SUSPENDED:
            raise RegistryUnavailable(
                f"no connection to the controller {self._wire.address}; nothing was asked"
            )
        try:
            return await self._wire.ask(code, header, body, timeout_s=self.timeout_s)
        except SessionOver:
            self._lose()
            raise
