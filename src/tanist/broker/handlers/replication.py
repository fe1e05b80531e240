"""What operators ask about replication (907), and have done to a slave that does not fit (20001)."""

import logging

from tanist.broker.operating.ha_status import ha_status
from tanist.broker.state import BrokerState
from tanist.errors import ResponseError
from tanist.protocol.bodies import encode_body
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.sync import RebuildSlaveRequest
from tanist.remoting import Connection, Handler

_log = logging.getLogger(__name__)


def routes(state: BrokerState) -> dict[int, Handler]:
    handler = ReplicationHandler(state)
    return {
        RequestCode.GET_BROKER_HA_STATUS: handler.get_status,
        RequestCode.REBUILD_SLAVE: handler.rebuild,
    }


class ReplicationHandler:
    """Answers what concerns a broker's master or its slaves."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def get_status(self, command: Command, _connection: Connection) -> Command:
        return command.reply(body=encode_body(ha_status(self._state)))

    def rebuild(self, command: Command, connection: Connection) -> Command:
        """Answered before it is done: the connection ends with the old log."""
        state, request = self._state, command.header(RebuildSlaveRequest)
        me = (state.settings.broker_name, state.settings.broker_id)
        if (request.broker_name, request.broker_id) != me:
            raise ResponseError(
                ResponseCode.INVALID_PARAMETER,
                f"this is replica {me[1]} of {me[0]}, not {request.broker_id} of {request.broker_name}",
            )
        follower = state.replication.follower
        if state.rebuild is None or follower is None:
            raise ResponseError(
                ResponseCode.NO_PERMISSION, "only a slave can be rebuilt: a master's log is the one to copy"
            )
        self._check_not_read()
        if follower.status.master_address is None:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                "no master is known that could fill this slave; start one, or set haMasterAddress",
            )
        if not follower.status.is_reached:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"the master at {follower.status.master_address} does not answer: this log may be the only "
                "one; start the master first",
            )
        _log.warning("rebuild asked by=%s log_end=%d", connection.peer, state.store.log.log_end)
        state.rebuild()
        return command.reply()

    def _check_not_read(self) -> None:
        """The offsets that consumers told a slave that is read go with its log."""
        view = self._state.slave_consume
        if view is None:
            return
        status = view.status()
        if status.record is None:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                "the registry has not been read yet, and this slave may have been read; see that it is up",
            )
        if status.reader == status.address:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                "this slave is read, and has offsets that its master has not got; wait for the hand-back",
            )
