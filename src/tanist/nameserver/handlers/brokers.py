"""Brokers: they register, stay alive, ask about their group, and say goodbye."""

from tanist.errors import RemoteProtocolError
from tanist.model.data_version import DataVersion
from tanist.nameserver.handlers.context import Context, Handle
from tanist.nameserver.handlers.zones import zone_of
from tanist.nameserver.kv_config import ORDER_TOPIC_NAMESPACE
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies import decode_java_json, encode_body
from tanist.protocol.bodies.registration import RegisterBrokerBody, decode_registration, registration_crc
from tanist.protocol.bodies.tables import BrokerMemberGroupAnswer, KVTable
from tanist.protocol.headers.controller import BrokerHeartbeatRequest
from tanist.protocol.headers.nameserver import (
    BrokerIdentityRequest,
    BrokerMemberGroupRequest,
    QueryDataVersionResponse,
    RegisterBrokerRequest,
)
from tanist.remoting import Connection


def register(context: Context, request: Command, connection: Connection) -> Command:
    header = request.header(RegisterBrokerRequest)
    if header.body_crc32 and header.body_crc32 != registration_crc(request.body):
        return request.reply(
            ResponseCode.SYSTEM_ERROR, remark="the body does not have the crc32 it should have"
        )
    body = RegisterBrokerBody()
    if request.body:
        body = decode_registration(request.body, is_compressed=header.is_compressed, version=request.version)
    settings = context.settings.current
    answer, actions = context.table.register(
        header,
        body,
        connection=connection,
        now_s=context.clock.monotonic_s(),
        zone_name=zone_of(request),
        is_topic_list_complete=settings.delete_topic_with_broker_registration,
    )
    context.carry_out(actions)
    order_topics = context.kv.current.values(ORDER_TOPIC_NAMESPACE)
    if order_topics is None or not settings.return_order_topic_config_to_broker:
        return request.reply(header=answer)
    return request.reply(header=answer, body=encode_body(KVTable(table=order_topics)))


def unregister(context: Context, request: Command, _connection: Connection) -> Command:
    context.carry_out(context.table.unregister(request.header(BrokerIdentityRequest)))
    return request.reply()


def query_data_version(context: Context, request: Command, _connection: Connection) -> Command:
    header = request.header(BrokerIdentityRequest)
    if not request.body:
        raise RemoteProtocolError("a question for the data version has no body to compare")
    asked = decode_java_json(request.body, DataVersion)
    held = context.table.query_data_version(
        header.cluster_name, header.broker_addr, now_s=context.clock.monotonic_s()
    )
    return request.reply(
        header=QueryDataVersionResponse(is_changed=held != asked),
        body=b"" if held is None else encode_body(held),
    )


def heartbeat(context: Context, request: Command, _connection: Connection) -> Command:
    header = request.header(BrokerHeartbeatRequest)
    context.table.heartbeat(header.cluster_name, header.broker_addr, now_s=context.clock.monotonic_s())
    return request.reply()


def member_group(context: Context, request: Command, _connection: Connection) -> Command:
    header = request.header(BrokerMemberGroupRequest)
    members = context.table.member_group(header.cluster_name, header.broker_name)
    return request.reply(body=encode_body(BrokerMemberGroupAnswer(broker_member_group=members)))


HANDLERS: dict[RequestCode, Handle] = {
    RequestCode.REGISTER_BROKER: register,
    RequestCode.UNREGISTER_BROKER: unregister,
    RequestCode.QUERY_DATA_VERSION: query_data_version,
    RequestCode.BROKER_HEARTBEAT: heartbeat,
    RequestCode.GET_BROKER_MEMBER_GROUP: member_group,
}
