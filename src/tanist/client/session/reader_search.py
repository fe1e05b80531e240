"""Which replica of a broker may be read: all are asked after the one that was is lost or refuses. Pure.

    every address: ASKED --it may be read--> the search is over: that one is read
                   ASKED --it may not--> asked again, with a question that waits until something changes
                   ASKED --no answer--> asked again after a pause, a longer one each time
                   ASKED --it does not know the question--> not asked any more

Only brokers of Tanist that have a coordinator know it. When those that answer do not, the search is over and
has found nobody. A reader that an answer names is asked too: what others say of it is no reason to read it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tanist.backoff import Backoff
from tanist.model.reading import FULL, NONE
from tanist.model.topics import READ, WRITE

WAIT_S = 10.0
"""How long a question waits for something to change."""
MAX_ADDRESSES = 16

_RANKS = {permission: rank for rank, permission in enumerate((FULL, WRITE, READ, NONE))}
_MOST_PAUSE_S = 1.0
"""For one that can not be reached while others answer: it may be back, or have been started anew."""
_MOST_LONELY_PAUSE_S = 5.0


class Standing(NamedTuple):
    """What a broker says of itself: what it may do, who is read, and in which term."""

    permission: int
    reader: str | None = None
    term: int = 0


@dataclass(frozen=True, slots=True)
class Question:
    """Ask one address, ``after_s`` from now."""

    address: str
    after_s: float
    wait_s: float
    known_reader: str | None = None
    """Named by it before, and known not to be readable now."""


def by_permission(standings: Mapping[str, Standing]) -> list[str]:
    """The addresses in the order in which they are to be tried: FULL, WRITE, READ, NONE."""
    return sorted(standings, key=lambda address: _RANKS[standings[address].permission & FULL])


def choose(standings: Mapping[str, Standing]) -> str | None:
    """The first in that order that may be read; None if there is none."""
    return next(
        (address for address in by_permission(standings) if standings[address].permission & READ), None
    )


@dataclass(slots=True)
class _Asked:
    """One address."""

    backoff: Backoff = field(default_factory=Backoff)
    is_waiting: bool = False
    """A question is on its way."""
    is_lost: bool = False
    pause: bool = False
    """The next question comes after a pause."""


class ReaderSearch:
    """One search among the replicas of one broker."""

    def __init__(self, addresses: Iterable[str]) -> None:
        self._asked = {address: _Asked() for address in addresses}
        self._standings: dict[str, Standing] = {}
        self._is_foreign = False

    @property
    def found(self) -> str | None:
        """The address that may be read, as it calls itself: it may have been asked by way of another."""
        chosen = choose(self._standings)
        return None if chosen is None else self._standings[chosen].reader or chosen

    @property
    def found_term(self) -> int:
        """The term in which that one is read."""
        chosen = choose(self._standings)
        return 0 if chosen is None else self._standings[chosen].term

    @property
    def standings(self) -> Mapping[str, Standing]:
        """What those have said last that know the question, and answer."""
        return self._standings

    @property
    def is_hopeful(self) -> bool:
        """Whether somebody answers who will tell when one may be read."""
        return bool(self._standings)

    @property
    def has_asked_all(self) -> bool:
        """Whether everybody was asked once, and has answered or failed to."""
        return all(address in self._standings or asked.is_lost for address, asked in self._asked.items())

    @property
    def is_over(self) -> bool:
        """One was found; or nobody is left to ask; or those who answer do not know the question."""
        is_in_vain = self._is_foreign and all(asked.is_lost for asked in self._asked.values())
        return self.found is not None or is_in_vain or not self._asked

    def is_lost(self, address: str) -> bool:
        """Whether an address could not be reached when it was asked last."""
        asked = self._asked.get(address)
        return asked is not None and asked.is_lost

    def next_questions(self, chance: float) -> list[Question]:
        """Whom to ask now: all who are not being asked. ``chance`` is in [0, 1)."""
        return [
            self._next_question(address, asked, chance)
            for address, asked in self._asked.items()
            if not asked.is_waiting
        ]

    def on_standing(self, question: Question, standing: Standing, *, took_s: float) -> None:
        """A broker answers. To one that answers too soon there is a pause before the next question."""
        asked = self._asked[question.address]
        before = self._standings.get(question.address)
        self._standings[question.address] = standing
        asked.is_waiting = asked.is_lost = False
        has_waited = question.wait_s and took_s >= question.wait_s / 2
        asked.pause = not has_waited and before is not None
        if not asked.pause:
            asked.backoff.reset()
        reader = standing.reader
        if reader is not None and reader not in self._asked and len(self._asked) < MAX_ADDRESSES:
            self._asked[reader] = _Asked()

    def on_lost(self, address: str) -> None:
        """It can not be reached, or does not answer."""
        asked = self._asked[address]
        asked.is_waiting = False
        asked.is_lost = asked.pause = True
        self._standings.pop(address, None)

    def on_foreign(self, address: str) -> None:
        """It does not know the question, or not what is read."""
        del self._asked[address]
        self._standings.pop(address, None)
        self._is_foreign = True

    def _next_question(self, address: str, asked: _Asked, chance: float) -> Question:
        asked.is_waiting = True
        asked.backoff.most_s = _MOST_PAUSE_S if self._standings else _MOST_LONELY_PAUSE_S
        after_s = asked.backoff.next_s(chance) if asked.pause else 0.0
        standing = self._standings.get(address)
        if standing is None:
            # The first one does not wait: it tells whether the broker knows the question at all.
            return Question(address, after_s, 0.0)
        # Who is named here is asked as well: if it could be read, the search would be over soon.
        return Question(address, after_s, WAIT_S, standing.reader)
