from tanist.remoting.held import HeldBytes


def test_what_is_held_is_what_was_noted_last_of_each() -> None:
    held = HeldBytes[str](100)
    held.note("a", 40)
    held.note("b", 30)
    held.note("a", 60)
    assert (held.total_bytes, held.is_over) == (90, False)
    held.note("a", 0)
    held.note("nobody", 0)
    assert held.total_bytes == 30


def test_the_ones_that_have_held_for_longest_go_until_there_is_room() -> None:
    held = HeldBytes[str](100)
    sizes = {"a": 40, "b": 40, "c": 41}
    for peer, size_bytes in sizes.items():
        held.note(peer, size_bytes)
    assert held.is_over
    assert held.make_room(sizes.__getitem__) == ["a"]
    assert held.total_bytes == 81


def test_a_peer_that_got_on_comes_last_when_it_holds_something_again() -> None:
    held = HeldBytes[str](100)
    held.note("a", 60)
    held.note("b", 40)
    held.note("a", 0)
    held.note("a", 61)
    assert held.make_room({"a": 61, "b": 40}.__getitem__) == ["b"]


def test_nobody_goes_if_they_have_got_on_since_they_were_noted() -> None:
    held = HeldBytes[str](100)
    held.note("a", 60)
    held.note("b", 60)
    assert held.make_room({"a": 0, "b": 60}.__getitem__) == []
    assert held.total_bytes == 60


def test_room_is_made_for_more_than_the_next_byte() -> None:
    held = HeldBytes[int](1000)
    for peer in range(101):
        held.note(peer, 10)
    assert held.make_room(lambda _peer: 10) == list(range(11))
    assert held.total_bytes == 900
