import pytest

from tanist.broker.slave_consume.delivered_twice import DeliveredTwice

pytestmark = pytest.mark.behaviour("S3-69")

KEY = "Orders@billing"


def pulled(count: DeliveredTwice, start: int, end: int, *, found: int | None = None) -> dict[str, int]:
    message_count = end - start if found is None else found
    count.on_pulled("billing", "Orders", 0, start=start, end=end, message_count=message_count)
    return count.counts


def known(upto: int) -> DeliveredTwice:
    """It is known that the other broker has delivered so much."""
    count = DeliveredTwice()
    count.learn({KEY: {0: upto}, "Orders@audit": {0: 99}})
    return count


def test_what_the_broker_before_had_delivered_is_counted_once() -> None:
    count = known(20)
    count.begin()
    assert pulled(count, 8, 12) == {"billing": 4}
    # A member that joins gets the same again, which no switch is to blame for.
    assert pulled(count, 8, 12) == {"billing": 4}
    assert pulled(count, 12, 40) == {"billing": 12}
    assert pulled(count, 10, 20) == {"billing": 12}


def test_what_comes_for_the_first_time_is_not_counted() -> None:
    count = known(20)
    count.begin()
    assert pulled(count, 20, 30) == {}
    assert pulled(DeliveredTwice(), 0, 30) == {}


def test_what_a_filter_passes_over_is_not_counted() -> None:
    count = known(20)
    count.begin()
    assert pulled(count, 0, 10, found=3) == {"billing": 3}


def test_before_and_after_this_broker_is_read_nothing_counts() -> None:
    count = known(20)
    assert pulled(count, 0, 10) == {}
    count.begin()
    count.end()
    assert pulled(count, 0, 10) == {}
    count.begin()
    assert pulled(count, 0, 10) == {}


def test_while_it_is_read_it_learns_nothing_and_before_that_always_the_newest() -> None:
    count = known(20)
    count.learn({KEY: {0: 6}})
    count.begin()
    count.learn({KEY: {0: 30}})
    assert pulled(count, 0, 30) == {"billing": 6}


def test_a_whole_table_takes_the_place_of_what_was_known_and_nothing_pulled_is_nothing_known() -> None:
    for learned, is_whole in ((dict[str, dict[int, int]](), True), ({KEY: dict[int, int]()}, False)):
        count = known(20)
        count.learn(learned, is_whole=is_whole)
        count.begin()
        assert pulled(count, 0, 30) == {}
