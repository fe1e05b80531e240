from typing import Any

import pytest

from tanist.admin.resets.aiming import Aimed, Found, QueueFacts, aim
from tanist.admin.resets.refused import ResetRefused
from tanist.admin.resets.targets import AtOffset, AtOffsets, AtTime, Earliest, Latest, LeaveLag
from tanist.model.route import MessageQueue


def facts(
    queue_id: int = 0, *, now: int | None = 50, start: int = 10, end: int = 90, **other: Any
) -> QueueFacts:
    queue = MessageQueue(topic="T", broker_name="a", queue_id=queue_id)
    return QueueFacts(queue=queue, now=now, min_offset=start, max_offset=end, **other)


def targets(aimed: list[Aimed]) -> list[int]:
    return [each.target for each in aimed]


@pytest.mark.parametrize(
    ("goal", "target"),
    [
        (Earliest(), 10),
        (Latest(), 90),
        (LeaveLag(5), 85),
        (LeaveLag(0), 90),
        (AtOffset(33), 33),
        (AtOffset(90), 90),
    ],
)
def test_a_goal_leads_to_an_offset(goal: Any, target: int) -> None:
    assert aim([facts()], goal) == [Aimed(facts(), target)]


def test_a_time_leads_to_what_the_broker_found_for_it() -> None:
    assert targets(aim([facts(at_time=40, oldest_ms=1_000)], AtTime(5_000))) == [40]


@pytest.mark.parametrize("goal", [AtOffset(3), LeaveLag(88)])
def test_what_is_deleted_already_is_said_and_the_oldest_kept_is_the_target(goal: Any) -> None:
    (aimed,) = aim([facts()], goal)
    assert aimed.target == 10
    assert "target expired" in aimed.warnings[0]


def test_a_time_before_the_first_message_kept_is_said() -> None:
    (aimed,) = aim([facts(at_time=10, oldest_ms=61_000)], AtTime(1_000))
    assert aimed.warnings == ("target expired: the time is before the oldest message that is kept",)
    (whole,) = aim([facts(start=0, at_time=0, oldest_ms=61_000)], AtTime(1_000))
    assert whole.warnings == ("the time is before the first message",)
    (later,) = aim([facts(at_time=30, oldest_ms=1_000)], AtTime(1_000))
    assert later.warnings == ()


def test_an_empty_queue_is_said() -> None:
    (aimed,) = aim([facts(start=0, end=0, now=None, at_time=0)], AtTime(1))
    assert aimed.warnings == ("the queue is empty",)


def test_an_offset_past_the_end_is_refused() -> None:
    with pytest.raises(ResetRefused, match="offset 91 of a:0 is past its end 90; use latest"):
        aim([facts()], AtOffset(91))


def test_only_queues_that_are_named_are_aimed_at_and_unknown_ones_refused() -> None:
    both = [facts(0), facts(1)]
    assert [each.facts.queue.queue_id for each in aim(both, AtOffsets({("a", 1): 20}))] == [1]
    with pytest.raises(ResetRefused, match="no queue a:7; it has a:0, a:1"):
        aim(both, AtOffsets({("a", 7): 20}))


def test_without_going_forward_a_group_stays_where_it_is() -> None:
    assert targets(aim([facts(now=50)], Latest(), is_forward_allowed=False)) == [50]
    assert targets(aim([facts(now=50)], Earliest(), is_forward_allowed=False)) == [10]
    assert targets(aim([facts(now=None)], Latest(), is_forward_allowed=False)) == [90]


def test_a_message_is_the_target_in_its_own_queue_and_its_time_in_others() -> None:
    found = Found(("a", 1), 44, 7_000)
    aimed = aim([facts(0, at_time=30), facts(1, at_time=40)], AtTime(7_000), message=found)
    assert targets(aimed) == [30, 44]
