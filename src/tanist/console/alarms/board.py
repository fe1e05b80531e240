"""Which alarms there are. Pure: snapshots in, what began and what ended out.

nothing --raise_at--> pending --for hold_ms--> firing --below clear_at for calm_ms--> resolved
             pending --below raise_at--> nothing
             firing --nothing told of it for calm_ms--> forgotten
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from msgspec.structs import replace

from tanist.console.alarms.rules import RULES, Reading, Rule
from tanist.console.alarms.trends import Trends
from tanist.console.views.base import Level, View
from tanist.console.watching.snapshot import Snapshot

KEPT_EVENTS = 200
MAX_ALARMS = 500
"""More at once are not told apart; those that are there stay."""


class AlarmState(StrEnum):
    """Where an alarm stands."""

    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"
    FORGOTTEN = "forgotten"
    """Nobody tells of its subject any more. Whether all is well again is not known."""


class Alarm(View, frozen=True, kw_only=True):
    """One alarm as it stands, or as it began or ended."""

    rule: str
    title: str
    subject: str
    level: Level
    state: AlarmState
    text: str
    path: str
    since_ms: int
    """When what it tells of began."""
    at_ms: int
    """When it was found so."""


class RuleView(View, frozen=True, kw_only=True):
    """One rule, as it is shown."""

    rule: str
    title: str
    level: Level
    raise_at: float
    clear_at: float
    hold_ms: int
    calm_ms: int
    unit: str


@dataclass(slots=True)
class _Watched:
    rule: Rule
    since_ms: int
    reading: Reading
    is_firing: bool = False
    calm_since_ms: int | None = None


class AlarmBoard:
    """Keeps what is the matter, and what was."""

    def __init__(self, rules: Sequence[Rule] = RULES) -> None:
        self._rules = rules
        self._trends = Trends()
        self._watched: dict[tuple[str, str], _Watched] = {}
        self._history: deque[Alarm] = deque(maxlen=KEPT_EVENTS)
        self._now_ms = 0

    @property
    def current(self) -> list[Alarm]:
        """What fires, the worst first, and then what is about to."""
        found = [self._alarm(each) for each in self._watched.values()]
        return sorted(
            found,
            key=lambda each: (each.state is not AlarmState.FIRING, each.level != Level.BAD, each.since_ms),
        )

    @property
    def firing_count(self) -> int:
        return sum(each.is_firing for each in self._watched.values())

    @property
    def history(self) -> list[Alarm]:
        """What began and ended, the newest first."""
        return list(reversed(self._history))

    @property
    def rules(self) -> list[RuleView]:
        return [
            RuleView(
                rule=rule.name,
                title=rule.title,
                level=rule.level,
                raise_at=rule.raise_at,
                clear_at=rule.clear_at,
                hold_ms=rule.hold_ms,
                calm_ms=rule.calm_ms,
                unit=rule.unit,
            )
            for rule in self._rules
        ]

    def on_snapshot(self, snapshot: Snapshot) -> list[Alarm]:
        """Take a look at the cluster; what began to fire by it, and what ended."""
        self._now_ms = snapshot.taken_ms
        events: list[Alarm] = []
        for rule in self._rules:
            readings = {reading.subject: reading for reading in rule.read(snapshot, self._trends)}
            for reading in readings.values():
                events += self._on_reading(rule, reading)
            gone = [
                subject for name, subject in self._watched if name == rule.name and subject not in readings
            ]
            for subject in gone:
                events += self._on_vanished((rule.name, subject))
        self._history.extend(events)
        return events

    def _on_reading(self, rule: Rule, reading: Reading) -> list[Alarm]:
        key = (rule.name, reading.subject)
        watched = self._watched.get(key)
        if watched is None:
            if reading.value < rule.raise_at or len(self._watched) >= MAX_ALARMS:
                return []
            watched = self._watched[key] = _Watched(rule, self._now_ms, reading)
        if not watched.is_firing:
            return self._on_pending(key, watched, reading)
        return self._on_firing(key, watched, reading)

    def _on_pending(self, key: tuple[str, str], watched: _Watched, reading: Reading) -> list[Alarm]:
        if reading.value < watched.rule.raise_at:
            del self._watched[key]
            return []
        watched.reading = reading
        if self._now_ms - watched.since_ms < watched.rule.hold_ms:
            return []
        watched.is_firing = True
        return [self._alarm(watched)]

    def _on_firing(self, key: tuple[str, str], watched: _Watched, reading: Reading) -> list[Alarm]:
        if reading.value >= watched.rule.clear_at:
            watched.reading, watched.calm_since_ms = reading, None
            return []
        return self._on_calm(key, watched, AlarmState.RESOLVED)

    def _on_vanished(self, key: tuple[str, str]) -> list[Alarm]:
        watched = self._watched[key]
        if not watched.is_firing:
            del self._watched[key]
            return []
        ended = self._on_calm(key, watched, AlarmState.FORGOTTEN)
        return [
            replace(each, text=f"nothing is told of it any more; the last was: {each.text}") for each in ended
        ]

    def _on_calm(self, key: tuple[str, str], watched: _Watched, state: AlarmState) -> list[Alarm]:
        if watched.calm_since_ms is None:
            watched.calm_since_ms = self._now_ms
        if self._now_ms - watched.calm_since_ms < watched.rule.calm_ms:
            return []
        del self._watched[key]
        return [self._alarm(watched, state=state)]

    def _alarm(self, watched: _Watched, *, state: AlarmState | None = None) -> Alarm:
        known = AlarmState.FIRING if watched.is_firing else AlarmState.PENDING
        return Alarm(
            rule=watched.rule.name,
            title=watched.rule.title,
            subject=watched.reading.subject,
            level=watched.rule.level,
            state=state or known,
            text=watched.reading.text,
            path=watched.reading.path,
            since_ms=watched.since_ms,
            at_ms=self._now_ms,
        )
