"""How far delayed messages are delivered, for slaves.

Delay offsets (45), the timer's checkpoint (60), and how many messages wait for their time by topic (61),
which Tanist does not count: a slave of RocketMQ asks for it, and an empty table is what it can keep.
"""

from tanist.broker.state import BrokerState
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.sync import TimerMetrics, encode_timer_check_point
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.remoting import Connection, Handler


def routes(state: BrokerState) -> dict[int, Handler]:
    def get_offsets(command: Command, _connection: Connection) -> Command:
        return command.reply(body=encode_body(state.delays.levels.table()))

    def get_timer(command: Command, _connection: Connection) -> Command:
        return command.reply(body=encode_timer_check_point(state.delays.timer_point))

    def get_counts(command: Command, _connection: Connection) -> Command:
        return command.reply(body=encode_body(TimerMetrics()))

    return {
        RequestCode.GET_ALL_DELAY_OFFSET: get_offsets,
        RequestCode.GET_TIMER_CHECK_POINT: get_timer,
        RequestCode.GET_TIMER_METRICS: get_counts,
    }
