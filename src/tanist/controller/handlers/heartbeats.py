"""Brokers: they are alive, or somebody saw that one is not."""

from tanist.controller.handlers.context import Context, Handle
from tanist.errors import ResponseError
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.headers.controller import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    ReportDeadBrokerRequest,
)
from tanist.remoting import Connection


def heartbeat(context: Context, request: Command, connection: Connection) -> Command:
    """Every controller takes heartbeats in, so that whoever leads next knows who is alive."""
    lease_epoch = context.reigns.on_heartbeat(request.header(BrokerHeartbeatRequest), connection)
    return request.reply(header=BrokerHeartbeatResponse(lease_epoch=lease_epoch))


def report_dead(context: Context, request: Command, _connection: Connection) -> Command:
    header = request.header(ReportDeadBrokerRequest)
    if not context.reigns.on_dead(header):
        raise ResponseError(
            ResponseCode.CONTROLLER_BROKER_LIVE_INFO_NOT_EXISTS,
            f"no replica of {header.broker_name} is alive that has this session",
        )
    return request.reply()


HANDLERS: dict[RequestCode, Handle] = {
    RequestCode.BROKER_HEARTBEAT: heartbeat,
    RequestCode.CONTROLLER_REPORT_DEAD_BROKER: report_dead,
}
