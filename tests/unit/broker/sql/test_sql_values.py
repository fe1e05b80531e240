"""How texts become numbers, and how numbers compare."""

import math

import pytest

from tanist.broker.sql.values import (
    Unjudgeable,
    compare_numbers,
    read_double,
    read_int32,
    read_int64,
    read_number,
    read_truth,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("+5", 5), ("-5", -5), ("007", 7), ("-2147483648", -(2**31)), ("0" * 900 + "5", 5), ("٣", 3)],
)
def test_whole_numbers_are_read_as_java_reads_them(text: str, value: int) -> None:
    assert read_int32(text) == read_int64(text) == value


@pytest.mark.parametrize(
    "text", ["", " 5", "5 ", "5.0", "5l", "1_000", "--5", "+", "five", "0x5", "1" * 5000]
)
def test_what_java_does_not_read_is_no_whole_number(text: str) -> None:
    for read in (read_int32, read_int64):
        with pytest.raises(Unjudgeable):
            read(text)


def test_whole_numbers_end_where_their_bits_do() -> None:
    assert read_int64("9223372036854775807") == 2**63 - 1
    for text, read in (
        ("2147483648", read_int32),
        ("-2147483649", read_int32),
        ("9223372036854775808", read_int64),
    ):
        with pytest.raises(Unjudgeable):
            read(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5.0),
        (" 5\n", 5.0),
        ("-.5", -0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("1E-3d", 0.001),
        ("5f", 5.0),
        ("0x1p3", 8.0),
        ("-0X.8P-1f", -0.25),
        ("0x1p9999", math.inf),
        ("-0x1p9999", -math.inf),
        ("1e999", math.inf),
        ("-Infinity", -math.inf),
    ],
)
def test_doubles_are_read_as_java_reads_them(text: str, value: float) -> None:
    assert read_double(text) == value


def test_not_a_number_is_read_too() -> None:
    assert math.isnan(read_double("NaN"))
    assert math.isnan(read_double("-NaN"))


@pytest.mark.parametrize("text", ["", ".", "inf", "nan", "1_0", "0x1", "5dd", "e5", "٣", "five", "1" * 1001])
def test_what_java_does_not_read_is_no_double(text: str) -> None:
    with pytest.raises(Unjudgeable):
        read_double(text)


def test_a_number_in_a_computation_is_whole_if_it_can_be() -> None:
    assert type(read_number("5")) is int
    assert type(read_number("5.0")) is float
    assert type(read_number("99999999999999999999")) is float


def test_only_true_is_true() -> None:
    assert [read_truth(text) for text in ("true", "TRUE", "True", "1", "yes", " true")] == [True] * 3 + [
        False
    ] * 3


def test_numbers_have_javas_order() -> None:
    ordered = [-math.inf, -5, -0.0, 0.0, 1, 1.5, 2**63 - 1, math.inf, math.nan]
    for left_place, left in enumerate(ordered):
        for right_place, right in enumerate(ordered):
            expected = (left_place > right_place) - (left_place < right_place)
            assert compare_numbers(left, right) == expected


def test_whole_numbers_are_exact_and_become_doubles_beside_one() -> None:
    assert compare_numbers(2**53 + 1, 2**53) == 1
    assert compare_numbers(2**53 + 1, float(2**53)) == 0
