"""How long clients stood still, out of a history. Pure."""

from collections.abc import Iterable

import msgspec

from tanist.check.history import Ended, Event, Fault, Outcome, Read

SETTLES_US = 500_000
"""What is done so soon after a fault was told of may have been under way."""


class Outage(msgspec.Struct, frozen=True, rename="camel"):
    """The longest pause of one kind of work from the fault on, and whether any was done while it lasted."""

    longest_ms: int
    done_while_broken: int


class _Pauses:
    """The times at which work was done, as they come."""

    def __init__(self) -> None:
        self.last_us: int | None = None
        self.longest_us = 0
        self.count = 0

    def on_work(self, at_us: int, began_us: int | None, over_us: int | None) -> None:
        if began_us is not None:
            self.longest_us = max(self.longest_us, at_us - max(self.last_us or 0, began_us))
            self.count += over_us is None and at_us >= began_us + SETTLES_US
        self.last_us = at_us

    def outage(self) -> Outage:
        return Outage(self.longest_us // 1000, self.count)


def outages(events: Iterable[Event]) -> tuple[Outage, Outage]:
    """The outage of sends and that of reads; ``events`` come by their time and hold one fault."""
    began_us: int | None = None
    over_us: int | None = None
    sends, reads = _Pauses(), _Pauses()
    for event in events:
        match event:
            case Fault():
                if event.is_over:
                    over_us = event.at_us
                elif began_us is None:
                    began_us = event.at_us
            case Ended():
                if event.outcome is Outcome.OK:
                    sends.on_work(event.at_us, began_us, over_us)
            case Read():
                reads.on_work(event.at_us, began_us, over_us)
            case _:
                pass
    return sends.outage(), reads.outage()
