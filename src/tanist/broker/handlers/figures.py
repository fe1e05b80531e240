"""Figures about the broker: how it runs (28), and one counter over a minute, an hour and a day (315)."""

from tanist.broker.operating.runtime_info import runtime_info
from tanist.broker.state import BrokerState
from tanist.errors import ResponseError
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.tables import KVTable
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.messages import ViewBrokerStatsRequest
from tanist.remoting import Connection, Handler


def routes(state: BrokerState) -> dict[int, Handler]:
    handler = FigureHandler(state)
    return {
        RequestCode.GET_BROKER_RUNTIME_INFO: handler.get_runtime_info,
        RequestCode.VIEW_BROKER_STATS_DATA: handler.view_counter,
    }


class FigureHandler:
    """Answers what is measured."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def get_runtime_info(self, command: Command, _connection: Connection) -> Command:
        return command.reply(body=encode_body(KVTable(table=runtime_info(self._state))))

    def view_counter(self, command: Command, _connection: Connection) -> Command:
        request = command.header(ViewBrokerStatsRequest)
        found = self._state.counters.find(request.stats_name, request.stats_key)
        if found is None:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"nothing was counted as {request.stats_name} of {request.stats_key} in the last day",
            )
        return command.reply(body=encode_body(found))
