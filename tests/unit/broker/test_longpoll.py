import pytest

from tanist.broker.longpoll import MAX_PARKED, MAX_PARKED_CHARS, MAX_PARKED_PER_PEER, ParkedPull, ParkedPulls

T = "TopicA"


def make(
    owner: str = "x", *, queue_id: int = 0, queue_offset: int = 0, deadline_ms: int = 100, peer: str = "peer"
) -> ParkedPull[str]:
    return ParkedPull(T, queue_id, queue_offset, deadline_ms, peer, owner)


def owners(pulls: list[ParkedPull[str]]) -> list[str]:
    return [pull.owner for pull in pulls]


def arrive(parked: ParkedPulls[str], topic: str, queue_id: int, max_offset: int) -> list[str]:
    """Take out whoever a message came for."""
    return [pull.owner for pull in parked.behind(topic, queue_id, max_offset) if parked.take(pull)]


def expire(parked: ParkedPulls[str], now_ms: int) -> list[str]:
    found: list[str] = []
    while (pull := parked.expire(now_ms)) is not None:
        found.append(pull.owner)
    return found


def test_a_message_takes_out_the_pulls_of_its_queue_alone() -> None:
    parked = ParkedPulls[str]()
    for pull in (make("a"), make("b"), make("other queue", queue_id=1)):
        parked.park(pull)
    assert arrive(parked, T, 0, 1) == ["a", "b"]
    assert arrive(parked, T, 0, 2) == []
    assert arrive(parked, "TopicB", 1, 1) == []
    assert len(parked) == 1


def test_a_pull_that_has_seen_all_of_the_queue_stays() -> None:
    parked = ParkedPulls[str]()
    parked.park(make("behind", queue_offset=4))
    parked.park(make("ahead", queue_offset=5))
    assert arrive(parked, T, 0, 5) == ["behind"]
    assert arrive(parked, T, 0, 6) == ["ahead"]


def test_a_pull_expires_at_its_deadline_and_not_before() -> None:
    parked = ParkedPulls[str]()
    parked.park(make("late", deadline_ms=200))
    parked.park(make("early", deadline_ms=100))
    assert parked.next_deadline_ms == 100
    assert expire(parked, 99) == []
    assert expire(parked, 100) == ["early"]
    assert parked.next_deadline_ms == 200
    assert expire(parked, 1000) == ["late"]
    assert parked.next_deadline_ms is None


def test_a_pull_is_handed_out_once() -> None:
    parked = ParkedPulls[str]()
    parked.park(make("woken"))
    assert arrive(parked, T, 0, 1) == ["woken"]
    assert expire(parked, 1000) == []
    parked.park(make("expired"))
    assert expire(parked, 1000) == ["expired"]
    assert arrive(parked, T, 0, 9) == []
    parked.park(make("drained"))
    assert owners(parked.drain()) == ["drained"]
    assert expire(parked, 1000) == []
    assert len(parked) == 0


def test_a_pull_waits_until_it_is_taken() -> None:
    parked = ParkedPulls[str]()
    parked.park(make("a", deadline_ms=100))
    parked.park(make("b", peer="gone"))
    first, second = parked.behind(T, 0, 1)
    assert parked.behind(T, 0, 1) == [first, second]
    assert parked.expire(100) is first
    parked.drop_peer("gone")
    assert not parked.take(first)
    assert not parked.take(second)
    assert len(parked) == 0


def test_the_end_of_a_connection_takes_its_pulls_along() -> None:
    parked = ParkedPulls[str]()
    parked.park(make("gone", peer="a"))
    parked.park(make("gone too", peer="a", queue_id=1))
    parked.park(make("stays", peer="b"))
    parked.drop_peer("a")
    parked.drop_peer("nobody")
    assert arrive(parked, T, 0, 1) == ["stays"]
    assert arrive(parked, T, 1, 1) == []
    assert expire(parked, 1000) == []


def test_one_peer_may_park_so_many_and_all_together_so_many() -> None:
    parked = ParkedPulls[str](max_count=3, max_per_peer=2)
    parked.park(make(peer="a"))
    assert parked.has_room("a")
    parked.park(make(peer="a"))
    assert not parked.has_room("a")
    assert parked.has_room("b")
    parked.park(make(peer="b"))
    assert not parked.has_room("b")
    assert not parked.has_room("c")
    arrive(parked, T, 0, 1)
    assert parked.has_room("a")


def test_what_parked_pulls_say_is_bounded_together() -> None:
    parked = ParkedPulls[str]()
    wordy = make()
    wordy.text_chars = MAX_PARKED_CHARS - 10
    parked.park(wordy)
    assert parked.has_room("other", 10)
    assert not parked.has_room("other", 11)
    parked.drop_peer("peer")
    assert parked.has_room("other", MAX_PARKED_CHARS)


def test_the_limits_are_far_above_what_a_client_needs() -> None:
    assert 1000 < MAX_PARKED_PER_PEER < MAX_PARKED


def test_pulls_that_were_answered_early_do_not_pile_up_by_their_deadlines() -> None:
    parked = ParkedPulls[str]()
    for _ in range(10_000):
        parked.park(make(deadline_ms=10**9))
        arrive(parked, T, 0, 1)
    assert len(parked._by_deadline) < 2000
    assert parked.next_deadline_ms is None


@pytest.mark.timeout(20)
def test_many_pulls_of_one_queue_expire() -> None:
    parked = ParkedPulls[str]()
    for number in range(MAX_PARKED):
        parked.park(make(peer=f"peer {number % 100}"))
    assert len(expire(parked, 100)) == MAX_PARKED
    assert len(parked) == 0
