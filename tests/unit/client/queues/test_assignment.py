"""Which queues a member takes and gives up, and how corrections of offsets are counted."""

from tanist.client.queues.allocation import Averagely
from tanist.client.queues.assignment import Change, Corrections, plan, share_of
from tanist.model.route import MessageQueue

QUEUES = tuple(MessageQueue(topic="T", broker_name="b", queue_id=number) for number in range(8))


def test_a_change_takes_what_is_new_keeps_what_stays_and_drops_the_rest() -> None:
    assert plan(QUEUES[:3], QUEUES[2:5]) == Change(
        to_take=QUEUES[3:5], to_keep=QUEUES[2:3], to_drop=QUEUES[:2]
    )


def test_nothing_changes_where_all_is_as_it_should_be() -> None:
    assert plan(QUEUES, QUEUES) == Change(to_take=(), to_keep=QUEUES, to_drop=())


def test_a_queue_that_is_named_twice_is_taken_once() -> None:
    assert plan((), [QUEUES[0], QUEUES[0]]).to_take == QUEUES[:1]


def test_members_that_know_the_same_share_all_queues_whatever_the_order_they_know_them_in() -> None:
    members = ["10.0.0.2@a", "10.0.0.10@b", "10.0.0.2@C"]
    shares = [
        share_of("G", member, queues=queues, members=known, strategy=Averagely())
        for member, queues, known in zip(
            members, (QUEUES, QUEUES[::-1], QUEUES), (members, members[::-1], members), strict=True
        )
    ]
    assert sorted(queue for share in shares for queue in share) == list(QUEUES)


def test_a_queue_is_tried_again_at_once_after_its_first_correction_and_later_each_time() -> None:
    corrections, queue = Corrections(), QUEUES[0]
    assert corrections.may_take(queue, 100.0)
    assert corrections.on_corrected(queue, 100.0) == 1
    assert corrections.may_take(queue, 100.0)
    waits: list[float] = []
    now_s = 100.0
    for count in range(2, 9):
        assert corrections.on_corrected(queue, now_s) == count
        wait_s = next(step / 2 for step in range(100) if corrections.may_take(queue, now_s + step / 2))
        waits.append(wait_s)
        now_s += wait_s
    assert waits == [1, 2, 4, 8, 16, 20, 20]


def test_consumption_makes_a_correction_an_affair_of_the_past() -> None:
    corrections, queue = Corrections(), QUEUES[0]
    corrections.on_corrected(queue, 0.0)
    corrections.on_corrected(queue, 0.0)
    corrections.on_consumed(queue)
    assert corrections.may_take(queue, 0.0)
    assert corrections.on_corrected(queue, 0.0) == 1


def test_queues_are_counted_by_themselves() -> None:
    corrections = Corrections()
    corrections.on_corrected(QUEUES[0], 0.0)
    corrections.on_corrected(QUEUES[0], 0.0)
    assert corrections.may_take(QUEUES[1], 0.0)
    assert corrections.on_corrected(QUEUES[1], 0.0) == 1
