import pytest

from tanist.supervisor.watchdog import LOOK_S, Pulse, Watchdog, WatchState

LIMIT_S = 1.0
SILENT, BEAT, ENDED = Pulse.SILENT, Pulse.BEAT, Pulse.ENDED


class Looking:
    """Looks at a broker every LOOK_S, on a clock of its own."""

    def __init__(self) -> None:
        self.watchdog = Watchdog(LIMIT_S)
        self.now_s = 1_000.0

    def look(self, seen: Pulse, *, after_s: float = LOOK_S) -> WatchState:
        self.now_s += after_s
        return self.watchdog.on_look(seen, now_s=self.now_s)

    def silent_for(self, duration_s: float) -> WatchState:
        for _ in range(round(duration_s / LOOK_S)):
            self.look(SILENT)
        return self.watchdog.state


@pytest.fixture
def looking() -> Looking:
    return Looking()


def test_a_broker_that_starts_may_be_silent(looking: Looking) -> None:
    assert looking.silent_for(600 * LIMIT_S) is WatchState.STARTING
    assert looking.look(BEAT) is WatchState.WATCHED


def test_a_broker_that_is_silent_for_the_limit_hangs(looking: Looking) -> None:
    looking.look(BEAT)
    assert looking.silent_for(LIMIT_S - LOOK_S) is WatchState.WATCHED
    assert looking.silent_for(2 * LOOK_S) is WatchState.HUNG


def test_every_beat_begins_the_time_anew(looking: Looking) -> None:
    for _ in range(5):
        looking.look(BEAT)
        assert looking.silent_for(LIMIT_S - LOOK_S) is WatchState.WATCHED


def test_time_in_which_nobody_looked_is_no_silence(looking: Looking) -> None:
    looking.look(BEAT)
    assert looking.look(SILENT, after_s=3_600) is WatchState.WATCHED
    assert looking.silent_for(LIMIT_S) is WatchState.HUNG


def test_a_broker_that_stops_may_be_silent(looking: Looking) -> None:
    looking.look(BEAT)
    assert looking.look(ENDED) is WatchState.OFF
    assert looking.silent_for(600 * LIMIT_S) is WatchState.OFF


def test_one_that_hangs_is_not_forgiven(looking: Looking) -> None:
    looking.look(BEAT)
    looking.silent_for(2 * LIMIT_S)
    assert looking.look(BEAT) is WatchState.HUNG
