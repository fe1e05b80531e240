"""What operators ask about replication (907)."""

from tanist.broker.state import BrokerState
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.replication import HARuntimeInfo
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.remoting import Connection, Handler


def routes(state: BrokerState) -> dict[int, Handler]:
    def get_status(command: Command, _connection: Connection) -> Command:
        """A master that has no slaves yet: its log's end is all there is to tell."""
        status = HARuntimeInfo(is_master=True, log_end=state.store.log.log_end)
        return command.reply(body=encode_body(status))

    return {RequestCode.GET_BROKER_HA_STATUS: get_status}
