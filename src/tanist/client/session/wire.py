"""Requests to brokers: signed if there are credentials, and a refusal raised as the error of its code."""

from collections.abc import Callable, Collection, Mapping

from tanist.client.settings import ClientSettings
from tanist.protocol.codes import FLAG_ONE_WAY, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.response_errors import error_of
from tanist.protocol.signature import ACCESS_KEY, SECURITY_TOKEN, SIGNATURE, sign
from tanist.remoting import Connection, Handler, RemotingClient

_ONLY_SUCCESS = frozenset({int(ResponseCode.SUCCESS)})


class Wire:
    """The connections of one client. ``handlers`` answer what brokers ask of it."""

    def __init__(
        self,
        settings: ClientSettings,
        handlers: Mapping[int, Handler],
        *,
        on_connect: Callable[[str], None],
        on_disconnect: Callable[[str], None],
    ) -> None:
        self._credentials = settings.credentials
        self._timeout_s = settings.timeout_s
        self.remoting = RemotingClient(
            handlers, tls=settings.tls, on_connect=on_connect, on_disconnect=on_disconnect
        )

    async def ask(
        self,
        address: str,
        command: Command,
        *,
        timeout_s: float | None = None,
        connect_s: float | None = None,
        accepted: Collection[int] = _ONLY_SUCCESS,
    ) -> Command:
        """The answer of the peer at ``address``. Raises a RemotingError, or the error of any other code."""
        answer = await self.exchange(
            address,
            command,
            timeout_s=self._timeout_s if timeout_s is None else timeout_s,
            connect_s=connect_s,
        )
        if answer.code not in accepted:
            raise error_of(answer)
        return answer

    async def exchange(
        self, address: str, command: Command, *, timeout_s: float, connect_s: float | None = None
    ) -> Command:
        """The answer of the peer at ``address``, whatever its code. Raises a RemotingError.

        ``connect_s`` leaves connecting less than the whole time.
        """
        self._sign(command)
        return await self.remoting.request(address, command, timeout_s=timeout_s, connect_s=connect_s)

    def tell(self, address: str, command: Command) -> None:
        """Send without wanting an answer."""
        self._sign(command)
        self.remoting.notify(address, command)

    def answer_later(self, connection: Connection, command: Command) -> None:
        """Send a one-way request to whoever asked something on this connection, and to nobody else."""
        self._sign(command)
        command.flag |= FLAG_ONE_WAY
        connection.send(command)

    async def post(self, address: str, command: Command, *, timeout_s: float) -> None:
        """Send without wanting an answer, when the peer keeps up. Raises ConnectFailed or TooBusy."""
        self._sign(command)
        await self.remoting.post(address, command, timeout_s=timeout_s)

    def give_up(self, address: str, reason: str) -> None:
        """Close the connection to a peer that is silent; whoever waits for its answer gets ConnectionLost."""
        self.remoting.give_up(address, reason)

    def hang_up(self, address: str, reason: str) -> None:
        """Close the connection to a peer that does not serve us, unless somebody waits for its answer."""
        self.remoting.hang_up(address, reason)

    async def close(self) -> None:
        await self.remoting.close()

    def _sign(self, command: Command) -> None:
        credentials = self._credentials
        if credentials is None:
            return
        ext = command.ext
        ext[ACCESS_KEY] = credentials.access_key
        if credentials.security_token is not None:
            ext[SECURITY_TOKEN] = credentials.security_token
        ext[SIGNATURE] = sign(ext, command.body, credentials.secret_key)
