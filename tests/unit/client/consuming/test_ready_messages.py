"""In which order messages are handed out, and when they are held back."""

from tanist.client.consuming.ready_messages import ReadyMessages
from tanist.client.queues.owned_queue import OwnedQueue
from tanist.client.received import ReceivedMessage
from tanist.model.route import MessageQueue
from tests.support.received import at, received

NOW_S = 1000.0


def owned_with(ready: ReadyMessages, queue_id: int, *offsets: int) -> OwnedQueue:
    """A queue with messages at these offsets, all of them ready."""
    queue = MessageQueue(topic="T", broker_name="b", queue_id=queue_id)
    owned = OwnedQueue(queue, at(0))
    add(ready, owned, *offsets)
    return owned


def add(ready: ReadyMessages, owned: OwnedQueue, *offsets: int) -> None:
    owned.cached.add(
        received(*offsets, queue=owned.queue),
        fetched_from=owned.cached.next_offset,
        next_offset=at(offsets[-1] + 1),
    )
    ready.put(owned, len(offsets))


def take_all(ready: ReadyMessages) -> list[tuple[int, int]]:
    """Queue and offset of all that is handed out now."""
    taken: list[tuple[int, int]] = []
    while (each := ready.take(NOW_S)) is not None:
        taken.append((each[1].queue.queue_id, each[1].queue_offset))
    return taken


def take_one(ready: ReadyMessages) -> ReceivedMessage:
    taken = ready.take(NOW_S)
    assert taken is not None
    return taken[1]


def finish(ready: ReadyMessages, owned: OwnedQueue, message: ReceivedMessage) -> None:
    owned.cached.done(message)
    owned.in_hand_count -= 1
    ready.release(owned)


def test_messages_are_handed_out_in_the_order_in_which_they_came() -> None:
    ready = ReadyMessages(is_orderly=False)
    first = owned_with(ready, 1, 0, 1)
    owned_with(ready, 2, 0)
    add(ready, first, 2)
    assert take_all(ready) == [(1, 0), (1, 1), (2, 0), (1, 2)]
    assert first.in_hand_count == 3


def test_what_was_taken_and_not_done_is_the_next() -> None:
    ready = ReadyMessages(is_orderly=False)
    owned = owned_with(ready, 1, 0, 1)
    message = take_one(ready)
    ready.put_again(owned, message)
    assert take_all(ready) == [(1, 0), (1, 1)]


def test_nothing_of_a_dropped_queue_is_handed_out() -> None:
    ready = ReadyMessages(is_orderly=False)
    owned = owned_with(ready, 1, 0, 1)
    owned_with(ready, 2, 0)
    message = take_one(ready)
    owned.drop()
    ready.put_again(owned, message)
    assert take_all(ready) == [(2, 0)]


def test_a_paused_queue_keeps_its_messages_until_it_is_released() -> None:
    ready = ReadyMessages(is_orderly=False)
    owned = owned_with(ready, 1, 0, 1)
    owned_with(ready, 2, 0)
    owned.is_paused = True
    assert take_all(ready) == [(2, 0)]
    owned.is_paused = False
    ready.release(owned)
    assert take_all(ready) == [(1, 0), (1, 1)]


def test_nothing_is_handed_out_while_all_is_suspended() -> None:
    ready = ReadyMessages(is_orderly=False)
    owned_with(ready, 1, 0)
    ready.is_suspended = True
    assert ready.take(NOW_S) is None
    ready.is_suspended = False
    assert take_all(ready) == [(1, 0)]


def test_in_order_a_queue_has_one_message_in_hand_at_a_time() -> None:
    ready = ReadyMessages(is_orderly=True)
    first = owned_with(ready, 1, 0, 1)
    owned_with(ready, 2, 0, 1)
    message = take_one(ready)
    assert (message.queue.queue_id, message.queue_offset) == (1, 0)
    assert take_all(ready) == [(2, 0)]
    finish(ready, first, message)
    assert take_all(ready) == [(1, 1)]


def test_in_order_a_message_that_failed_comes_before_those_behind_it() -> None:
    ready = ReadyMessages(is_orderly=True)
    owned = owned_with(ready, 1, 0, 1)
    message = take_one(ready)
    assert ready.take(NOW_S) is None
    ready.put_again(owned, message)
    owned.in_hand_count -= 1
    ready.release(owned)
    assert take_all(ready) == [(1, 0)]


def test_in_order_nothing_is_handed_out_without_the_lock() -> None:
    ready = ReadyMessages(is_orderly=True)
    owned = owned_with(ready, 1, 0)
    owned.locked_until_s = NOW_S
    assert ready.take(NOW_S) is None
    owned.locked_until_s = NOW_S + 30
    ready.release(owned)
    assert take_all(ready) == [(1, 0)]


def test_a_queue_that_went_to_another_offset_hands_out_what_comes_from_there() -> None:
    ready = ReadyMessages(is_orderly=False)
    owned = owned_with(ready, 1, 0, 1, 2)
    take_one(ready)
    owned.cached.restart(at(7))
    assert ready.take(NOW_S) is None
    add(ready, owned, 7)
    assert take_all(ready) == [(1, 7)]
