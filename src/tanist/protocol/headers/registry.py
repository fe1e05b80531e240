"""Which header goes with which request, and which with its answer.

The table is the protocol's index: one line a request code, in the order of the families. A code
that stands in ``RequestCode`` but not here is one we only know by name and refuse.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tanist.protocol.codes import RequestCode as C
from tanist.protocol.headers import (
    client,
    common,
    controller,
    groups,
    messages,
    nameserver,
    offsets,
    pull,
    reset,
    send,
    sync,
    topics,
    transaction,
)
from tanist.protocol.headers.base import Header, NoFields


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer. ``is_one_way``: the sender never waits for an answer."""

    request: type[Header]
    response: type[Header] = NoFields
    is_one_way: bool = False


_NOTHING = Exchange(NoFields)

EXCHANGES: Mapping[C, Exchange] = MappingProxyType(
    {
        # sending
        C.SEND_MESSAGE: Exchange(send.SendMessageRequest, send.SendMessageResponse),
        C.SEND_MESSAGE_V2: Exchange(send.SendMessageRequestV2, send.SendMessageResponse),
        C.SEND_BATCH_MESSAGE: Exchange(send.SendMessageRequestV2, send.SendMessageResponse),
        C.SEND_REPLY_MESSAGE: Exchange(send.SendMessageRequest, send.SendMessageResponse),
        C.SEND_REPLY_MESSAGE_V2: Exchange(send.SendMessageRequestV2, send.SendMessageResponse),
        C.PUSH_REPLY_MESSAGE_TO_CLIENT: Exchange(send.PushReplyMessageRequest),
        C.CONSUMER_SEND_MSG_BACK: Exchange(send.ConsumerSendBackRequest),
        C.RECALL_MESSAGE: Exchange(send.RecallMessageRequest, send.RecallMessageResponse),
        C.END_TRANSACTION: Exchange(transaction.EndTransactionRequest, is_one_way=True),
        C.CHECK_TRANSACTION_STATE: Exchange(transaction.CheckTransactionStateRequest, is_one_way=True),
        # consuming
        C.PULL_MESSAGE: Exchange(pull.PullMessageRequest, pull.PullMessageResponse),
        C.LITE_PULL_MESSAGE: Exchange(pull.PullMessageRequest, pull.PullMessageResponse),
        C.QUERY_CONSUMER_OFFSET: Exchange(offsets.QueryConsumerOffsetRequest, offsets.ConsumerOffsetResponse),
        # One-way from clients, but operator tools wait for the answer.
        C.UPDATE_CONSUMER_OFFSET: Exchange(offsets.UpdateConsumerOffsetRequest),
        C.GET_MAX_OFFSET: Exchange(offsets.GetMaxOffsetRequest, common.QueueOffsetResponse),
        C.GET_MIN_OFFSET: Exchange(common.TopicQueueRequest, common.QueueOffsetResponse),
        C.SEARCH_OFFSET_BY_TIMESTAMP: Exchange(offsets.SearchOffsetRequest, common.QueueOffsetResponse),
        C.GET_EARLIEST_MSG_STORETIME: Exchange(common.TopicQueueRequest, offsets.EarliestStoreTimeResponse),
        C.CLONE_GROUP_OFFSET: Exchange(offsets.CloneGroupOffsetRequest),
        C.QUERY_CORRECTION_OFFSET: Exchange(offsets.QueryCorrectionOffsetRequest),
        # clients
        C.HEART_BEAT: Exchange(NoFields, client.HeartbeatResponse),
        C.UNREGISTER_CLIENT: Exchange(client.UnregisterClientRequest),
        C.GET_CONSUMER_LIST_BY_GROUP: Exchange(common.ConsumerGroupRequest),
        C.NOTIFY_CONSUMER_IDS_CHANGED: Exchange(common.ConsumerGroupRequest, is_one_way=True),
        C.LOCK_BATCH_MQ: _NOTHING,
        C.UNLOCK_BATCH_MQ: _NOTHING,
        C.CHECK_CLIENT_CONFIG: _NOTHING,
        C.QUERY_ASSIGNMENT: _NOTHING,
        C.SET_MESSAGE_REQUEST_MODE: _NOTHING,
        C.GET_CONSUMER_RUNNING_INFO: Exchange(client.ConsumerRunningInfoRequest),
        C.CONSUME_MESSAGE_DIRECTLY: Exchange(client.ConsumeMessageDirectlyRequest),
        # resetting offsets
        C.RESET_CONSUMER_CLIENT_OFFSET: Exchange(reset.ResetOffsetRequest, is_one_way=True),
        C.GET_CONSUMER_STATUS_FROM_CLIENT: Exchange(common.TopicGroupRequest),
        C.INVOKE_BROKER_TO_RESET_OFFSET: Exchange(reset.ResetOffsetRequest),
        C.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: Exchange(reset.InvokeConsumerStatusRequest),
        # topics and groups
        C.UPDATE_AND_CREATE_TOPIC: Exchange(topics.UpdateTopicRequest),
        C.UPDATE_AND_CREATE_TOPIC_LIST: _NOTHING,
        C.DELETE_TOPIC_IN_BROKER: Exchange(common.TopicRequest),
        C.GET_TOPIC_CONFIG: Exchange(topics.GetTopicConfigRequest),
        C.GET_TOPIC_STATS_INFO: Exchange(common.TopicRequest),
        C.QUERY_TOPIC_CONSUME_BY_WHO: Exchange(common.TopicRequest),
        C.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: _NOTHING,
        C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: _NOTHING,
        C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: _NOTHING,
        C.DELETE_SUBSCRIPTIONGROUP: Exchange(groups.DeleteGroupRequest),
        C.GET_SUBSCRIPTIONGROUP_CONFIG: Exchange(common.GroupRequest),
        C.GET_CONSUMER_CONNECTION_LIST: Exchange(common.ConsumerGroupRequest),
        C.GET_PRODUCER_CONNECTION_LIST: Exchange(groups.ProducerGroupRequest),
        C.GET_ALL_PRODUCER_INFO: _NOTHING,
        C.GET_CONSUME_STATS: Exchange(groups.GetConsumeStatsRequest),
        C.GET_BROKER_CONSUME_STATS: Exchange(groups.BrokerConsumeStatsRequest),
        C.QUERY_TOPICS_BY_CONSUMER: Exchange(common.GroupRequest),
        C.QUERY_SUBSCRIPTION_BY_CONSUMER: Exchange(groups.QuerySubscriptionRequest),
        C.QUERY_CONSUME_TIME_SPAN: Exchange(common.TopicGroupRequest),
        # messages
        C.QUERY_MESSAGE: Exchange(messages.QueryMessageRequest, messages.QueryMessageResponse),
        C.VIEW_MESSAGE_BY_ID: Exchange(messages.ViewMessageRequest),
        C.QUERY_CONSUME_QUEUE: Exchange(messages.QueryConsumeQueueRequest),
        C.VIEW_BROKER_STATS_DATA: Exchange(messages.ViewBrokerStatsRequest),
        # the broker itself
        C.UPDATE_BROKER_CONFIG: _NOTHING,
        C.GET_BROKER_CONFIG: Exchange(NoFields, sync.GetBrokerConfigResponse),
        C.GET_BROKER_RUNTIME_INFO: _NOTHING,
        C.CLEAN_EXPIRED_CONSUMEQUEUE: _NOTHING,
        C.CLEAN_UNUSED_TOPIC: _NOTHING,
        C.DELETE_EXPIRED_COMMITLOG: _NOTHING,
        # name server
        C.GET_ROUTEINFO_BY_TOPIC: Exchange(nameserver.GetRouteRequest),
        C.GET_BROKER_CLUSTER_INFO: _NOTHING,
        C.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: _NOTHING,
        C.GET_TOPICS_BY_CLUSTER: Exchange(nameserver.ClusterRequest),
        C.GET_SYSTEM_TOPIC_LIST_FROM_NS: _NOTHING,
        C.GET_UNIT_TOPIC_LIST: _NOTHING,
        C.GET_HAS_UNIT_SUB_TOPIC_LIST: _NOTHING,
        C.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: _NOTHING,
        C.PUT_KV_CONFIG: Exchange(nameserver.PutKVConfigRequest),
        C.GET_KV_CONFIG: Exchange(nameserver.KVConfigRequest, nameserver.GetKVConfigResponse),
        C.DELETE_KV_CONFIG: Exchange(nameserver.KVConfigRequest),
        C.GET_KVLIST_BY_NAMESPACE: Exchange(nameserver.KVNamespaceRequest),
        C.WIPE_WRITE_PERM_OF_BROKER: Exchange(common.BrokerNameRequest, nameserver.WipeWritePermResponse),
        C.ADD_WRITE_PERM_OF_BROKER: Exchange(common.BrokerNameRequest, nameserver.AddWritePermResponse),
        C.DELETE_TOPIC_IN_NAMESRV: Exchange(nameserver.DeleteTopicInNameserverRequest),
        C.REGISTER_TOPIC_IN_NAMESRV: Exchange(common.TopicRequest),
        C.UPDATE_NAMESRV_CONFIG: _NOTHING,
        C.GET_NAMESRV_CONFIG: _NOTHING,
        C.REGISTER_BROKER: Exchange(nameserver.RegisterBrokerRequest, nameserver.RegisterBrokerResponse),
        C.UNREGISTER_BROKER: Exchange(nameserver.BrokerIdentityRequest),
        C.QUERY_DATA_VERSION: Exchange(nameserver.BrokerIdentityRequest, nameserver.QueryDataVersionResponse),
        C.GET_BROKER_MEMBER_GROUP: Exchange(nameserver.BrokerMemberGroupRequest),
        C.BROKER_HEARTBEAT: Exchange(
            controller.BrokerHeartbeatRequest, controller.BrokerHeartbeatResponse, is_one_way=False
        ),
        C.NOTIFY_MIN_BROKER_ID_CHANGE: Exchange(nameserver.NotifyMinBrokerIdRequest, is_one_way=True),
        # slave and master
        C.GET_ALL_TOPIC_CONFIG: Exchange(sync.GetTopicConfigPageRequest, sync.GetTopicConfigPageResponse),
        C.GET_ALL_CONSUMER_OFFSET: _NOTHING,
        C.GET_ALL_DELAY_OFFSET: _NOTHING,
        C.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: Exchange(
            sync.GetGroupConfigPageRequest, sync.GetGroupConfigPageResponse
        ),
        C.GET_ALL_MESSAGE_REQUEST_MODE: _NOTHING,
        C.GET_TIMER_CHECK_POINT: _NOTHING,
        C.GET_TIMER_METRICS: _NOTHING,
        C.EXCHANGE_BROKER_HA_INFO: Exchange(sync.ExchangeHAInfo, sync.ExchangeHAInfo),
        C.GET_BROKER_HA_STATUS: _NOTHING,
        C.RESET_MASTER_FLUSH_OFFSET: Exchange(sync.ResetMasterFlushOffsetRequest),
        C.GET_BROKER_EPOCH_CACHE: _NOTHING,
        # controller
        C.CONTROLLER_GET_METADATA_INFO: Exchange(NoFields, controller.ControllerMetadataResponse),
        C.CONTROLLER_GET_NEXT_BROKER_ID: Exchange(
            controller.GetNextBrokerIdRequest, controller.GetNextBrokerIdResponse
        ),
        C.CONTROLLER_APPLY_BROKER_ID: Exchange(
            controller.ApplyBrokerIdRequest, controller.ApplyBrokerIdResponse
        ),
        C.CONTROLLER_REGISTER_BROKER: Exchange(
            controller.RegisterReplicaRequest, controller.RegisterReplicaResponse
        ),
        C.CONTROLLER_ELECT_MASTER: Exchange(controller.ElectMasterRequest, controller.ElectMasterResponse),
        C.CONTROLLER_ALTER_SYNC_STATE_SET: Exchange(
            controller.AlterSyncStateSetRequest, controller.AlterSyncStateSetResponse
        ),
        C.CONTROLLER_GET_REPLICA_INFO: Exchange(common.BrokerNameRequest, controller.ReplicaInfoResponse),
        C.CONTROLLER_GET_SYNC_STATE_DATA: _NOTHING,
        C.NOTIFY_BROKER_ROLE_CHANGED: Exchange(controller.NotifyRoleChangedRequest, is_one_way=True),
        C.UPDATE_CONTROLLER_CONFIG: _NOTHING,
        C.GET_CONTROLLER_CONFIG: _NOTHING,
        C.CLEAN_BROKER_DATA: Exchange(controller.CleanBrokerDataRequest),
    }
)
