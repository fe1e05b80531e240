"""Asking the controller that keeps the registry, and what its answers mean."""

from typing import TypeVar

from tanist.coord.registry import RegistryUnavailable
from tanist.errors import ConnectFailed, RemoteProtocolError, RemotingError, TooBusy
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies import Body, decode_java_json
from tanist.protocol.headers.base import Header
from tanist.remoting import RemotingClient

H = TypeVar("H", bound=Header)
B = TypeVar("B", bound=Body)


class SessionOver(RegistryUnavailable):
    """The controller does not know our session, or has ended it."""

    def __init__(self) -> None:
        super().__init__("our session with the registry is over; open another")


class NoRegistryThere(RegistryUnavailable):
    """Whoever answers keeps no registry that others could use."""


class ControllerWire:
    """One controller, asked in the name of one session."""

    def __init__(self, client: RemotingClient, address: str) -> None:
        self._client = client
        self.address = address

    async def ask(self, code: RequestCode, header: Header, body: bytes = b"", *, timeout_s: float) -> Command:
        """The answer, if it says yes. Raises RegistryUnavailable, which says whether anything was sent."""
        request = Command.request(code, header, body=body)
        try:
            answer = await self._client.request(self.address, request, timeout_s=timeout_s)
        except (ConnectFailed, TooBusy) as error:
            raise RegistryUnavailable(f"{error}; nothing was asked") from error
        except RemotingError as error:
            raise RegistryUnavailable(f"{error}; what was asked may be done") from error
        match answer.code:
            case ResponseCode.SUCCESS:
                return answer
            case ResponseCode.REGISTRY_SESSION_OVER:
                raise SessionOver
            case ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                raise NoRegistryThere(f"{self.address} keeps no registry for others: {answer.remark}")
            case refusal:
                raise RegistryUnavailable(
                    f"{self.address} refused: {answer.remark} (response code {refusal})"
                )

    def header(self, answer: Command, kind: type[H]) -> H:
        """The header of an answer. Raises RegistryUnavailable if it makes no sense."""
        try:
            return answer.header(kind)
        except RemoteProtocolError as error:
            raise self._senseless(error) from error

    def body(self, answer: Command, kind: type[B]) -> B:
        """The body of an answer. Raises RegistryUnavailable if it makes no sense."""
        try:
            return decode_java_json(answer.body, kind)
        except RemoteProtocolError as error:
            raise self._senseless(error) from error

    def _senseless(self, error: RemoteProtocolError) -> RegistryUnavailable:
        return RegistryUnavailable(f"the answer of {self.address} makes no sense: {error}")
