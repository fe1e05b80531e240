"""The hand on the servers of a ZooKeeper. Whoever runs them has it; `tanist chaos` alone does not."""

from typing import Protocol, runtime_checkable


@runtime_checkable
class LeaderHand(Protocol):
    """Strikes the server that leads the others, and mends what it struck. All of it may block."""

    def kill(self) -> None:
        """End the leader as a crash would."""
        ...

    def freeze(self) -> None:
        """Have the leader stand still."""
        ...

    def mend(self) -> None:
        """Have all servers serve again, and wait until they do."""
        ...
