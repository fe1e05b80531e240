"""Which controller leads. All may answer who that is; one elects masters and grants leases.

    FOLLOWING --/leader is gone, and we were first--> LEADING --session lost--> FOLLOWING

``/leader`` is ephemeral and names who leads. ``/term`` stays, and every new leader changes it in the step in
which it takes ``/leader``. Whatever a leader writes is checked against both, so one that was deposed without
knowing changes nothing: a new ``/leader`` alone would have the version of the old one.
"""

import asyncio
import logging
import random
import uuid
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias
from urllib.parse import quote, unquote

import msgspec

from tanist.backoff import Backoff
from tanist.clock import Clock
from tanist.coord import Check, Conflict, Create, Put, Registry, RegistryUnavailable, SessionState
from tanist.errors import ResponseError
from tanist.protocol.codes import ResponseCode
from tanist.protocol.java_json import BAD_JSON

LEADER_PATH = "/leader"
TERM_PATH = "/term"
CONTROLLERS_PATH = "/controllers"

_LEADER_VERSION = 0
"""Nobody changes a record of who leads: it comes and goes."""

_log = logging.getLogger(__name__)

OpenSession: TypeAlias = Callable[[], AbstractAsyncContextManager[Registry]]
"""Begins another session with the registry, which ends with the block."""


class NotLeading(ResponseError):
    """Another controller leads, or nobody, or we do not know."""

    def __init__(self, leader: str | None) -> None:
        where = "none is known to lead now" if leader is None else f"ask {leader}"
        super().__init__(ResponseCode.CONTROLLER_NOT_LEADER, f"this controller does not lead; {where}")


class _Leader(msgspec.Struct, frozen=True, kw_only=True):
    address: str
    nonce: str
    """Of one session, so that we know our record again if the answer was lost, however late it was made."""


