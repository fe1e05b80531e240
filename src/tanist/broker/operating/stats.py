"""What a broker counts: messages and bytes in and out, by topic and group, over a minute, an hour and a day.

Pure: who counts says how much, and a tick a second says what time it is. A counter only grows; a
window is a short list of what it stood at, one sample every 10 s, 10 min or 1 h, so a figure is up to
one sample old, as RocketMQ's are. The names and keys are RocketMQ's, for its tools ask by them; of
transactions and timers it has counters under its metrics alone.

There are so many counters at most, for topics and groups come and go; one that stood still for a day
is forgotten, unless it counts for the whole broker.
"""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from tanist.protocol.bodies.stats import BrokerStats, StatsWindow

_log = logging.getLogger(__name__)

MAX_COUNTERS = 10_000

_WINDOWS = ((10_000, 7), (600_000, 7), (3_600_000, 25))
"""Of each how far its samples are apart, and how many there are: a minute, an hour, a day."""
_RATE_SAMPLES = 601
"""One a second: rates are told over 10 minutes at most."""


class Stat(StrEnum):
    """What is counted, and by which key."""

    TOPIC_PUT_NUMS = "TOPIC_PUT_NUMS"  # topic
    TOPIC_PUT_SIZE = "TOPIC_PUT_SIZE"
    GROUP_GET_NUMS = "GROUP_GET_NUMS"  # topic@group
    GROUP_GET_SIZE = "GROUP_GET_SIZE"
    SNDBCK_PUT_NUMS = "SNDBCK_PUT_NUMS"
    COMMIT_NUMS = "COMMIT_NUMS"  # topic
    ROLLBACK_NUMS = "ROLLBACK_NUMS"
    TIMER_ENQUEUE_NUMS = "TIMER_ENQUEUE_NUMS"
    TIMER_DEQUEUE_NUMS = "TIMER_DEQUEUE_NUMS"
    BROKER_PUT_NUMS = "BROKER_PUT_NUMS"  # cluster
    BROKER_GET_NUMS = "BROKER_GET_NUMS"


_BROKER_STATS = (Stat.BROKER_PUT_NUMS, Stat.BROKER_GET_NUMS)


class _Sample(NamedTuple):
    time_ms: int
    value: int
    times: int


@dataclass(slots=True)
class _Window:
    """What a counter stood at, the oldest sample first."""

    period_ms: int
    max_samples: int
    samples: list[_Sample] = field(default_factory=list[_Sample])

    def take(self, now_ms: int, value: int, times: int) -> None:
        if not self.samples:
            # A new counter stood at nothing one period ago.
            self.samples.append(_Sample(now_ms - self.period_ms, 0, 0))
        self.samples.append(_Sample(now_ms, value, times))
        if len(self.samples) > self.max_samples:
            del self.samples[0]

    @property
    def is_still(self) -> bool:
        """Whether nothing was counted for as long as the window is."""
        return len(self.samples) == self.max_samples and self.samples[0].value == self.samples[-1].value

    def figures(self) -> StatsWindow:
        if not self.samples:
            return StatsWindow()
        first, last = self.samples[0], self.samples[-1]
        grown, times = last.value - first.value, last.times - first.times
        return StatsWindow(
            sum=grown,
            tps=grown * 1000 / max(1, last.time_ms - first.time_ms),
            average=grown / times if times else 0.0,
        )


class Counter:
    """One figure: its sum, and how often something was added to it."""

    __slots__ = ("times", "value", "windows")

    def __init__(self) -> None:
        self.value = 0
        self.times = 0
        self.windows = tuple(_Window(*window) for window in _WINDOWS)

    def figures(self) -> BrokerStats:
        minute, hour, day = (window.figures() for window in self.windows)
        return BrokerStats(minute=minute, hour=hour, day=day)


class Rates(NamedTuple):
    """What the broker has counted since its start, or a second."""

    put_count: float
    found_count: float
    """Pulls that found messages, and below those that found none."""
    missed_count: float
    transferred_count: float


@dataclass(slots=True)
class Daily:
    """A count of messages now, and what it was at the beginning of today and of yesterday."""

    now: int = 0
    today: int = 0
    yesterday: int = 0

    def next_day(self) -> None:
        self.yesterday, self.today = self.today, self.now


