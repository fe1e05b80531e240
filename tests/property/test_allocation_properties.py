"""Whoever is in a group: members that compute alone never contradict each other."""

from collections import Counter
from itertools import chain

from hypothesis import given, settings
from hypothesis import strategies as st

from tanist.client.queues.allocation import AllocationStrategy, ByMachineRoom, Sticky
from tanist.model.route import MessageQueue
from tests.support.allocating import ALL, COMPLETE, EVEN, ROOMS, owners, queues_of, shares

_names = st.builds("{}@{}".format, st.sampled_from(ROOMS), st.text(st.characters(codec="utf-8"), max_size=3))
_members = st.lists(_names, min_size=1, max_size=12, unique=True)
_queues = st.builds(
    queues_of, st.integers(0, 40), brokers=st.lists(_names, min_size=1, max_size=4, unique=True)
)


@settings(deadline=None)
@given(st.sampled_from(COMPLETE), _queues, _members)
def test_every_queue_goes_to_exactly_one_member(
    strategy: AllocationStrategy, queues: list[MessageQueue], members: list[str]
) -> None:
    taken = Counter(chain.from_iterable(shares(strategy, queues, members).values()))
    assert taken == Counter(queues)


@settings(deadline=None)
@given(st.sampled_from(ALL), _queues, _members)
def test_no_queue_goes_to_two_members(
    strategy: AllocationStrategy, queues: list[MessageQueue], members: list[str]
) -> None:
    taken = [*chain.from_iterable(shares(strategy, queues, members).values())]
    assert len(taken) == len(set(taken))
    assert set(taken) <= set(queues)


@settings(deadline=None)
@given(st.sampled_from(EVEN), _queues, _members)
def test_even_shares_differ_by_one_at_most(
    strategy: AllocationStrategy, queues: list[MessageQueue], members: list[str]
) -> None:
    sizes = [len(share) for share in shares(strategy, queues, members).values()]
    assert max(sizes) - min(sizes) <= 1


@settings(deadline=None)
@given(_queues, _members, st.frozensets(st.sampled_from(ROOMS)))
def test_by_machine_room_takes_all_queues_of_its_rooms(
    queues: list[MessageQueue], members: list[str], rooms: frozenset[str]
) -> None:
    taken = set(owners(ByMachineRoom(rooms), queues, members))
    in_rooms = {queue for queue in queues if queue.broker_name.partition("@")[0] in rooms}
    # A broker that has no name behind its room is in none, as is one with more than two parts.
    assert taken == {queue for queue in in_rooms if len(queue.broker_name.rstrip("@").split("@")) == 2}


@settings(deadline=None)
@given(_queues, _members)
def test_sticky_depends_on_no_order(queues: list[MessageQueue], members: list[str]) -> None:
    for member in members:
        share = Sticky().allocate("G", member, queues, members)
        turned = Sticky().allocate("G", member, queues[::-1], members[::-1])
        assert sorted(share) == sorted(turned)


@settings(deadline=None)
@given(st.integers(16, 40), st.lists(_names, min_size=2, max_size=12, unique=True))
def test_sticky_disturbs_less_than_half_of_what_could_stay(queue_count: int, members: list[str]) -> None:
    """One member leaves or, seen the other way, joins. In the mean it is far less, see the unit tests."""
    queues = queues_of(queue_count)
    before = owners(Sticky(), queues, members)
    after = owners(Sticky(), queues, members[1:])
    could_stay = [queue for queue in queues if before[queue] != members[0]]
    moved = [queue for queue in could_stay if before[queue] != after[queue]]
    assert len(moved) <= queue_count / 2
