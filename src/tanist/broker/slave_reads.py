"""Where a consumer should pull next: at the master, or at a slave because it is far behind. Pure.

The rule is that of RocketMQ's DefaultMessageStore and PullMessageProcessor. It does not ask whether the
replica that it names is there: a client that does not find it goes to the master, or to whichever
replica there is. Without ``slaveReadEnable`` nobody is sent away from the master.
"""

from tanist.model.groups import SubscriptionGroupConfig


def is_behind(*, read_to: int | None, log_end: int, hot_bytes: int) -> bool:
    """Whether what was read last lies so far back in the log that it came from the disk.

    ``read_to`` is None if nothing was read: who waits for new messages is not behind.
    """
    return read_to is not None and log_end - read_to > hot_bytes


def suggested_broker_id(group: SubscriptionGroupConfig, *, is_behind: bool) -> int:
    """The id of the replica that the group's next pull of the queue should go to, if slaves may be read."""
    return group.slow_broker_id if is_behind else group.broker_id
