"""Operators: the settings the name server runs with."""

import logging

from tanist.config import to_properties
from tanist.errors import ConfigError
from tanist.nameserver.handlers.context import Context, Handle
from tanist.nameserver.settings import UPDATABLE_KEYS
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies.config_text import decode_config, encode_config
from tanist.remoting import Connection

_log = logging.getLogger(__name__)


def update(context: Context, request: Command, connection: Connection) -> Command:
    changes = decode_config(request.body)
    refused = sorted(changes.keys() - UPDATABLE_KEYS)
    if refused:
        _log.warning("settings update refused peer=%s keys=%s", connection.peer, ",".join(refused))
        remark = (
            f"{', '.join(refused)} can not be changed over the wire, only {', '.join(sorted(UPDATABLE_KEYS))}"
        )
        return request.reply(ResponseCode.NO_PERMISSION, remark=remark)
    try:
        context.settings.update(changes)
    except ConfigError as error:
        return request.reply(ResponseCode.SYSTEM_ERROR, remark=str(error))
    _log.info("settings updated peer=%s changes=%s", connection.peer, changes)
    return request.reply()


def get(context: Context, request: Command, _connection: Connection) -> Command:
    return request.reply(body=encode_config(to_properties(context.settings.current, context.limits)))


HANDLERS: dict[RequestCode, Handle] = {
    RequestCode.UPDATE_NAMESRV_CONFIG: update,
    RequestCode.GET_NAMESRV_CONFIG: get,
}
