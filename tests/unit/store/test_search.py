from collections.abc import Callable

import pytest

from tanist.store.search import first_lost


@pytest.mark.parametrize("count", range(10))
def test_the_first_lost_entry_is_found(count: int) -> None:
    assert first_lost(range(100, 109), lambda number: number >= 100 + count) == 100 + min(count, 9)


def test_of_nothing_nothing_is_lost() -> None:
    assert first_lost(range(7, 7), lambda _: True) == 7


@pytest.mark.parametrize("kept", range(8))
def test_a_torn_entry_behind_the_end_deceives_nobody(kept: int) -> None:
    def is_lost_but_for(torn: int) -> Callable[[int], bool]:
        return lambda number: number >= kept and number != torn

    assert {first_lost(range(64), is_lost_but_for(torn)) for torn in range(kept + 1, 64)} == {kept}


def test_several_torn_entries_deceive_nobody() -> None:
    torn = {16, 32, 40, 48, 56, 60}
    assert first_lost(range(64), lambda number: number >= 5 and number not in torn) == 5
