"""Stands before the handlers and lets through what the rules allow. Without ``aclEnable`` there is none."""

import asyncio
import logging
from collections.abc import Mapping

from tanist.broker.acl.files import AclFiles
from tanist.broker.acl.needs import NAMED_CODES, Needs
from tanist.clock import Clock
from tanist.errors import ConfigError, ResponseError
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.signature import ACCESS_KEY
from tanist.remoting import Connection, Handler
from tanist.remoting.line_budget import LineBudget
from tanist.remoting.replies import Pieces

_log = logging.getLogger(__name__)

_LOOK_S = 1.0
_PORT_BYTES = 4
_MOST_TOLD = 1_000
_SHOWN_CHARS = 256
"""What is kept and written of a peer's own words."""
_NO_KEY = "-"
_FOR_ALL = frozenset({RequestCode.NOTIFY_BROKER_ROLE_CHANGED})
"""A controller has no account. Who it was that told does not matter, for it is only a hint."""


class AccessGuard:
    """Refuses what the rules of ``files`` do not allow. Raises ConfigError if they can not be read."""

    def __init__(self, files: AclFiles, clock: Clock) -> None:
        rules = files.load_changed()
        assert rules is not None
        self._rules = rules
        self._files = files
        self._clock = clock
        self._trouble = ""
        self._lines = LineBudget()
        self._told: set[tuple[str, bytes, str]] = set()

    def guard(self, routes: Mapping[int, Handler], needs: Needs) -> dict[int, Handler]:
        """The same routes, each behind the rules of its time."""
        return {
            code: handler if code in _FOR_ALL else self._guarded(handler, needs)
            for code, handler in routes.items()
        }

    async def watch(self) -> None:
        """Take new rules on soon after their files have changed, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_S)
            await self.look()

    async def look(self) -> None:
        """Take new rules on if the files have changed.

        Files that make no sense leave the rules as they are, which is told once for each change.
        """
        try:
            # Off the event loop: the files may lie on a slow disk, and be long.
            rules = await asyncio.to_thread(self._files.load_changed)
        except ConfigError as error:
            if str(error) != self._trouble:
                self._trouble = str(error)
                _log.error("access rules stay as they were reason=%s", error)
            return
        if rules is not None:
            self._rules = rules
            self._trouble = ""
            self._told.clear()

    def _guarded(self, handler: Handler, needs: Needs) -> Handler:
        def serve(command: Command, connection: Connection) -> Command | bytes | Pieces | None:
            address = connection.peer_host[:-_PORT_BYTES]
            reason = self._rules.refusal(command, address, needs)
            if reason is not None:
                raise self._refuse(command, connection, reason)
            if command.code in NAMED_CODES and not self._rules.is_proven(command):
                # Its address was trusted. The handler must not take the key for who it was.
                command.ext.pop(ACCESS_KEY, None)
            return handler(command, connection)

        return serve

    def _refuse(self, command: Command, connection: Connection, reason: str) -> ResponseError:
        """The answer, which is RocketMQ 5.3's: 4.9 answers 1, and clients of both do the same with either."""
        access_key, reason = command.ext.get(ACCESS_KEY, _NO_KEY)[:_SHOWN_CHARS], reason[:_SHOWN_CHARS]
        self._tell(command, connection, access_key, reason)
        return ResponseError(ResponseCode.NO_PERMISSION, f"access denied, accessKey={access_key}: {reason}")

    def _tell(self, command: Command, connection: Connection, access_key: str, reason: str) -> None:
        """One line for each key, machine and reason, and no more than a few of those at a time.

        A client that is refused asks again every few seconds, for days.
        """
        what = (access_key, connection.peer_host[:-_PORT_BYTES], reason)
        if what in self._told:
            return
        unwritten = self._lines.spend(self._clock.monotonic_s())
        if unwritten is None:
            return
        if len(self._told) >= _MOST_TOLD:
            self._told.clear()
        self._told.add(what)
        _log.warning(
            "request refused access_key=%s peer=%s code=%d reason=%s unwritten_lines=%d",
            access_key,
            connection.peer,
            command.code,
            reason,
            unwritten,
        )