class Counters:
    """Everything that one broker counts."""

    def __init__(self, *, cluster: str, boot_ms: int, max_counters: int = MAX_COUNTERS) -> None:
        self.boot_ms = boot_ms
        self.put_count = 0
        self.put_bytes = 0
        self.daily_puts = Daily()
        self.daily_gets = Daily()
        """Without the broker's own topics, and so are the puts."""
        self._cluster = cluster
        self._found_count = 0
        self._missed_count = 0
        self._transferred_count = 0
        self._counters: dict[str, dict[str, Counter]] = {stat: {} for stat in Stat}
        # Those of the whole broker are there from the start: no topic takes their place.
        for stat in _BROKER_STATS:
            self._counters[stat][cluster] = Counter()
        self._room = max_counters - len(_BROKER_STATS)
        self._is_full = False
        self._rates: deque[tuple[int, Rates]] = deque([(boot_ms, Rates(0, 0, 0, 0))], maxlen=_RATE_SAMPLES)
        self._due_ms = [boot_ms + period_ms for period_ms, _ in _WINDOWS]
        self._local_day: int | None = None

    def on_put(self, topic: str, *, count: int, size_bytes: int, is_system: bool) -> None:
        """A topic has got messages."""
        self._add(Stat.TOPIC_PUT_NUMS, topic, count, times=count)
        self._add(Stat.TOPIC_PUT_SIZE, topic, size_bytes, times=count)
        self._add(Stat.BROKER_PUT_NUMS, self._cluster, count)
        self.put_count += count
        self.put_bytes += size_bytes
        if not is_system:
            self.daily_puts.now += count

    def on_pulled(self, topic: str, group: str, *, count: int, size_bytes: int, is_system: bool) -> None:
        """A group has got messages of a topic, in one answer."""
        key = f"{topic}@{group}"
        self._add(Stat.GROUP_GET_NUMS, key, count)
        self._add(Stat.GROUP_GET_SIZE, key, size_bytes)
        self._add(Stat.BROKER_GET_NUMS, self._cluster, count)
        self._found_count += 1
        self._transferred_count += count
        if not is_system:
            self.daily_gets.now += count

    def on_missed(self) -> None:
        """A pull was answered without a message."""
        self._missed_count += 1

    def on_sent_back(self, topic: str, group: str) -> None:
        """A group has sent back a message that it once got from a topic."""
        self._add(Stat.SNDBCK_PUT_NUMS, f"{topic}@{group}", 1)

    def on_committed(self, topic: str) -> None:
        """A transaction's message is to be read."""
        self._add(Stat.COMMIT_NUMS, topic, 1)

    def on_rolled_back(self, topic: str) -> None:
        self._add(Stat.ROLLBACK_NUMS, topic, 1)

    def on_timer_taken(self, topic: str) -> None:
        """The timer has taken in a message for a topic."""
        self._add(Stat.TIMER_ENQUEUE_NUMS, topic, 1)

    def on_timer_over(self, topic: str) -> None:
        """The timer has given a topic its message, or let it wait once more if its time is far off."""
        self._add(Stat.TIMER_DEQUEUE_NUMS, topic, 1)

    def forget_topic(self, topic: str) -> None:
        """A topic was deleted: one that is made again under the name is another one."""
        self._forget(lambda key: key == topic or key.startswith(f"{topic}@"))

    def forget_group(self, group: str) -> None:
        self._forget(lambda key: key.endswith(f"@{group}"))

    def on_tick(self, now_ms: int, *, local_day: int) -> None:
        """To be called every second. ``local_day`` is a number that no other day has."""
        totals = Rates(self.put_count, self._found_count, self._missed_count, self._transferred_count)
        self._rates.append((now_ms, totals))
        for number, (period_ms, _) in enumerate(_WINDOWS):
            if now_ms >= self._due_ms[number]:
                self._due_ms[number] = now_ms + period_ms
                self._sample(number, now_ms)
        if self._local_day is not None and local_day != self._local_day:
            self.daily_puts.next_day()
            self.daily_gets.next_day()
        self._local_day = local_day

    def find(self, stat: str, key: str) -> BrokerStats | None:
        """One counter's figures; None if nothing was counted under that name and key."""
        counter = self._counters.get(stat, {}).get(key)
        return None if counter is None else counter.figures()

    def values(self, stat: Stat) -> dict[str, int]:
        """What every counter of a kind stands at, by key."""
        return {key: counter.value for key, counter in self._counters[stat].items()}

    def topic_tps(self, topic: str) -> float:
        """Messages a second that a topic got over the last minute."""
        return self._tps(Stat.TOPIC_PUT_NUMS, topic)

    def group_tps(self, group: str, topic: str) -> float:
        """Messages a second that a group was given of a topic over the last minute."""
        return self._tps(Stat.GROUP_GET_NUMS, f"{topic}@{group}")

    def rates(self, span_s: int) -> Rates:
        """What came a second over the last ``span_s``, or since the start if that is less long ago."""
        first_ms, first = self._rates[max(0, len(self._rates) - 1 - span_s)]
        last_ms, last = self._rates[-1]
        span_ms = max(1, last_ms - first_ms)
        return Rates(*((end - start) * 1000 / span_ms for start, end in zip(first, last, strict=True)))

    def _add(self, stat: Stat, key: str, value: int, *, times: int = 1) -> None:
        counter = self._counters[stat].get(key)
        if counter is None and (counter := self._make(stat, key)) is None:
            return
        counter.value += value
        counter.times += times

    def _tps(self, stat: Stat, key: str) -> float:
        found = self.find(stat, key)
        return 0.0 if found is None else found.minute.tps

    def _make(self, stat: Stat, key: str) -> Counter | None:
        if self._room:
            self._room -= 1
            counter = self._counters[stat][key] = Counter()
            return counter
        if not self._is_full:
            self._is_full = True
            _log.warning("topics and groups are not counted any more: there are too many counters")
        return None

    def _sample(self, number: int, now_ms: int) -> None:
        for stat, counters in self._counters.items():
            for counter in counters.values():
                counter.windows[number].take(now_ms, counter.value, counter.times)
            self._drop(stat, {key for key, counter in counters.items() if counter.windows[-1].is_still})

    def _forget(self, is_gone: Callable[[str], bool]) -> None:
        for stat, counters in self._counters.items():
            self._drop(stat, {key for key in counters if is_gone(key)})

    def _drop(self, stat: str, keys: set[str]) -> None:
        if not keys or stat in _BROKER_STATS:
            return
        for key in keys:
            del self._counters[stat][key]
        self._room += len(keys)
        self._is_full = False
