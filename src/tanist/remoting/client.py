"""The asking side: one connection to each peer, opened when it is needed and shared by all who ask."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from tanist.errors import ConnectFailed, RemotingError, TooBusy
from tanist.protocol.codes import FLAG_ONE_WAY, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.frame import encode_command
from tanist.remoting.connection import WRITE_BYTES, Connection, Handler
from tanist.remoting.connections import Connections
from tanist.remoting.settings import ClientLimits
from tanist.remoting.tls import TlsSettings, client_context
from tanist.remoting.watch import CloseCause

_log = logging.getLogger(__name__)

_CLOSE_GRACE_S = 1.0
_MAX_NOTIFYING = 1024
"""One-way requests that may wait for their connections, of all peers together."""


class RemotingClient:
    """Asks peers by their ``host:port``. ``handlers`` answer what peers ask of us on our connections.

    A connection that was lost is opened again by the next request; nothing is sent twice.
    """

    def __init__(
        self,
        handlers: Mapping[int, Handler] | None = None,
        *,
        limits: ClientLimits | None = None,
        tls: TlsSettings | None = None,
        on_connect: Callable[[str], None] | None = None,
        on_disconnect: Callable[[str], None] | None = None,
    ) -> None:
        """``on_connect`` is told the address of a peer to which there is a new connection.

        ``on_disconnect`` is told that of a peer whose connection is gone, unless we closed it.
        """
        self._handlers: Mapping[int, Handler] = {} if handlers is None else handlers
        limits = limits or ClientLimits()
        self._connect_timeout_s = limits.connect_timeout_millis / 1000
        self._connection_limits = limits.connection
        self._context = client_context(tls or TlsSettings())
        self._connections = Connections(
            self._connection_limits, max_count=None, on_open=None, on_close=self._on_close
        )
        self._by_address: dict[str, Connection] = {}
        self._addresses: dict[Connection, str] = {}
        self._opening: dict[str, asyncio.Task[Connection]] = {}
        self._notifying: set[asyncio.Task[None]] = set()
        self._on_connect = on_connect
        self._on_disconnect = on_disconnect
        self._is_closed = False

    async def request(
        self, address: str, command: Command, *, timeout_s: float, connect_s: float | None = None
    ) -> Command:
        """Ask the peer at ``address``; connecting counts into ``timeout_s``. Raises a RemotingError.

        ``connect_s`` leaves connecting less time than that, for those who can ask somebody else.
        ConnectFailed and TooBusy mean that nothing was sent. Any answer is returned, whatever its code.
        After one that says GO_AWAY the next request opens a new connection.
        """
        connection = self._by_address.get(address)
        if connection is None or not connection.is_open:
            loop = asyncio.get_running_loop()
            deadline_s = loop.time() + timeout_s
            connection = await self._connect(address, timeout_s if connect_s is None else connect_s)
            timeout_s = deadline_s - loop.time()
        try:
            answer = await connection.request(command, timeout_s)
        except asyncio.CancelledError:
            connection.withdraw(command)
            raise
        if answer.code == ResponseCode.GO_AWAY:
            self._leave(address, connection)
        return answer

    async def post(self, address: str, command: Command, *, timeout_s: float) -> None:
        """Send a one-way request when the peer keeps up: who posts without end does not fill the memory.

        Raises ConnectFailed, or TooBusy if the peer stays behind.
        """
        command.flag |= FLAG_ONE_WAY
        frame = encode_command(command)
        deadline_s = asyncio.get_running_loop().time() + timeout_s
        connection = self._by_address.get(address)
        if connection is None or not connection.is_open:
            connection = await self._connect(address, timeout_s)
        if connection.unsent_bytes > WRITE_BYTES:
            await asyncio.sleep(0)  # It is written now, and others get their turn.
        if connection.is_behind:
            try:
                async with asyncio.timeout_at(deadline_s):
                    await connection.caught_up()
            except TimeoutError:
                raise TooBusy(address, f"it took too little of what was sent for {timeout_s:g} s") from None
        connection.send_soon(frame)

    async def dial(self, address: str, handlers: Mapping[int, Handler]) -> Connection:
        """A connection that is the caller's alone, to send and to close. Raises ConnectFailed.

        ``handlers`` answer what the peer asks of us there. It is closed with all others at the latest.
        """
        if self._is_closed:
            raise ConnectFailed(address, "the client is closed")
        return await self._open(address, handlers)

    def notify(self, address: str, command: Command) -> None:
        """Send a one-way request, at once or when the connection is open. What cannot be sent is dropped."""
        command.flag |= FLAG_ONE_WAY
        connection = self._by_address.get(address)
        if connection is not None and connection.is_open:
            connection.send(command)
        elif self._is_closed or len(self._notifying) >= _MAX_NOTIFYING:
            _log.debug("one-way request dropped address=%s code=%d", address, command.code)
        else:
            task = asyncio.get_running_loop().create_task(self._connect_and_send(address, command))
            self._notifying.add(task)
            task.add_done_callback(self._notifying.discard)

    def give_up(self, address: str, reason: str) -> None:
        """Close the connection to a peer that is silent: the next request opens another one.

        After a cut cable that works sooner than to wait until TCP sends again. It counts as one that is lost.
        """
        connection = self._by_address.get(address)
        if connection is not None:
            connection.give_up(CloseCause.OURS, reason)

    def hang_up(self, address: str, reason: str) -> None:
        """Close the connection to a peer that we want nothing of, unless somebody waits for its answer.

        It does not count as one that is lost.
        """
        connection = self._by_address.get(address)
        if connection is not None and not connection.is_awaiting:
            del self._by_address[address]
            self._addresses.pop(connection, None)
            connection.close(reason)

    async def close(self) -> None:
        """Close every connection; whoever waits for an answer gets ConnectionLost."""
        self._is_closed = True
        tasks: list[asyncio.Task[Any]] = [*self._opening.values(), *self._notifying]
        for task in tasks:
            task.cancel()
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            await self._connections.close(_CLOSE_GRACE_S, "the client is closed")

    async def _connect_and_send(self, address: str, command: Command) -> None:
        try:
            (await self._connect(address, self._connect_timeout_s)).send(command)
        except RemotingError as error:
            _log.debug("one-way request dropped address=%s code=%d error=%s", address, command.code, error)

    async def _connect(self, address: str, timeout_s: float) -> Connection:
        """The connection to ``address``. All who ask at the same time share one attempt."""
        if self._is_closed:
            raise ConnectFailed(address, "the client is closed")
        attempt = self._opening.get(address)
        if attempt is None:
            attempt = asyncio.get_running_loop().create_task(self._open_shared(address))
            self._opening[address] = attempt
            attempt.add_done_callback(partial(self._on_attempt_over, address))
        done, _ = await asyncio.wait([attempt], timeout=timeout_s)
        if not done:
            raise ConnectFailed(address, f"no connection within {timeout_s:g} s")
        if attempt.cancelled():
            raise ConnectFailed(address, "the client is closed")
        return attempt.result()

    async def _open_shared(self, address: str) -> Connection:
        connection = await self._open(address, self._handlers)
        if connection.is_open:
            self._by_address[address] = connection
            self._addresses[connection] = address
            if self._on_connect is not None:
                self._on_connect(address)
        return connection

    async def _open(self, address: str, handlers: Mapping[int, Handler]) -> Connection:
        host, port = _split(address)
        connection = Connection(handlers, self._connection_limits, self._connections, holds_back=False)
        is_opened = False
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                await asyncio.get_running_loop().create_connection(
                    lambda: connection,
                    host,
                    port,
                    ssl=self._context,
                    server_hostname=host if self._context is not None else None,
                )
            is_opened = True
        except TimeoutError:
            raise ConnectFailed(address, f"no connection within {self._connect_timeout_s:g} s") from None
        except (OSError, ValueError) as error:  # Of a name that can not be one there is a ValueError.
            raise ConnectFailed(address, str(error)) from error
        finally:
            if not is_opened and connection in self._connections:
                # uvloop tells a connection that it is made, and not that it is gone, if its opening is
                # cancelled in between.
                connection.give_up(CloseCause.OURS, "its opening was given up")
                connection.connection_lost(None)
        return connection

    def _on_attempt_over(self, address: str, attempt: asyncio.Task[Connection]) -> None:
        del self._opening[address]
        if not attempt.cancelled():
            attempt.exception()  # Read, because those who asked may have stopped waiting.

    def _leave(self, address: str, connection: Connection) -> None:
        """A peer is about to stop. What it was asked on this connection it answers there, and closes it."""
        if self._by_address.get(address) is connection:
            self._on_close(connection)

    def _on_close(self, connection: Connection) -> None:
        address = self._addresses.pop(connection, None)
        if address is None:
            return
        if self._by_address.get(address) is connection:
            del self._by_address[address]
        if self._on_disconnect is not None and not self._is_closed:
            self._on_disconnect(address)


def _split(address: str) -> tuple[str, int]:
    """Host and port of ``host:port``; an IPv6 host stands in brackets."""
    host, _, port = address.rpartition(":")
    with suppress(ValueError):
        number = int(port)
        if host and 0 < number < 1 << 16:
            return host.removeprefix("[").removesuffix("]"), number
    raise ConnectFailed(address, "an address is host:port")
