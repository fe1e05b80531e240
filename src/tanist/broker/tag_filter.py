"""Which entries of a consume queue a subscription by tags lets through. Pure.

Hashes are compared, not tags: two tags may share one, and every client compares the tags again.
"""

from tanist.errors import ResponseError
from tanist.model.subscription import EVERYTHING, TAG, SubscriptionData
from tanist.protocol.codes import ResponseCode


class TagFilter:
    """Called with the tags code of an entry, says whether the message is wanted."""

    __slots__ = ("_codes",)

    def __init__(self, subscription: SubscriptionData) -> None:
        """Raises ResponseError for a subscription that is not by tags."""
        check_filter_type(subscription)
        is_everything = subscription.expression == EVERYTHING
        self._codes = None if is_everything else subscription.tag_codes

    def __call__(self, tags_code: int) -> bool:
        return self._codes is None or tags_code in self._codes


def check_filter_type(subscription: SubscriptionData) -> None:
    """Refuse what this broker can not filter by. A subscription without a type is by tags."""
    if subscription.is_class_filter:
        raise ResponseError(
            ResponseCode.SYSTEM_ERROR, "this broker runs no filter classes; subscribe by tags"
        )
    kind = subscription.expression_type or TAG
    if kind != TAG:
        raise ResponseError(
            ResponseCode.SYSTEM_ERROR, f"this broker does not filter by {kind}; subscribe by tags"
        )
