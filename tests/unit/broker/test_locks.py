"""Locks of queues that are consumed in order."""

import pytest

from tanist.broker import locks as locks_module
from tanist.broker.locks import LOCK_LIFE_MS, QueueLocks
from tanist.model.route import MessageQueue

Q0, Q1, Q2 = (MessageQueue(topic="T", broker_name="b", queue_id=number) for number in range(3))


def test_a_free_queue_goes_to_the_first_who_asks() -> None:
    locks = QueueLocks()
    assert locks.lock("G", [Q0, Q1], client_id="first", now_ms=0) == [Q0, Q1]
    assert locks.lock("G", [Q1, Q2], client_id="second", now_ms=1) == [Q2]


def test_groups_lock_the_same_queue_apart() -> None:
    locks = QueueLocks()
    assert locks.lock("G", [Q0], client_id="first", now_ms=0) == [Q0]
    assert locks.lock("H", [Q0], client_id="second", now_ms=0) == [Q0]


def test_a_lock_lives_for_a_minute_after_its_last_renewal() -> None:
    locks = QueueLocks()
    locks.lock("G", [Q0], client_id="first", now_ms=0)
    assert locks.lock("G", [Q0], client_id="first", now_ms=20_000) == [Q0]
    assert locks.lock("G", [Q0], client_id="second", now_ms=20_000 + LOCK_LIFE_MS) == []
    assert locks.lock("G", [Q0], client_id="second", now_ms=20_001 + LOCK_LIFE_MS) == [Q0]
    assert locks.lock("G", [Q0], client_id="first", now_ms=20_002 + LOCK_LIFE_MS) == []


def test_asking_in_vain_does_not_renew_the_lock_of_another() -> None:
    locks = QueueLocks()
    locks.lock("G", [Q0], client_id="first", now_ms=0)
    locks.lock("G", [Q0], client_id="second", now_ms=LOCK_LIFE_MS)
    assert locks.lock("G", [Q0], client_id="second", now_ms=LOCK_LIFE_MS + 1) == [Q0]


def test_an_unlocked_queue_is_free_at_once() -> None:
    locks = QueueLocks()
    locks.lock("G", [Q0, Q1], client_id="first", now_ms=0)
    locks.unlock("G", [Q0], client_id="first")
    assert locks.lock("G", [Q0, Q1], client_id="second", now_ms=1) == [Q0]


def test_nobody_unlocks_what_another_holds() -> None:
    locks = QueueLocks()
    locks.lock("G", [Q0], client_id="first", now_ms=0)
    locks.unlock("G", [Q0, Q1], client_id="second")
    locks.unlock("H", [Q0], client_id="first")
    assert locks.lock("G", [Q0], client_id="second", now_ms=1) == []


def test_locks_that_nobody_renews_are_forgotten() -> None:
    locks = QueueLocks()
    locks.lock("G", [Q0], client_id="first", now_ms=0)
    locks.lock("G", [Q1], client_id="first", now_ms=1)
    locks.on_tick(LOCK_LIFE_MS + 1)
    assert len(locks) == 1
    assert locks.lock("G", [Q0, Q1], client_id="second", now_ms=LOCK_LIFE_MS + 1) == [Q0]


def test_a_full_table_gives_out_no_new_locks_but_renews_old_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks_module, "MAX_LOCKS", 2)
    locks = QueueLocks()
    assert locks.lock("G", [Q0, Q1, Q2], client_id="first", now_ms=0) == [Q0, Q1]
    assert locks.lock("G", [Q0, Q2], client_id="first", now_ms=1) == [Q0]


def test_a_group_holds_locks_until_they_are_given_up_or_over() -> None:
    locks = QueueLocks()
    assert not locks.is_any_held("G", 0)
    locks.lock("G", [Q0, Q1], client_id="first", now_ms=0)
    assert locks.is_any_held("G", LOCK_LIFE_MS)
    assert not locks.is_any_held("H", 0)
    assert not locks.is_any_held("G", LOCK_LIFE_MS + 1)
    locks.unlock("G", [Q0, Q1], client_id="first")
    assert not locks.is_any_held("G", 1)
    assert len(locks) == 0
