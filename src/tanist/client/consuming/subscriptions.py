"""What a consumer subscribes to, and where it begins. Pure: whatever is wrong is told at the call."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, TypeAlias

from tanist.client.checks import check_topic
from tanist.client.errors import InvalidArgument
from tanist.model.groups import ConsumeFromWhere
from tanist.model.subscription import SQL92, SubscriptionData, subscribe
from tanist.model.topics import RETRY_PREFIX, retry_topic


class Start(Enum):
    """Where a group begins in a queue that it never read. A ``datetime`` says the same by time.

    In clustering, brokers have it begin with the first message of a queue that is still young, whatever
    it is told: so nothing is lost of queues that a topic gets later.

    >>> from datetime import UTC, datetime, timedelta
    >>> an_hour_ago = datetime.now(UTC) - timedelta(hours=1)
    >>> topics = {"OrderTopic": "*"}
    >>> async with Consumer(group="audit", namesrv=namesrv, topics=topics, start=an_hour_ago) as consumer:
    ...     receipt = await producer.send(Message("OrderTopic", b"order 17"))
    ...     print((await anext(aiter(consumer))).body)
    b'order 17'
    """

    FIRST = ConsumeFromWhere.FIRST_OFFSET
    LAST = ConsumeFromWhere.LAST_OFFSET


@dataclass(frozen=True, slots=True)
class Sql:
    """Subscribe by the properties of messages instead of their tags.

    >>> Sql("amount > 100 AND country = 'DE'").expression
    "amount > 100 AND country = 'DE'"
    >>> topics = {"OrderTopic": Sql("amount > 100")}
    >>> async with Consumer(group="audit", namesrv=namesrv, topics=topics) as consumer:
    ...     for amount in ("99", "101"):
    ...         receipt = await producer.send(Message("OrderTopic", b"...", properties={"amount": amount}))
    ...     print((await anext(aiter(consumer))).properties["amount"])
    101
    """

    expression: str

    def __post_init__(self) -> None:
        if not isinstance(self.expression, str) or not self.expression.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument("expression", self.expression, "give a condition, such as 'amount > 100'")


Topics: TypeAlias = Mapping[str, str | Sql]
"""Topics and which of their messages: ``"*"``, tags as ``"a || b"``, or ``Sql``."""


def make_subscriptions(
    topics: Topics, *, group: str, is_broadcasting: bool, sub_version: int
) -> dict[str, SubscriptionData]:
    """The subscriptions of a consumer by topic. Raises InvalidArgument for what is wrong.

    The group's retry topic is one of them, unless it is broadcasting: there nothing is sent back.
    """
    if not isinstance(topics, Mapping) or not topics:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgument("topics", topics, "give a mapping of topics, such as {'OrderTopic': '*'}")
    subscriptions = {
        topic: _subscribe(topic, expression, sub_version) for topic, expression in topics.items()
    }
    if not is_broadcasting:
        retries = retry_topic(group)
        subscriptions[retries] = subscribe(retries, None, sub_version=sub_version)
    return subscriptions


def check_start(start: object) -> Start | datetime:
    """Where to begin, if it can be understood."""
    if isinstance(start, Start) or (isinstance(start, datetime) and start.tzinfo is not None):
        return start
    raise InvalidArgument("start", start, "give Start.FIRST, Start.LAST or a datetime with a time zone")


def consume_from_where(start: Start | datetime) -> ConsumeFromWhere:
    """What brokers are told about ``start``."""
    return start.value if isinstance(start, Start) else ConsumeFromWhere.TIMESTAMP


def _subscribe(topic: Any, expression: Any, sub_version: int) -> SubscriptionData:
    try:
        check_topic(topic)
    except InvalidArgument as error:
        raise InvalidArgument("topics", topic, error.allowed) from None
    argument = f"topics[{topic!r}]"
    if topic.startswith(RETRY_PREFIX):
        raise InvalidArgument(argument, expression, "the group's retry topic is read without being named")
    if isinstance(expression, Sql):
        return SubscriptionData(
            topic=topic,
            expression=expression.expression,
            expression_type=SQL92,
            sub_version=sub_version,
        )
    if not isinstance(expression, str) or not expression.strip():
        raise InvalidArgument(argument, expression, "give '*', tags as 'a || b', or Sql('...')")
    try:
        return subscribe(topic, expression.strip(), sub_version=sub_version)
    except ValueError as error:
        raise InvalidArgument(argument, expression, str(error)) from None
