"""What may be pulled, and what of it is wanted. Pure, as far as the broker's tables are."""

from functools import partial

from tanist.broker.message_filter import MessageFilter, filter_of
from tanist.broker.state import BrokerState
from tanist.errors import ResponseError
from tanist.model.subscription import TAG, SubscriptionData, subscribe
from tanist.protocol.codes import ResponseCode
from tanist.protocol.headers.pull import PullMessageRequest, PullSysFlag

_SUBSCRIPTION = int(PullSysFlag.SUBSCRIPTION)


def check_pull(state: BrokerState, request: PullMessageRequest) -> SubscriptionData:
    """Refuse what may not be pulled; what the consumer wants of the topic."""
    topic_name, group_name = request.topic, request.consumer_group
    if state.read_right is not None:
        state.read_right.check_read()
    if not state.settings.is_readable:
        raise ResponseError(
            ResponseCode.NO_PERMISSION, "the broker takes no pulls: its brokerPermission says so"
        )
    group = state.groups.require(group_name)
    if not group.is_consume_enabled:
        raise ResponseError(ResponseCode.NO_PERMISSION, f"group {group_name} may not consume: it is disabled")
    topic = state.topics.find(topic_name)
    if topic is None:
        raise ResponseError(
            ResponseCode.TOPIC_NOT_EXIST, f"topic {topic_name} does not exist; create it first"
        )
    if not topic.is_readable:
        raise ResponseError(ResponseCode.NO_PERMISSION, f"topic {topic_name} may not be read")
    if not 0 <= request.queue_id < topic.read_queue_count:
        raise ResponseError(
            ResponseCode.INVALID_PARAMETER,
            f"queue {request.queue_id} of {topic_name}: it has {topic.read_queue_count} queues to read",
        )
    if request.sys_flag & _SUBSCRIPTION:
        return _subscription_of(request)
    return state.clients.subscription(
        group_name,
        topic_name,
        sub_version=request.sub_version,
        is_broadcast_allowed=group.is_broadcast_enabled,
    )


def choose_filter(
    state: BrokerState, request: PullMessageRequest, subscription: SubscriptionData
) -> MessageFilter | None:
    """What of the queue the consumer gets, None if that is everything."""
    try:
        return filter_of(
            subscription,
            state.store.log.read,
            is_sql_enabled=state.settings.enable_property_filter,
            compile_it=partial(state.clients.condition, request.consumer_group),
        )
    except ResponseError as refusal:
        is_of_heartbeat = not request.sys_flag & _SUBSCRIPTION
        if is_of_heartbeat and refusal.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED:
            # The pull brings no expression that could be wrong: its group has none that works.
            raise ResponseError(ResponseCode.FILTER_DATA_NOT_EXIST, refusal.remark) from refusal
        raise


def _subscription_of(request: PullMessageRequest) -> SubscriptionData:
    """The expression that a pull brings along, without any heartbeat."""
    if (kind := request.expression_type or TAG) != TAG:
        return SubscriptionData(
            topic=request.topic,
            expression=request.subscription or "",
            sub_version=request.sub_version,
            expression_type=kind,
        )
    try:
        return subscribe(request.topic, request.subscription, sub_version=request.sub_version)
    except ValueError as error:
        raise ResponseError(ResponseCode.SUBSCRIPTION_PARSE_FAILED, str(error)) from error
