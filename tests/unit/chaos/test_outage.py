"""How long nobody could work, out of a history."""

from tanist.chaos.outage import SETTLES_US, Outage, outages
from tanist.check import Ended, Event, Fault, Outcome, Read

SECOND = 1_000_000


def ok(at_us: int) -> Event:
    return Ended(at_us, "p", f"p/{at_us}", Outcome.OK, "T@a:0", 0)


def test_the_longest_pause_from_the_fault_on_is_the_outage() -> None:
    events = [ok(0), ok(2 * SECOND), Fault(3 * SECOND, "kill"), ok(7 * SECOND), ok(8 * SECOND)]
    sends, reads = outages(events)
    assert sends == Outage(longest_ms=4_000, done_while_broken=2)
    assert reads == Outage(longest_ms=0, done_while_broken=0)


def test_what_was_under_way_at_the_fault_is_no_work_while_it_is_broken() -> None:
    events = [Fault(0, "kill"), ok(SETTLES_US - 1), Fault(5 * SECOND, "kill", is_over=True), ok(6 * SECOND)]
    sends, _ = outages(events)
    assert sends.done_while_broken == 0
    assert sends.longest_ms == 5_500


def test_sends_that_were_not_acknowledged_do_not_count() -> None:
    events: list[Event] = [Fault(0, "kill"), Ended(SECOND, "p", "p/0", Outcome.UNKNOWN)]
    assert outages(events)[0].done_while_broken == 0


def test_reads_have_an_outage_of_their_own() -> None:
    events: list[Event] = [Fault(0, "kill"), Read(3 * SECOND, "c", "g", "T@a:0", 0, "p/0")]
    assert outages(events)[1] == Outage(longest_ms=3_000, done_while_broken=1)
