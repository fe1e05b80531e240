"""Which messages of a queue a subscription lets through: by tags, or by an SQL expression. Pure.

Of tags the hashes are compared, which the queue's entries hold: two tags may share one, and every
client compares the tags again. An expression asks for properties, so each message is looked at in
the log; no client looks again.
"""

from collections.abc import Callable
from typing import TypeAlias

from tanist.broker.sql import BadExpression, Condition, compile_condition
from tanist.errors import ResponseError
from tanist.model.subscription import EVERYTHING, SQL92, TAG, SubscriptionData
from tanist.protocol.codes import ResponseCode
from tanist.protocol.properties import decode_properties
from tanist.protocol.queue_entry import EntryFields
from tanist.protocol.record import record_properties

_SHOWN_CHARS = 100


class TagFilter:
    """Called with an entry of the queue, says whether its message is wanted."""

    __slots__ = ("_codes",)

    def __init__(self, subscription: SubscriptionData) -> None:
        self._codes = subscription.tag_codes

    def __call__(self, entry: EntryFields) -> bool:
        return entry[2] in self._codes


class PropertyFilter:
    """The same, by what an expression says of the message's properties."""

    __slots__ = ("_condition", "_read")

    def __init__(self, condition: Condition, read: Callable[[int, int], memoryview]) -> None:
        """``read`` gives the bytes of a record, by its log offset and size."""
        self._condition = condition
        self._read = read

    def __call__(self, entry: EntryFields) -> bool:
        log_offset, size_bytes, _ = entry
        record = self._read(log_offset, size_bytes)
        return self._condition.holds(decode_properties(record_properties(record)))


MessageFilter: TypeAlias = TagFilter | PropertyFilter
Compile: TypeAlias = Callable[[SubscriptionData], Condition]
"""Compiles a subscription by SQL, or has it compiled already. Raises BadExpression."""


def _compile(subscription: SubscriptionData) -> Condition:
    return compile_condition(subscription.expression)


def filter_of(
    subscription: SubscriptionData,
    read: Callable[[int, int], memoryview],
    *,
    is_sql_enabled: bool,
    compile_it: Compile = _compile,
) -> MessageFilter | None:
    """What a subscription lets through, None if that is everything.

    Raises ResponseError for a subscription that this broker can not filter by.
    """
    condition = condition_of(subscription, is_sql_enabled=is_sql_enabled, compile_it=compile_it)
    if condition is not None:
        return PropertyFilter(condition, read)
    return None if subscription.expression == EVERYTHING else TagFilter(subscription)


def condition_of(
    subscription: SubscriptionData, *, is_sql_enabled: bool, compile_it: Compile = _compile
) -> Condition | None:
    """The compiled expression; None for tags, which a subscription without a type is by too."""
    if subscription.is_class_filter:
        raise ResponseError(
            ResponseCode.SYSTEM_ERROR,
            "this broker runs no filter classes; subscribe by tags or by SQL92",
        )
    kind = subscription.expression_type or TAG
    if kind == TAG:
        return None
    if kind != SQL92:
        raise ResponseError(
            ResponseCode.SYSTEM_ERROR,
            f"this broker does not filter by {kind[:_SHOWN_CHARS]}; subscribe by tags or by SQL92",
        )
    if not is_sql_enabled:
        raise ResponseError(
            ResponseCode.SYSTEM_ERROR,
            "this broker does not filter by SQL92: its enablePropertyFilter is false",
        )
    try:
        return compile_it(subscription)
    except BadExpression as error:
        raise ResponseError(
            ResponseCode.SUBSCRIPTION_PARSE_FAILED, f"the SQL expression can not be read: {error}"
        ) from error
