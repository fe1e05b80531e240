"""How long a master may rely on that no other was elected. Pure; times are of its own monotonic clock.

    master      sent_s |================= lease =================|          refuses from here on
    controller              received |========= takes it for alive =========|  may elect from here on

The controller takes a master for alive for the whole timeout from when its heartbeat came in. The lease
counts from when that heartbeat was sent, which was before, and is shorter by a margin for clocks that do not
run alike. However late the heartbeat or its answer came, the lease ends first.
"""

MARGIN = 0.1
"""The part of the timeout that is left out: two clocks may differ by as much in their rates."""


class Lease:
    """The lease of the epoch that a broker is master of; a new epoch has a new one."""

    def __init__(self, epoch: int, *, now_s: float) -> None:
        self.epoch = epoch
        self.granted_s = now_s
        """When the last heartbeat was sent that a controller answered with a lease, else when this began."""
        self.ends_s = now_s

    def on_granted(self, epoch: int, *, sent_s: float, timeout_s: float) -> None:
        """A controller answered the heartbeat of ``sent_s``: the master of this epoch has the lease.

        ``timeout_s`` is what that heartbeat told; it is the same in all heartbeats of one session.
        """
        if epoch == self.epoch and sent_s >= self.granted_s:
            self.granted_s = sent_s
            self.ends_s = sent_s + timeout_s * (1 - MARGIN)

    def on_void(self, *, now_s: float) -> None:
        """Who granted it may elect another at once."""
        self.ends_s = min(self.ends_s, now_s)

    def is_held(self, now_s: float) -> bool:
        """Whether no other master can have been elected yet."""
        return now_s < self.ends_s
