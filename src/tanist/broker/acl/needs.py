"""What a request needs: the right to write or read topics, to be a member of groups, or an admin's account.

The rules are RocketMQ's (PlainAccessValidator of 4.9.8), and so are their gaps: who has an account may ask
what is not listed here. Closed are those through which messages could be written or read after all, by
batches and by lite pulls, and those through which everybody's broker could be changed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, IntFlag

from tanist.broker.heartbeat import read_heartbeat
from tanist.broker.system_topics import TRACE_TOPIC
from tanist.model.topics import RETRY_PREFIX
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command


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
    RequestCode.RECALL_MESSAGE: _SEND,
    RequestCode.CONSUMER_SEND_MSG_BACK: (_GROUP,),
    RequestCode.PULL_MESSAGE: (_TOPIC_READ, _MEMBER),
    RequestCode.LITE_PULL_MESSAGE: (_TOPIC_READ, _MEMBER),
    RequestCode.QUERY_MESSAGE: (_TOPIC_READ,),
    RequestCode.UNREGISTER_CLIENT: (_MEMBER,),
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: (_MEMBER,),
    RequestCode.UPDATE_CONSUMER_OFFSET: (_TOPIC_READ, _MEMBER),
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: (_TOPIC_READ, _GROUP),
}
"""The fields that name what is needed, by request code."""

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
        RequestCode.SET_MESSAGE_REQUEST_MODE,
        RequestCode.UPDATE_BROKER_CONFIG,
        RequestCode.TRIGGER_DELETE_FILES,
        RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE,
        RequestCode.DELETE_EXPIRED_COMMITLOG,
    }
)
"""What changes the broker for everybody, or what belongs to others."""


def needs_of(request: Command) -> Iterator[Need]:
    """Everything that the account behind this request must be allowed.

    A field that is not there names nothing: the handler refuses such a request, or can do without it.
    """
    for field, kind, access in _FIELDS.get(request.code, ()):
        if (name := request.ext.get(field)) is not None:
            yield from _topic_needs(name, access) if kind is Kind.TOPIC else (Need(kind, name, access),)
    if request.code == RequestCode.HEART_BEAT:
        for consumer in read_heartbeat(request).consumer_data_set:
            yield Need(Kind.GROUP, consumer.group_name, Access.SUB)
            for subscription in consumer.subscription_data_set:
                yield from _topic_needs(subscription.topic, Access.SUB)


def _topic_needs(topic: str, access: Access) -> Iterator[Need]:
    """Of a retry topic, its group is what counts; traces may be sent by everybody."""
    if topic.startswith(RETRY_PREFIX):
        yield Need(Kind.GROUP, topic.removeprefix(RETRY_PREFIX), Access.SUB)
    elif topic != TRACE_TOPIC or access is not Access.PUB:
        yield Need(Kind.TOPIC, topic, access)
