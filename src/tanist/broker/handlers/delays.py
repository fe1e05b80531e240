"""How far delayed messages are delivered, for slaves: delay offsets (45), the timer's checkpoint (60)."""

from tanist.broker.state import BrokerState
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.sync import encode_timer_check_point
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.remoting import Connection, Handler


def routes(state: BrokerState) -> dict[int, Handler]:
    def get_offsets(command: Command, _connection: Connection) -> Command:
        return command.reply(body=encode_body(state.delays.levels.table()))

    def get_timer(command: Command, _connection: Connection) -> Command:
        return command.reply(body=encode_timer_check_point(state.delays.timer_point))

    return {RequestCode.GET_ALL_DELAY_OFFSET: get_offsets, RequestCode.GET_TIMER_CHECK_POINT: get_timer}
