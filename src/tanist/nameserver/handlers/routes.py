"""Clients and operators: where a topic is, which topics and brokers there are, what may be written."""

from collections.abc import Callable

import msgspec

from tanist.model.route import TopicRouteData
from tanist.model.topics import TopicSysFlag
from tanist.nameserver.handlers.context import Context, Handle
from tanist.nameserver.handlers.zones import in_zone, wants_own_zone, zone_of
from tanist.nameserver.kv_config import ORDER_TOPIC_NAMESPACE
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies import decode_java_json, encode_body
from tanist.protocol.bodies.tables import TopicList
from tanist.protocol.headers.common import BrokerNameRequest, TopicRequest
from tanist.protocol.headers.nameserver import (
    AddWritePermResponse,
    ClusterRequest,
    DeleteTopicInNameserverRequest,
    GetRouteRequest,
    WipeWritePermResponse,
)
from tanist.remoting import Connection


def route(context: Context, request: Command, _connection: Connection) -> Command:
    """The keys of the answer are always quoted: Java clients of every version read that."""
    settings = context.settings.current
    age_s = context.clock.monotonic_s() - context.started_at_s
    if settings.need_wait_for_service and age_s < settings.wait_seconds_for_service:
        return request.reply(ResponseCode.SYSTEM_ERROR, remark="name server not ready")
    topic = request.header(GetRouteRequest).topic
    found = context.table.route(topic, is_acting_master_shown=settings.support_acting_master)
    if found is None:
        return request.reply(
            ResponseCode.TOPIC_NOT_EXIST, remark=f"no broker has registered the topic {topic}"
        )
    if settings.order_message_enable:
        order = context.kv.current.value(ORDER_TOPIC_NAMESPACE, topic)
        found = msgspec.structs.replace(found, order_topic_conf=order)
    if wants_own_zone(request) and (zone_name := zone_of(request)):
        found = in_zone(found, zone_name)
    return request.reply(body=encode_body(found))


def cluster_info(context: Context, request: Command, _connection: Connection) -> Command:
    return request.reply(body=encode_body(context.table.cluster_info()))


def all_topics(context: Context, request: Command, _connection: Connection) -> Command:
    if not context.settings.current.enable_all_topic_list:
        return request.reply(ResponseCode.SYSTEM_ERROR, remark="disable")
    return request.reply(body=encode_body(TopicList(topics=context.table.topics.names)))


def system_topics(context: Context, request: Command, _connection: Connection) -> Command:
    return request.reply(body=encode_body(context.table.system_topics()))


def _topic_list(find: Callable[[Context, Command], frozenset[str]]) -> Handle:
    """A handler for one of the lists that ``enableTopicList`` switches."""

    def handle(context: Context, request: Command, _connection: Connection) -> Command:
        if not context.settings.current.enable_topic_list:
            return request.reply(ResponseCode.SYSTEM_ERROR, remark="disable")
        return request.reply(body=encode_body(TopicList(topics=find(context, request))))

    return handle


def wipe_write_perm(context: Context, request: Command, _connection: Connection) -> Command:
    count = context.table.topics.wipe_write(request.header(BrokerNameRequest).broker_name)
    return request.reply(header=WipeWritePermResponse(wiped_topic_count=count))


def add_write_perm(context: Context, request: Command, _connection: Connection) -> Command:
    count = context.table.topics.add_write(request.header(BrokerNameRequest).broker_name)
    return request.reply(header=AddWritePermResponse(added_topic_count=count))


def delete_topic(context: Context, request: Command, _connection: Connection) -> Command:
    header = request.header(DeleteTopicInNameserverRequest)
    context.table.delete_topic(header.topic, header.cluster_name)
    return request.reply()


def register_topic(context: Context, request: Command, _connection: Connection) -> Command:
    topic = request.header(TopicRequest).topic
    if request.body:
        context.table.register_topic(topic, decode_java_json(request.body, TopicRouteData).queue_datas)
    return request.reply()


HANDLERS: dict[RequestCode, Handle] = {
    RequestCode.GET_ROUTEINFO_BY_TOPIC: route,
    RequestCode.GET_BROKER_CLUSTER_INFO: cluster_info,
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: all_topics,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: system_topics,
    RequestCode.GET_TOPICS_BY_CLUSTER: _topic_list(
        lambda context, request: context.table.topics_of_cluster(request.header(ClusterRequest).cluster)
    ),
    RequestCode.GET_UNIT_TOPIC_LIST: _topic_list(
        lambda context, _: context.table.topics.with_sys_flag(has=TopicSysFlag.UNIT)
    ),
    RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: _topic_list(
        lambda context, _: context.table.topics.with_sys_flag(has=TopicSysFlag.UNIT_SUB)
    ),
    RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: _topic_list(
        lambda context, _: context.table.topics.with_sys_flag(
            has=TopicSysFlag.UNIT_SUB, has_not=TopicSysFlag.UNIT
        )
    ),
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: wipe_write_perm,
    RequestCode.ADD_WRITE_PERM_OF_BROKER: add_write_perm,
    RequestCode.DELETE_TOPIC_IN_NAMESRV: delete_topic,
    RequestCode.REGISTER_TOPIC_IN_NAMESRV: register_topic,
}
