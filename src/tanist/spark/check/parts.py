"""One part of a history: all events of some messages, or all events of some queues by their time. Pure."""

import heapq
from collections.abc import Iterable, Sequence
from itertools import groupby

from tanist.check.history import Event, decode_event, order_of
from tanist.check.queue_judge import QueueJudge
from tanist.check.value_judge import ValueJudge
from tanist.check.verdict import Verdict


def judge_values(lines: Iterable[bytes]) -> Verdict:
    """Judge messages; ``lines`` are all of their events, in any order."""
    judge = ValueJudge()
    for line in lines:
        judge.on_event(decode_event(line))
    return judge.verdict()


def judge_queues(rows: Iterable[tuple[str, bytes]], of_all: Sequence[Event]) -> Verdict:
    """Judge queues; ``rows`` are queues and their events, by queue and then by time.

    ``of_all`` are the faults and what else concerns every queue, by time.
    """
    verdict = Verdict()
    for queue, group in groupby(rows, key=lambda row: row[0]):
        judge = QueueJudge(queue)
        events = (decode_event(line) for _, line in group)
        for event in heapq.merge(of_all, events, key=order_of):
            judge.on_event(event)
        verdict.add(judge.verdict())
    verdict.counts.faults = 0  # Each queue has counted them.
    return verdict
