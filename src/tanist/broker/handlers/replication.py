"""What operators ask about replication (907)."""

from tanist.broker.operating.ha_status import ha_status
from tanist.broker.state import BrokerState
from tanist.protocol.bodies import encode_body
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.remoting import Connection, Handler


def routes(state: BrokerState) -> dict[int, Handler]:
    def get_status(command: Command, _connection: Connection) -> Command:
        return command.reply(body=encode_body(ha_status(state)))

    return {RequestCode.GET_BROKER_HA_STATUS: get_status}