class Leading:
    """Our part in it. ``run`` looks after it; ``on_begin`` and ``on_end`` are told when we lead.

    Before we do, ``load`` reads what a leader has to know. ``on_look`` is told whenever we saw that we lead,
    as after the registry was away, when nothing could be done about what happened.
    """

    def __init__(
        self,
        open_session: OpenSession,
        *,
        clock: Clock,
        load: Callable[[Registry], Awaitable[None]],
        on_begin: Callable[[], None],
        on_look: Callable[[], None],
        on_end: Callable[[], None],
    ) -> None:
        self._open_session = open_session
        self._clock = clock
        self._load = load
        self._on_begin = on_begin
        self._on_look = on_look
        self._on_end = on_end
        self._registry: Registry | None = None
        self._nonce = ""
        self._term: int | None = None
        self._has_begun = False
        self._is_present = False
        self._first_look = asyncio.Event()
        self.address = ""
        self.leader_address: str | None = None
        self.controllers: list[str] = []

    @property
    def is_leading(self) -> bool:
        """Whether we surely lead now: nobody else can have been chosen yet."""
        return (
            self._has_begun
            and self._registry is not None
            and self._clock.monotonic_s() < self._registry.held_until_s
        )

    @property
    def has_begun(self) -> bool:
        """Whether we led when we looked last; if not ``is_leading`` too, that has to be confirmed first."""
        return self._has_begun

    @property
    def session(self) -> SessionState:
        """How we stand to the registry."""
        return SessionState.LOST if self._registry is None else self._registry.session

    def require(self) -> None:
        """Raise NotLeading unless we surely lead now."""
        if not self.is_leading:
            raise NotLeading(None if self.leader_address == self.address else self.leader_address)

    @property
    def registry(self) -> Registry:
        """The registry to read from and write to. Raises NotLeading."""
        self.require()
        assert self._registry is not None
        return self._registry

    @property
    def fence(self) -> tuple[Check, Check]:
        """The conditions under which a leader writes."""
        assert self._term is not None
        return Check(LEADER_PATH, _LEADER_VERSION), Check(TERM_PATH, self._term)

    async def run(self, address: str) -> None:
        """Stand for election as often as need be, under this address."""
        self.address = address
        backoff = Backoff()
        while True:
            try:
                async with self._open_session() as registry:
                    backoff.reset()
                    await self._attend(registry)
            except RegistryUnavailable as error:
                _log.warning("registry unavailable error=%s", error)
            finally:
                self._end_session()
            self._first_look.set()
            await asyncio.sleep(backoff.next_s(random.random()))  # noqa: S311  Jitter is no secret.

    async def wait_for_first_look(self) -> None:
        """Wait until it is known who leads, or that the registry does not answer."""
        await self._first_look.wait()

    async def _attend(self, registry: Registry) -> None:
        """Stay in one session until it is lost."""
        changed = asyncio.Event()
        self._registry = registry
        self._nonce = uuid.uuid4().hex
        backoff = Backoff()

        def on_session(state: SessionState) -> None:
            if state is SessionState.LOST:
                # At once, and not when our task gets its turn.
                self._end_session()
            changed.set()

        registry.on_session(on_session)
        watches = [registry.watch(path, changed.set) for path in (LEADER_PATH, CONTROLLERS_PATH)]
        try:
            while registry.session is not SessionState.LOST:
                changed.clear()
                wait_s: float | None = None
                try:
                    await self._look(registry)
                    self._first_look.set()
                    backoff.reset()
                except Conflict:
                    wait_s = 0.0  # Somebody was faster.
                except RegistryUnavailable as error:
                    _log.warning("registry unavailable error=%s", error)
                    wait_s = backoff.next_s(random.random())  # noqa: S311
                try:
                    async with asyncio.timeout(wait_s):
                        await changed.wait()
                except TimeoutError:
                    continue
        finally:
            for watch in watches:
                watch.close()

    async def _look(self, registry: Registry) -> None:
        """See who leads, and lead if nobody does."""
        await self._be_present(registry)
        self.controllers = [unquote(child) for child in await registry.children(CONTROLLERS_PATH)]
        found = await registry.read(LEADER_PATH)
        if found is None:
            self._depose()
            self._term = await self._campaign(registry)
            self.leader_address = self.address
        else:
            leader = _read_leader(found.value)
            self.leader_address = None if leader is None else leader.address
            if leader is None or leader.nonce != self._nonce:
                self._depose()
                return
            if self._term is None:
                # We were chosen, and the answer was lost.
                term = await registry.read(TERM_PATH)
                assert term is not None
                self._term = term.version
        if not self._has_begun:
            await self._load(registry)
            self._has_begun = True
            _log.info("leading address=%s term=%d", self.address, self._term)
            self._on_begin()
        self._on_look()

    async def _campaign(self, registry: Registry) -> int:
        """Take the lead; the version that the term has now. Raises Conflict if somebody was faster."""
        term = await registry.read(TERM_PATH)
        value = msgspec.json.encode(_Leader(address=self.address, nonce=self._nonce))
        next_term = Create(TERM_PATH, b"") if term is None else Put(TERM_PATH, b"", term.version)
        versions = await registry.commit(Create(LEADER_PATH, value, is_ephemeral=True), next_term)
        return versions[1]

    async def _be_present(self, registry: Registry) -> None:
        if self._is_present:
            return
        path = f"{CONTROLLERS_PATH}/{quote(self.address, safe='').replace('.', '%2E')}"
        try:
            await registry.commit(Create(path, b"", is_ephemeral=True))
        except Conflict:
            # It is of our former session, and goes with it; then we are told and look again.
            return
        self._is_present = True

    def _depose(self) -> None:
        if self._has_begun:
            _log.warning("not leading any more address=%s", self.address)
            self._has_begun = False
            self._on_end()
        self._term = None

    def _end_session(self) -> None:
        self._depose()
        # What our former session left goes with it, and is not ours any more.
        self._nonce = ""
        self._registry = None
        self._is_present = False
        self.leader_address = None


def _read_leader(value: bytes) -> _Leader | None:
    """Who leads; None if that can not be read, so that it is somebody else."""
    try:
        return msgspec.json.decode(value, type=_Leader)
    except BAD_JSON as error:
        _log.error("record can not be read path=%s error=%s", LEADER_PATH, error)
        return None
