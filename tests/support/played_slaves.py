"""Slaves that a test plays: it joins them, has them ack, and takes them away."""

from tanist.ha.double_write import DoubleWrite
from tanist.ha.replicas import Dialect, Replica, ReplicaTable
from tanist.ha.settings import HaSettings
from tanist.protocol.ha_link import AckKind


def make_replica(
    broker_id: int | None = 1, *, acked_to: int = 0, counts: bool = True, peer: str = "", held_from: int = 0
) -> Replica:
    """A slave as it is when it was let in, with its log up to ``acked_to``."""
    return Replica(
        peer=peer or f"10.0.0.{broker_id}:40112",
        dialect=Dialect.CLASSIC if broker_id is None else Dialect.TANIST,
        broker_id=broker_id,
        counts=counts,
        requested_to=acked_to,
        sent_from=acked_to,
        ack_kind=AckKind.RECEIVED,
        since_ms=0,
        held_from=held_from,
    )


class PlayedSlaves:
    """The slaves of one master, and the double write that they make true."""

    def __init__(self, settings: HaSettings | None = None) -> None:
        settings = settings or HaSettings()
        self.table = ReplicaTable(fallbehind_max_bytes=settings.ha_slave_fallbehind_max)
        self.double_write = DoubleWrite(self.table, settings)

    def join(
        self, broker_id: int = 1, *, acked_to: int = 0, counts: bool = True, held_from: int = 0
    ) -> Replica:
        replica = make_replica(broker_id, acked_to=acked_to, counts=counts, held_from=held_from)
        self.table.join(replica)
        self.double_write.on_acked()
        return replica

    def leave(self, replica: Replica) -> None:
        self.table.leave(replica)
        self.double_write.on_acked()

    def ack(self, replica: Replica, acked_to: int) -> None:
        replica.acked_to = acked_to
        self.double_write.on_acked()
