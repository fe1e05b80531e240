"""The broker's settings, as operators read and change them (26, 25)."""

import logging

from tanist.broker.state import BrokerState
from tanist.errors import ResponseError
from tanist.model.names import shown
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.config_text import decode_config, encode_config
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.sync import GetBrokerConfigResponse
from tanist.remoting import Connection, Handler

_log = logging.getLogger(__name__)


def routes(state: BrokerState) -> dict[int, Handler]:
    handler = ConfigHandler(state)
    return {
        RequestCode.GET_BROKER_CONFIG: handler.get,
        RequestCode.UPDATE_BROKER_CONFIG: handler.update,
    }


class ConfigHandler:
    """Answers what concerns the settings of the broker itself."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def get(self, command: Command, _connection: Connection) -> Command:
        config = self._state.config
        header = GetBrokerConfigResponse(version=encode_body(config.data_version).decode())
        return command.reply(header=header, body=encode_config(config.properties()))

    def update(self, command: Command, connection: Connection) -> Command:
        """All or nothing: RocketMQ passes over keys that it does not know, and nobody is told."""
        changes = decode_config(command.body)
        if changes:
            try:
                self._state.config.update(changes, now_ms=self._state.clock.now_ms())
            except ResponseError as refusal:
                _log.warning("settings update failed by=%s reason=%s", connection.peer, shown(refusal.remark))
                raise
            _log.info("settings updated by=%s changes=%s", connection.peer, shown(str(changes)))
        return command.reply()
