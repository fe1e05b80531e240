import pytest

from tanist.spark.errors import SparkError
from tanist.spark.sink.plans import (
    RUN_ROWS,
    check_partitions,
    counts_of,
    make_plan,
    plan_in_force,
    queue_of_row,
    queues_of,
)


def test_a_batch_keeps_the_plan_that_it_began_with() -> None:
    old, new = make_plan({"a": 4}, 0), make_plan({"a": 4, "b": 4}, 8)
    assert plan_in_force([], 3) is None
    assert plan_in_force([old, new, old], 7) == old
    assert plan_in_force([old, new], 8) == new
    assert counts_of(new) == {"a": 4, "b": 4}


def test_plans_that_contradict_each_other_and_a_checkpoint_from_before_are_refused() -> None:
    with pytest.raises(SparkError, match="different plans from batch 0 on"):
        plan_in_force([make_plan({"a": 4}, 0), make_plan({"a": 5}, 0)], 1)
    with pytest.raises(SparkError, match="older than any plan"):
        plan_in_force([make_plan({"a": 4}, 5)], 4)


def test_rows_go_round_the_queues_and_the_same_way_each_time() -> None:
    queues = queues_of("T", {"b": 1, "a": 2})
    assert [(queue.broker_name, queue.queue_id) for queue in queues] == [("a", 0), ("a", 1), ("b", 0)]

    def chosen(index: int, *, batch: int = 0, key: str | None = None) -> int:
        return queues.index(queue_of_row(queues, batch=batch, partition=0, index=index, sharding_key=key))

    assert [chosen(index * RUN_ROWS) for index in range(4)] == [0, 1, 2, 0]
    assert chosen(RUN_ROWS - 1) == 0
    assert chosen(0, batch=1) == 1
    assert len({chosen(index, batch=index, key="customer") for index in range(9)}) == 1


def test_more_partitions_than_before_are_for_the_sums_to_judge() -> None:
    check_partitions(7, count=4, before=4)
    check_partitions(7, count=5, before=4)
    with pytest.raises(SparkError, match="batch 7 was begun with 4 partitions"):
        check_partitions(7, count=3, before=4)
