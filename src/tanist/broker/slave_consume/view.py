"""What a broker with a coordinator shows of slave consumption, and lets operators do."""

from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import Protocol

from tanist.protocol.bodies.slave_consume import LedgerEvent, SlaveConsumeLedger, SlaveConsumeStatus


class SlaveConsumeView(Protocol):
    """One broker's. Its handlers ask it."""

    @property
    def event_counts(self) -> Mapping[LedgerEvent, int]:
        """How often each thing has happened that it wrote down since its start."""
        ...

    def status(self) -> SlaveConsumeStatus:
        """How it stands now."""
        ...

    def duplicates_if_ended(self) -> Generator[None, None, dict[str, int] | None]:
        """By group, what may be consumed twice if this master is made to be read now; counted in steps.

        None if there is nothing to end here.
        """
        ...

    def ledger(self, count: int) -> SlaveConsumeLedger:
        """The last entries that it wrote down. Waits for the disk, and may run on another thread."""
        ...

    async def end(self, reason: str, *, is_forced: bool) -> str:
        """Have this master be read again; what was done, in words.

        Raises ResponseError if there is nothing to end, if the slave is alive, or if this is a slave.
        """
        ...

    def soon(self, work: Callable[[], Awaitable[None]]) -> None:
        """Have this done by a task of the broker's, after what is to be done before it."""
        ...
