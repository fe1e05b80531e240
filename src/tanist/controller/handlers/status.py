"""Anybody: who leads. Operators: the settings it runs with, and how it stands. Every controller answers."""

import logging

from tanist.config import to_properties
from tanist.controller.handlers.context import Context, Handle
from tanist.errors import ConfigError, ResponseError
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.config_text import decode_config, encode_config
from tanist.protocol.bodies.tables import KVTable
from tanist.protocol.headers.controller import ControllerMetadataResponse
from tanist.remoting import Connection

_log = logging.getLogger(__name__)


def metadata(context: Context, request: Command, _connection: Connection) -> Command:
    leading = context.leading
    ids = {address: f"n{number}" for number, address in enumerate(leading.controllers)}
    leader = leading.leader_address
    if leader == leading.address and not leading.is_leading:
        leader = None
    return request.reply(
        header=ControllerMetadataResponse(
            group=context.settings.current.raft_group,
            controller_leader_id=None if leader is None else ids.get(leader),
            controller_leader_address=leader,
            is_leader=leading.is_leading,
            peers="".join(f"{name}:{address};" for address, name in ids.items()),
        )
    )


def update_settings(context: Context, request: Command, connection: Connection) -> Command:
    changes = decode_config(request.body)
    allowed = context.settings.updatable_keys
    if refused := sorted(changes.keys() - allowed):
        raise ResponseError(
            ResponseCode.NO_PERMISSION,
            f"{', '.join(refused)} can not be changed over the wire, only {', '.join(sorted(allowed))}",
        )
    try:
        context.settings.update(changes)
    except ConfigError as error:
        raise ResponseError(ResponseCode.SYSTEM_ERROR, str(error)) from error
    _log.info("settings updated peer=%s changes=%s", connection.peer, changes)
    # Somebody may be electable now.
    context.reigns.review_all()
    return request.reply()


def get_settings(context: Context, request: Command, _connection: Connection) -> Command:
    return request.reply(body=encode_config(to_properties(context.settings.current, context.limits)))


def figures(context: Context, request: Command, _connection: Connection) -> Command:
    """How it stands, in the form in which brokers tell it: ``mqadmin brokerStatus -b`` shows it."""
    leading, refusals = context.leading, context.refusals
    table = {
        "controllerAddress": leading.address,
        "controllerIsLeader": str(leading.is_leading).lower(),
        "controllerLeaderAddress": leading.leader_address or "",
        "controllerRegistrySession": leading.session.value,
        "controllerRemoteSessions": str(
            0 if context.remote_sessions is None else context.remote_sessions.count
        ),
        "controllerGroups": str(len(context.keeper.records)),
        "controllerLiveReplicas": str(context.reigns.live.count),
        "controllerElections": str(context.reigns.election_count),
        "controllerRefused": str(refusals.counts.total()),
    }
    table |= {f"controllerRefused.{kind}": str(count) for kind, count in sorted(refusals.counts.items())}
    table |= {
        f"controllerRefusedLast.{number}": f"{each.peer} code {each.request_code}: {each.reason}"
        for number, each in enumerate(reversed(refusals.last))
    }
    return request.reply(body=encode_body(KVTable(table=table)))


HANDLERS: dict[RequestCode, Handle] = {
    RequestCode.CONTROLLER_GET_METADATA_INFO: metadata,
    RequestCode.UPDATE_CONTROLLER_CONFIG: update_settings,
    RequestCode.GET_CONTROLLER_CONFIG: get_settings,
    RequestCode.GET_BROKER_RUNTIME_INFO: figures,
}
