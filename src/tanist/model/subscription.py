"""What a consumer wants of a topic."""

import msgspec

from tanist.model.integers import Int32, Int64
from tanist.model.java_hash import java_hash

EVERYTHING = "*"
TAG = "TAG"
SQL92 = "SQL92"
_TAG_SEPARATOR = "||"


class SubscriptionData(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One topic of a group's subscription.

    ``sub_version`` is the client's clock when it subscribed: a broker keeps the greatest it saw.
    """

    topic: str
    expression: str = msgspec.field(name="subString", default=EVERYTHING)
    tags: frozenset[str] = msgspec.field(name="tagsSet", default=frozenset())
    tag_codes: frozenset[Int32] = msgspec.field(name="codeSet", default=frozenset())
    sub_version: Int64 = 0
    expression_type: str | None = TAG
    is_class_filter: bool = msgspec.field(name="classFilterMode", default=False)


def subscribe(topic: str, expression: str | None, *, sub_version: int) -> SubscriptionData:
    """Subscribe to the messages of ``topic`` whose tag is in ``expression``, such as ``A || B``.

    Nothing and ``*`` mean every message. Raises ValueError for an expression without a tag in it.
    """
    if not expression or expression == EVERYTHING:
        return SubscriptionData(topic=topic, sub_version=sub_version)
    tags = split_tags(expression)
    return SubscriptionData(
        topic=topic,
        expression=expression,
        tags=tags,
        tag_codes=frozenset(map(java_hash, tags)),
        sub_version=sub_version,
    )


def split_tags(expression: str) -> frozenset[str]:
    """The tags of ``A || B``."""
    tags = frozenset(tag for part in expression.split(_TAG_SEPARATOR) if (tag := part.strip()))
    if not tags:
        raise ValueError(f"the tag expression {expression!r} names no tag")
    return tags
