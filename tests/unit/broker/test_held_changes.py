from tanist.broker.held_changes import Change, HeldChanges
from tanist.model.data_version import DataVersion


def _change(log_end: int, *, is_whole: bool = False, **entries: int | None) -> Change[str, int]:
    return Change(
        is_whole=is_whole, log_end=log_end, version=DataVersion(counter=log_end), entries=dict(entries)
    )


def test_a_change_is_taken_once_the_log_is_as_long_as_the_masters_was() -> None:
    held = HeldChanges[str, int]()
    held.add(_change(100, a=1))
    assert held.take(99) is None
    assert held.take(100) == _change(100, a=1)
    assert held.take(100) is None


def test_what_comes_while_one_waits_is_merged_behind_it() -> None:
    held = HeldChanges[str, int]()
    for change in (_change(10, a=1), _change(20, a=2, b=2), _change(30, b=None, c=3)):
        held.add(change)
    assert held.take(15) == _change(10, a=1)
    assert held.take(29) is None
    assert held.take(30) == _change(30, a=2, b=None, c=3)


def test_a_whole_table_takes_the_place_of_what_came_before() -> None:
    held = HeldChanges[str, int]()
    for change in (_change(10, a=1), _change(20, a=2), _change(30, is_whole=True, b=1), _change(40, c=1)):
        held.add(change)
    assert held.take(10) == _change(10, a=1)
    assert held.take(40) == _change(40, is_whole=True, b=1, c=1)


def test_what_is_gone_from_a_whole_table_is_not_remembered() -> None:
    held = HeldChanges[str, int]()
    held.add(_change(10, is_whole=True, a=1, b=1))
    held.add(_change(20, b=None, c=None))
    held.merge()
    assert held.take(20) == _change(20, is_whole=True, a=1)


def test_what_is_merged_is_taken_together_or_not_at_all() -> None:
    held = HeldChanges[str, int]()
    held.merge()
    held.add(_change(10, a=1))
    held.merge()
    held.add(_change(20, a=2, b=2))
    held.merge()
    assert held.take(19) is None
    assert held.take(20) == _change(20, a=2, b=2)
    assert held.take(20) is None


def test_what_is_put_back_comes_again_with_what_came_since() -> None:
    held = HeldChanges[str, int]()
    held.add(_change(10, a=1, b=1))
    held.add(_change(20, b=2))
    taken = held.take(10)
    assert taken is not None
    held.put_back(taken)
    assert held.take(10) is None
    assert held.take(20) == _change(20, a=1, b=2)


def test_what_is_forgotten_is_not_taken() -> None:
    held = HeldChanges[str, int]()
    held.add(_change(10, a=1))
    held.add(_change(20, a=2))
    held.clear()
    assert held.take(1000) is None
