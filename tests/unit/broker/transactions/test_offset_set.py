import random

from tanist.broker.transactions.offset_set import OffsetSet


def test_offsets_are_in_it_when_they_were_added() -> None:
    chance = random.Random(7)
    offsets = {chance.randrange(20_000) for _ in range(3_000)}
    found = OffsetSet(offsets)
    assert {offset for offset in range(20_000) if offset in found} == offsets


def test_what_is_forgotten_is_below_the_offset() -> None:
    found = OffsetSet(range(10_000))
    found.forget_below(9_000)
    assert 100 not in found
    assert all(offset in found for offset in range(9_000, 10_000))
    found.forget_below(20_000)
    assert not found


def test_a_million_offsets_take_a_bit_each() -> None:
    found = OffsetSet(range(0, 1_000_000, 2))
    assert sum(map(len, found._blocks.values())) < 130_000
