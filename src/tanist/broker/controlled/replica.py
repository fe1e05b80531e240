"""One replica as its controllers see it: what they are told of it, and whom their words concern."""

from collections.abc import Callable
from dataclasses import dataclass

from tanist.broker.controlled.identity import IdentityFiles
from tanist.broker.controlled.orders import SetOrder
from tanist.broker.settings import BrokerSettings
from tanist.clock import Clock
from tanist.model.offsets import LogOffset
from tanist.protocol.headers.controller import BrokerHeartbeatRequest


@dataclass(frozen=True, slots=True)
class ControlledReplica:
    """What a controller needs to know of a replica, and whom its words concern."""

    settings: BrokerSettings
    """With the real port."""
    files: IdentityFiles
    session_id: str
    ha_address: str
    log_end: Callable[[], int]
    log_epoch: Callable[[], int]
    """The last epoch of the log, 0 if there is none."""
    confirmed_to: Callable[[], int]
    tables_gap: Callable[[], str | None]
    damage: Callable[[], str | None]
    on_lease: Callable[[int, float, float], None]
    """Epoch, when the heartbeat was sent on the monotonic clock, and the timeout that it told, in seconds."""
    on_lease_void: Callable[[], None]
    """No lease counts any more: who granted it may elect another at once."""
    on_set: Callable[[SetOrder], None]
    clock: Clock
    is_learner: bool = False
    """Whether it only follows: it does not offer itself as master."""

    def heartbeat(self, broker_id: int) -> BrokerHeartbeatRequest:
        """What a controller needs to elect by, as it is now."""
        settings = self.settings
        return BrokerHeartbeatRequest(
            cluster_name=settings.broker_cluster_name,
            broker_addr=settings.address,
            broker_name=settings.broker_name,
            broker_id=broker_id,
            epoch=self.log_epoch(),
            log_end=LogOffset(self.log_end()),
            confirmed_to=LogOffset(self.confirmed_to()),
            heartbeat_timeout_ms=settings.controller_heart_beat_timeout_mills,
            election_priority=settings.broker_election_priority,
            session_id=self.session_id,
            ha_address=self.ha_address,
            tables_gap=self.tables_gap(),
            damage=self.damage(),
        )
