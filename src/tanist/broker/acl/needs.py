"""What a request needs: the right to write or read topics, to be a member of groups, or an admin's account.

The rules are RocketMQ's (PlainAccessValidator of 4.9.8), and so are their gaps: who has an account may ask
what is not listed here. Closed are those through which messages could be written or read after all, by
batches, by replies, by lite pulls and by their place, and those through which everybody's broker could be
changed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, IntFlag

from tanist.broker.heartbeat import read_heartbeat
from tanist.broker.settings import BrokerSettings
from tanist.model.topics import RETRY_PREFIX, reply_topic
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.client import QueueLocks
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.client import ConsumeMessageDirectlyRequest
from tanist.protocol.headers.messages import ViewMessageRequest
from tanist.protocol.headers.send import ConsumerSendBackRequest
from tanist.protocol.headers.transaction import EndTransactionRequest
from tanist.protocol.message_id import decode_offset_id


class Access(IntFlag):
    """What may be done with a topic or a group; nothing at all is ``Access(0)``."""

    PUB = 1
    SUB = 2


class Kind(Enum):
    """What a need is about."""

    TOPIC = "topic"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that an account must be allowed."""

    kind: Kind
    name: str
    access: Access

    def __str__(self) -> str:
        return f"{self.access.name} on {self.kind.value} {self.name}"


_SEND = (("topic", Kind.TOPIC, Access.PUB),)
_SHORT_SEND = (("b", Kind.TOPIC, Access.PUB),)
_TOPIC_READ = ("topic", Kind.TOPIC, Access.SUB)
_MEMBER = ("consumerGroup", Kind.GROUP, Access.SUB)
_GROUP = ("group", Kind.GROUP, Access.SUB)

_FIELDS: dict[int, tuple[tuple[str, Kind, Access], ...]] = {
    RequestCode.SEND_MESSAGE: _SEND,
    RequestCode.SEND_MESSAGE_V2: _SHORT_SEND,
    RequestCode.SEND_BATCH_MESSAGE: _SHORT_SEND,
    RequestCode.SEND_REPLY_MESSAGE: _SEND,
    RequestCode.SEND_REPLY_MESSAGE_V2: _SHORT_SEND,
    RequestCode.RECALL_MESSAGE: _SEND,
    RequestCode.CONSUMER_SEND_MSG_BACK: (_GROUP,),
    RequestCode.PULL_MESSAGE: (_TOPIC_READ, _MEMBER),
    RequestCode.LITE_PULL_MESSAGE: (_TOPIC_READ, _MEMBER),
    RequestCode.QUERY_MESSAGE: (_TOPIC_READ,),
    RequestCode.QUERY_CONSUME_QUEUE: (_TOPIC_READ,),
    RequestCode.CONSUME_MESSAGE_DIRECTLY: (_MEMBER,),
    RequestCode.UNREGISTER_CLIENT: (_MEMBER,),
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: (_MEMBER,),
    RequestCode.UPDATE_CONSUMER_OFFSET: (_TOPIC_READ, _MEMBER),
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: (_TOPIC_READ, _GROUP),
    RequestCode.APPLY_RESET: (_TOPIC_READ, _GROUP),
    RequestCode.RESET_RECEIPT: (_TOPIC_READ, _GROUP),
    RequestCode.GET_WRITE_PROGRESS: _SEND,
    RequestCode.PUT_WRITE_PLAN: _SEND,
    RequestCode.END_WRITE: _SEND,
}
"""The fields that name what is needed, by request code."""

_PLACES: dict[int, tuple[Callable[[Command], int], Access]] = {
    RequestCode.VIEW_MESSAGE_BY_ID: (lambda it: it.header(ViewMessageRequest).log_offset, Access.SUB),
    RequestCode.CONSUMER_SEND_MSG_BACK: (
        lambda it: it.header(ConsumerSendBackRequest).log_offset,
        Access.SUB,
    ),
    RequestCode.CONSUME_MESSAGE_DIRECTLY: (
        lambda it: decode_offset_id(it.header(ConsumeMessageDirectlyRequest).msg_id or "").log_offset,
        Access.SUB,
    ),
    RequestCode.END_TRANSACTION: (lambda it: it.header(EndTransactionRequest).half_log_offset, Access.PUB),
}
"""Requests that name a message by its place in the log, and what they need on its topic."""

