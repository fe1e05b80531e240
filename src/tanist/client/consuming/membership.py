"""What a consumer is in its group. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from tanist.client.consuming.subscriptions import Start
from tanist.client.pulling.pull_pace import PullBounds
from tanist.client.queues.allocation import AllocationStrategy
from tanist.model.subscription import SubscriptionData


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """What its arguments made of a consumer. ``subscriptions`` are by topic."""

    group: str
    subscriptions: Mapping[str, SubscriptionData]
    is_broadcasting: bool
    is_orderly: bool
    start: Start | datetime
    strategy: AllocationStrategy
    prefetch: PullBounds

    @property
    def needs_locks(self) -> bool:
        """Whether a queue has to be locked before it is read: nobody else may read it meanwhile."""
        return self.is_orderly and not self.is_broadcasting
