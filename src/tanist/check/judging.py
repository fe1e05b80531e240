"""Has a whole history judged, in one process and one pass."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tanist.check.history import Began, Event, Fault, Waited, merge_histories
from tanist.check.queue_judge import QueueJudge
from tanist.check.value_judge import ValueJudge
from tanist.check.verdict import Verdict

PROGRESS_EVERY = 50_000


def judge_files(paths: Sequence[Path], on_progress: Callable[[int], None] | None = None) -> Verdict:
    """Judge the history that these files are, one a process."""
    return judge_events(merge_histories(paths), on_progress)


def judge_events(events: Iterable[Event], on_progress: Callable[[int], None] | None = None) -> Verdict:
    """Judge events that come by their time; ``on_progress`` hears now and then how many were taken."""
    values = ValueJudge()
    queues: dict[str, QueueJudge] = {}
    of_all: list[Fault | Waited] = []
    for number, event in enumerate(events, 1):
        values.on_event(event)
        if isinstance(event, Fault | Waited):
            of_all.append(event)
            for queue in queues.values():
                queue.on_event(event)
        elif not isinstance(event, Began) and event.queue:
            judge = queues.get(event.queue)
            if judge is None:
                judge = queues[event.queue] = QueueJudge(event.queue)
                # A queue that appears late has had the same around it.
                for earlier in of_all:
                    judge.on_event(earlier)
            judge.on_event(event)
        if on_progress is not None and number % PROGRESS_EVERY == 0:
            on_progress(number)
    verdict = values.verdict()
    for judge in queues.values():
        verdict.add(judge.verdict())
    # Each queue has heard of all of them.
    verdict.counts.faults = sum(isinstance(event, Fault) and not event.is_over for event in of_all)
    return verdict