_REPLIES = frozenset({RequestCode.SEND_REPLY_MESSAGE, RequestCode.SEND_REPLY_MESSAGE_V2})
_LOCKS = frozenset({RequestCode.LOCK_BATCH_MQ, RequestCode.UNLOCK_BATCH_MQ})

ADMIN_CODES = frozenset(
    {
        RequestCode.UPDATE_AND_CREATE_TOPIC,
        RequestCode.UPDATE_AND_CREATE_TOPIC_LIST,
        RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC,
        RequestCode.DELETE_TOPIC_IN_BROKER,
        RequestCode.CLEAN_UNUSED_TOPIC,
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
        RequestCode.DELETE_SUBSCRIPTIONGROUP,
        RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN,
        RequestCode.CLONE_GROUP_OFFSET,
        # Somebody else than who gave the order, and not just anybody.
        RequestCode.DECIDE_RESET,
        RequestCode.SET_MESSAGE_REQUEST_MODE,
        RequestCode.UPDATE_BROKER_CONFIG,
        RequestCode.TRIGGER_DELETE_FILES,
        RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE,
        RequestCode.DELETE_EXPIRED_COMMITLOG,
        RequestCode.REBUILD_SLAVE,
        RequestCode.END_SLAVE_CONSUME,
    }
)
"""What changes the broker for everybody, or what belongs to others."""

SIGNED_CODES = frozenset({RequestCode.DECIDE_RESET})
"""What is worth something only if it is known who asks: no address is trusted with it."""

NAMED_CODES = frozenset({RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, RequestCode.APPLY_RESET})
"""Of these it is written down who asked."""


class Needs:
    """What requests need at one broker. ``topic_at`` tells whose the message at a log offset is."""

    def __init__(self, settings: BrokerSettings, topic_at: Callable[[int], str | None]) -> None:
        self._trace_topic = settings.msg_trace_topic_name
        self._reply_topic = reply_topic(settings.broker_cluster_name)
        self._topic_at = topic_at

    def of(self, request: Command) -> Iterator[Need]:
        """Everything that the account behind this request must be allowed.

        A field that is not there names nothing: the handler refuses such a request, or can do without it.
        """
        for field, kind, access in _FIELDS.get(request.code, ()):
            if (name := request.ext.get(field)) is None:
                continue
            if kind is Kind.GROUP:
                yield Need(kind, name, access)
            elif name != self._reply_topic or request.code not in _REPLIES:
                yield from self._topic_needs(name, access)
        if request.code in _PLACES:
            place_of, access = _PLACES[request.code]
            if (topic := self._topic_at(place_of(request))) is not None:
                yield from self._topic_needs(topic, access)
        elif request.code in _LOCKS:
            yield Need(Kind.GROUP, decode_java_json(request.body, QueueLocks).consumer_group, Access.SUB)
        elif request.code == RequestCode.HEART_BEAT:
            for consumer in read_heartbeat(request).consumer_data_set:
                yield Need(Kind.GROUP, consumer.group_name, Access.SUB)
                for subscription in consumer.subscription_data_set:
                    yield from self._topic_needs(subscription.topic, Access.SUB)

    def _topic_needs(self, topic: str, access: Access) -> Iterator[Need]:
        """Of a retry topic, its group is what counts; traces may be sent by everybody."""
        if topic.startswith(RETRY_PREFIX):
            yield Need(Kind.GROUP, topic.removeprefix(RETRY_PREFIX), Access.SUB)
        elif topic != self._trace_topic or access is not Access.PUB:
            yield Need(Kind.TOPIC, topic, access)
