"""When a master under a controller may tell a producer that its message is safe. Pure.

It may while it has its lease: nobody else is master. Without one it may if all that count for the sync state
set hold the message, for one of them is the next master. So a group whose replicas are all connected goes on
when all controllers are gone, and a master that is cut off from them and from a replica refuses.

This is asked twice. Before a message is written, so that nothing is written that nobody will be told of. And
when the answer is made, with a fresh reading of the clock: the process may have been stopped meanwhile, and
have woken when another was master. It may be stopped once more between that reading and the socket. Where
sends wait for the whole set (``allAckInSyncStateSet``) that is no matter, because what they are told does not
depend on the lease: whoever was elected has the message. Where they wait for fewer a switch may lose what the
successor did not hold, with or without such a pause; the lease only keeps that short.
"""

from tanist.ha.lease import Lease
from tanist.ha.sync_state import SyncState


class AckRight:
    """Whether one master may acknowledge."""

    def __init__(self, lease: Lease, sync_state: SyncState) -> None:
        self.lease = lease
        self.sync_state = sync_state

    def may_acknowledge(self, end: int, now_s: float) -> bool:
        """Whether a send whose last byte is before ``end`` may be answered with success now."""
        return end <= self.sync_state.confirmed_to or self.lease.is_held(now_s)

    def refusal(self, now_s: float) -> str | None:
        """Why nothing may be written now, or None."""
        if self.sync_state.is_linked or self.lease.is_held(now_s):
            return None
        missing = self.sync_state.missing
        who = f"replica {missing[0]}" if len(missing) == 1 else "replicas " + ", ".join(map(str, missing))
        return (
            f"LEASE_EXPIRED: no controller has answered for {now_s - self.lease.granted_s:.1f} s, and {who}"
            " of the sync state set can not be asked and may be master by now; writes go on when either is"
            " connected again"
        )
