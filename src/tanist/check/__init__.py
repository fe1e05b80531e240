"""Histories of what clients did and saw, and the judge that says what is wrong with them.

``history`` are the events and their files, ``queue_judge`` and ``value_judge`` the rules, pure and in linear
time: one looks at all that concerns one queue, the other at all that concerns one message, so that a history
too large for one process can be cut either way. ``verdict`` is what they find, ``judging`` has them judge
whole files. ``recording`` and ``workload`` write histories against a live cluster.
"""

from tanist.check.history import (
    Acked,
    Asked,
    Assigned,
    Began,
    Ended,
    Event,
    Fault,
    Held,
    HistoryError,
    Log,
    Outcome,
    Read,
    Summed,
    Waited,
)
from tanist.check.judging import judge_events, judge_files
from tanist.check.verdict import Anomaly, Kind, Verdict

__all__ = [
    "Acked",
    "Anomaly",
    "Asked",
    "Assigned",
    "Began",
    "Ended",
    "Event",
    "Fault",
    "Held",
    "HistoryError",
    "Kind",
    "Log",
    "Outcome",
    "Read",
    "Summed",
    "Verdict",
    "Waited",
    "judge_events",
    "judge_files",
]
