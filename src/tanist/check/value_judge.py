"""All that concerns one message: who sent it, was it refused, and at how many places does it lie?

Takes the events in any order, for the rules ask only what there was, not when.
"""

from tanist.check.history import Began, Ended, Event, Held, Outcome, Read
from tanist.check.verdict import Kind, Verdict

_Place = tuple[str, int]


class _Sent:
    """What is known of one message."""

    __slots__ = ("is_begun", "outcome", "places", "tries")

    def __init__(self) -> None:
        self.is_begun = False
        self.outcome = Outcome.UNKNOWN
        self.tries = 0
        self.places: set[_Place] = set()


class ValueJudge:
    """Judges the messages whose events it was given; it needs all events of each of them."""

    def __init__(self) -> None:
        self._sent: dict[str, _Sent] = {}

    def on_event(self, event: Event) -> None:
        """Take down one event; those without a message do not matter here."""
        match event:
            case Began():
                self._of(event.value).is_begun = True
            case Ended():
                sent = self._of(event.value)
                sent.outcome, sent.tries = event.outcome, event.tries
                if event.outcome is Outcome.OK:
                    sent.places.add((event.queue, event.offset))
            case Read() | Held():
                self._of(event.value).places.add((event.queue, event.offset))
            case _:
                pass

    def verdict(self) -> Verdict:
        """What is wrong with the messages, and how many there were."""
        verdict = Verdict()
        for value, sent in self._sent.items():
            self._judge(verdict, value, sent)
        return verdict

    def _of(self, value: str) -> _Sent:
        sent = self._sent.get(value)
        if sent is None:
            sent = self._sent[value] = _Sent()
        return sent

    def _judge(self, verdict: Verdict, value: str, sent: _Sent) -> None:
        counts = verdict.counts
        if not sent.is_begun:
            verdict.found(Kind.PHANTOM, value, f"nobody sent it, and it is at {_shown(sent.places)}")
            return
        counts.sent += 1
        counts.acknowledged += sent.outcome is Outcome.OK
        counts.refused += sent.outcome is Outcome.REFUSED
        counts.unknown += sent.outcome is Outcome.UNKNOWN
        if sent.outcome is Outcome.REFUSED and sent.places:
            verdict.found(Kind.ABORTED_READ, value, f"it was refused, and it is at {_shown(sent.places)}")
        if sent.outcome is Outcome.OK and len(sent.places) > sent.tries:
            times = "once" if sent.tries == 1 else f"{sent.tries} times"
            verdict.found(Kind.DUPLICATE, value, f"it was sent {times}, and it is at {_shown(sent.places)}")


def _shown(places: set[_Place]) -> str:
    return " and ".join(f"{queue}@{offset}" for queue, offset in sorted(places))
