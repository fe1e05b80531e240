"""A store under a controller: what is not confirmed is in the log and in no index."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.model.message import SysFlag
from tanist.model.topics import SCHEDULE_TOPIC
from tanist.store import MessageStore, dispatch
from tests.support.clocks import FakeClock
from tests.support.messages import SMALL, TOPIC, append_all, bodies, kill, make_message, numbered


def _open(root: Path) -> MessageStore:
    return MessageStore.open(root, SMALL, clock=FakeClock(), waits_for_confirm=True)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MessageStore]:
    """Messages 0 to 4 are in the log, and the first three are confirmed."""
    with _open(tmp_path) as store:
        places = [store.append(make_message(number, keys=f"key{number}")) for number in range(5)]
        store.dispatcher.confirmed_to = places[2].end
        store.dispatch()
        yield store


@pytest.mark.behaviour("S2-51")
def test_consumers_see_nothing_behind_the_confirm_offset(store: MessageStore) -> None:
    assert bodies(store) == numbered(0, 1, 2)
    queue = store.queues.find(TOPIC, 0)
    assert queue is not None
    assert queue.max_offset == 3
    assert store.find_by_key(TOPIC, "key2")
    assert not store.find_by_key(TOPIC, "key3")
    assert store.offset_at_time(TOPIC, 0, 1 << 60) <= 3


@pytest.mark.behaviour("S2-51")
def test_who_names_a_place_in_the_log_does_not_see_it_either(store: MessageStore) -> None:
    confirmed_to = store.dispatcher.confirmed_to
    assert confirmed_to is not None
    assert store.record_at(confirmed_to) is not None
    assert store.message_at(confirmed_to) is None
    assert store.message_at(0) is not None


@pytest.mark.behaviour("S2-51")
def test_nobody_sees_a_message_of_which_only_a_part_is_confirmed(store: MessageStore) -> None:
    place = store.append(make_message(5, keys="key5"))
    store.dispatcher.confirmed_to = place.end - 1
    store.dispatch()
    assert bodies(store) == numbered(0, 1, 2, 3, 4)
    assert store.message_at(place.log_offset) is None
    assert not store.find_by_key(TOPIC, "key5")
    assert store.confirmed_whole_to == place.log_offset
    store.dispatcher.confirmed_to = place.end
    assert store.message_at(place.log_offset) is not None
    assert store.confirmed_whole_to == place.end


def test_what_comes_in_the_place_of_what_was_cut_is_not_confirmed(store: MessageStore) -> None:
    place = store.append(make_message(5))
    store.dispatcher.confirmed_to = place.end - 1
    store.truncate_to(place.log_offset)
    assert store.dispatcher.confirmed_to == place.log_offset
    store.append(make_message(6))
    store.dispatch()
    assert bodies(store) == numbered(0, 1, 2, 3, 4)


def test_what_comes_in_the_place_of_what_was_lost_is_not_confirmed(tmp_path: Path) -> None:
    store = _open(tmp_path)
    first, second = (store.append(make_message(number)) for number in range(2))
    store.dispatcher.confirmed_to = second.end
    store.checkpoint()
    store.log.cut(first.end)
    kill(store)
    with MessageStore.open(
        tmp_path, SMALL, clock=FakeClock(), waits_for_confirm=True, accept_loss=True
    ) as again:
        assert again.dispatcher.confirmed_to == first.end
        again.append(make_message(2))
        again.dispatch()
        assert bodies(again) == numbered(0)


def test_they_see_it_when_it_is_confirmed(store: MessageStore) -> None:
    store.dispatcher.confirmed_to = store.log.log_end
    store.dispatch()
    assert bodies(store) == numbered(0, 1, 2, 3, 4)
    store.append(make_message(5))
    store.dispatcher.confirmed_to = store.log.log_end + 1000
    assert store.dispatch() == 1


def test_a_message_is_indexed_from_what_is_known_although_it_had_to_wait(
    store: MessageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_again(*_: object) -> int:
        pytest.fail("the log is read again")

    monkeypatch.setattr(store.dispatcher, "_batch", read_again)
    store.append(make_message(5))
    store.dispatcher.confirmed_to = store.log.log_end
    assert store.dispatch() == 3


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "closed"])
def test_after_a_restart_it_waits_again(tmp_path: Path, is_killed: bool) -> None:
    store = _open(tmp_path)
    first = store.append(make_message(0))
    store.append(make_message(1))
    store.dispatcher.confirmed_to = first.end
    store.dispatch()
    store.checkpoint()
    if is_killed:
        kill(store)
    else:
        store.close()
    with _open(tmp_path) as again:
        assert bodies(again) == numbered(0)
        assert again.log.log_end > first.end
        again.dispatcher.confirmed_to = again.log.log_end
        again.dispatch()
        assert bodies(again) == numbered(0, 1)


def test_what_was_confirmed_at_the_last_checkpoint_is_indexed_at_once(tmp_path: Path) -> None:
    store = _open(tmp_path)
    store.append(make_message(0))
    end = store.append(make_message(1)).end
    store.dispatch()
    # It is known to be confirmed, and not indexed yet.
    store.dispatcher.confirmed_to = end + 500
    store.checkpoint()
    kill(store)
    with _open(tmp_path) as again:
        assert again.dispatcher.confirmed_to == end
        assert bodies(again) == numbered(0, 1)


def test_with_fixed_roles_all_is_indexed(tmp_path: Path) -> None:
    store = _open(tmp_path)
    store.append(make_message(0))
    kill(store)
    with MessageStore.open(tmp_path, SMALL, clock=FakeClock()) as again:
        assert bodies(again) == numbered(0)
        assert again.dispatcher.confirmed_to is None


def test_a_queue_goes_on_behind_what_is_not_confirmed(tmp_path: Path) -> None:
    store = _open(tmp_path)
    for number in range(3):
        store.append(make_message(number))
    kill(store)
    with _open(tmp_path) as again:
        assert bodies(again) == []
        assert again.append(make_message(3)).queue_offset == 3


def test_a_cut_behind_the_confirm_offset_leaves_the_queues_offsets_right(store: MessageStore) -> None:
    fourth = store.log.log_end
    store.append(make_message(5))
    store.truncate_to(fourth)
    assert bodies(store) == numbered(0, 1, 2)
    assert store.append(make_message(6)).queue_offset == 5
    store.dispatcher.confirmed_to = store.log.log_end
    store.dispatch()
    assert bodies(store) == numbered(0, 1, 2, 3, 4, 6)


def test_a_slave_knows_the_queues_offsets_before_it_writes(tmp_path: Path, store: MessageStore) -> None:
    with _open(tmp_path / "slave") as slave:
        slave.append_raw(0, store.log.read(0, store.log.log_end))
        slave.count_queue_offsets()
        assert slave.append(make_message(5)).queue_offset == 5


@pytest.mark.parametrize("is_native", [True, False], ids=["in C", "in Python"])
def test_offsets_are_counted_over_all_that_waits_whatever_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_native: bool
) -> None:
    if not is_native:
        monkeypatch.setattr(dispatch, "native", None)
    with _open(tmp_path) as store:
        for number in range(40):
            store.append(make_message(number, queue_id=number % 3, body_bytes=200))
            store.append(make_message(number, topic=SCHEDULE_TOPIC, queue_id=2, DELAY="3"))
            # A transaction that was begun is in the log and in no queue of its own.
            store.append(make_message(number, topic="Half", sys_flag=SysFlag.PREPARED))
        assert store.dispatcher.dispatched_to == 0
        store.count_queue_offsets()
        found = store.log.next_queue_offsets
        assert {queue: offset for queue, offset in found.items() if queue[0] != "Half"} == {
            (TOPIC, 0): 14,
            (TOPIC, 1): 13,
            (TOPIC, 2): 13,
            (SCHEDULE_TOPIC, 2): 40,
        }
        assert not found.get(("Half", 0))


def test_what_waits_is_counted_in_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if dispatch.native is None:
        pytest.skip("C could not be built here")
    with _open(tmp_path) as store:
        append_all(store, (make_message(number) for number in range(12)))

        def decode(*_: object) -> None:
            pytest.fail(
                "a plain record is read in Python: a hundred thousand would keep the loop for a second"
            )

        monkeypatch.setattr(dispatch, "_decode", decode)
        store.count_queue_offsets()
        assert store.log.next_queue_offsets == {(TOPIC, 0): 12}


class TestDeletions:
    def test_what_waited_when_its_topic_was_deleted_never_shows(self, store: MessageStore) -> None:
        store.delete_topics({TOPIC})
        kept = store.append(make_message(5))
        store.dispatcher.confirmed_to = store.log.log_end
        store.dispatch()
        assert bodies(store) == numbered(5)
        assert kept.queue_offset == 5

    def test_also_if_nothing_of_it_was_confirmed(self, store: MessageStore) -> None:
        store.append(make_message(7, topic="TopicB"))
        store.delete_topics({"TopicB"})
        store.dispatcher.confirmed_to = store.log.log_end
        store.dispatch()
        assert bodies(store, topic="TopicB") == []

    def test_a_slave_hides_it_too(self, tmp_path: Path, store: MessageStore) -> None:
        store.delete_topics({TOPIC})
        with _open(tmp_path / "slave") as slave:
            slave.append_raw(0, store.log.read(0, store.log.log_end))
            slave.follow_deletions(store.deleted_topics)
            slave.dispatcher.confirmed_to = slave.log.log_end
            slave.dispatch()
            assert bodies(slave) == []

    def test_a_queue_is_not_removed_while_something_waits_for_it(self, store: MessageStore) -> None:
        store.append(make_message(7, topic="TopicB"))
        assert store.remove_expired_queues({"TopicB"}) == 0
        assert store.append(make_message(8, topic="TopicB")).queue_offset == 1
