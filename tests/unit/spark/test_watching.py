"""Whoever waits for a job is told how far it is, and how it ended, however short it was."""

import threading

import pytest

from tanist.spark import watching
from tanist.spark.progress import Progress
from tanist.spark.watching import telling


def test_a_job_that_is_done_at_once_tells_its_end() -> None:
    told: list[Progress] = []

    with telling(told.append, lambda: Progress(0.0, done_parts=3, left_parts=0)):
        assert told == []

    assert told == [Progress(0.0, done_parts=3, left_parts=0)]


def test_a_job_tells_meanwhile_what_is_new_and_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_LOOK_S", 0.001)
    told: list[int] = []
    looked, steps = threading.Semaphore(0), iter([0, 2, 2, 5])
    done = 0

    def look() -> Progress:
        nonlocal done
        done = next(steps, done)
        looked.release()
        return Progress(0.0, rows=done)

    with telling(lambda seen: told.append(seen.rows), look):
        for _ in range(6):
            looked.acquire()
        assert told == [2, 5]

    assert told == [2, 5, 5]


def test_a_job_that_fails_tells_no_end() -> None:
    told: list[Progress] = []

    with pytest.raises(KeyError), telling(told.append, lambda: Progress(0.0)):
        raise KeyError("it fails")

    assert told == []
