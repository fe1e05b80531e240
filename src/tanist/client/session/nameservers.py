"""Asks name servers for routes: one of them at a time, the next one when it does not answer."""

import logging
import random

from tanist.client.errors import NoRoute
from tanist.client.settings import ClientSettings
from tanist.errors import RemoteProtocolError, RemotingError, ResponseError
from tanist.model.route import TopicRouteData
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.nameserver import GetRouteRequest
from tanist.protocol.java_json import decode_java_json
from tanist.protocol.response_errors import TopicNotFound, error_of
from tanist.remoting import RemotingClient

_log = logging.getLogger(__name__)


class NameServers:
    """The name servers of one client, in an order of its own so that not all clients ask the same one."""

    def __init__(self, settings: ClientSettings, remoting: RemotingClient) -> None:
        self._addresses = random.sample(settings.namesrv, len(settings.namesrv))
        # One that is silent leaves the others some of the time that a send has.
        self._timeout_s = settings.timeout_s / len(settings.namesrv)
        self._remoting = remoting

    async def route_of(self, topic: str) -> TopicRouteData:
        """The route of a topic. Raises TopicNotFound, or NoRoute if no name server answers."""
        failures: list[str] = []
        for address in tuple(self._addresses):
            request = Command.request(
                RequestCode.GET_ROUTEINFO_BY_TOPIC,
                GetRouteRequest(topic=topic, accept_standard_json_only=True),
            )
            try:
                answer = await self._remoting.request(address, request, timeout_s=self._timeout_s)
                return _read(answer)
            except TopicNotFound:
                raise
            except (RemotingError, ResponseError, RemoteProtocolError) as error:
                failures.append(f"{address}: {error}")
                _log.debug(
                    "name server does not help name_server=%s topic=%s error=%s", address, topic, error
                )
                self._move_back(address)
        raise NoRoute(topic, f"no name server answers ({'; '.join(failures)})")

    def _move_back(self, address: str) -> None:
        """Whoever failed is asked last from now on."""
        self._addresses.remove(address)
        self._addresses.append(address)


def _read(answer: Command) -> TopicRouteData:
    if answer.code != ResponseCode.SUCCESS:
        raise error_of(answer)
    return decode_java_json(answer.body, TopicRouteData)
