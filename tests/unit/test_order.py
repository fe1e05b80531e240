"""The order in which tests are given to workers."""

from tests.support.order import dealt


def test_long_tests_begin_first_shared_out_by_their_seconds() -> None:
    long = [(10.0, "b"), (30.0, "aa"), (15.0, "c"), (10.0, "d")]
    assert dealt(long, "", "", count=2) == [*"aa", *"cbd"]


def test_what_waits_is_shared_out_before_what_reckons_and_all_get_as_many() -> None:
    order = dealt([(30.0, "aaaa"), (5.0, "b")], "ww" * 2, "r" * 7, count=2)
    assert order == [*"aaaawwrr", *"bwwrrrrr"]


def test_nothing_is_left_out_however_the_numbers_fall() -> None:
    for count in range(1, 7):
        tests = [str(number) for number in range(23)]
        order = dealt([(1.0, tests[:9]), (2.0, tests[9:10])], tests[10:12], tests[12:], count=count)
        assert sorted(order) == sorted(tests)
