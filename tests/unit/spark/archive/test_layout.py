from datetime import date
from pathlib import PurePath

from tanist.spark.archive.layout import day_of, file_name, merged_name, partition, topic_and_day

DAY = date(2026, 11, 18)


def test_a_topic_is_quoted_in_the_name_of_its_folder_and_found_again() -> None:
    assert partition("%RETRY%billing", DAY) == "topic=%25RETRY%25billing/date=2026-11-18"
    assert topic_and_day(PurePath(partition("%RETRY%a/b", DAY))) == ("%RETRY%a/b", DAY)


def test_a_folder_that_is_none_of_ours_says_nothing() -> None:
    assert topic_and_day(PurePath("topic=a/date=yesterday")) is None
    assert topic_and_day(PurePath("other/date=2026-11-18")) is None


def test_days_are_counted_from_1970() -> None:
    assert day_of(0) == date(1970, 1, 1)
    assert day_of(20_775) == DAY


def test_the_same_ranges_of_the_same_batch_have_the_same_name_in_whatever_order() -> None:
    name = file_name(12, ["a/0 0-10", "a/1 5-9"])

    assert name == file_name(12, ["a/1 5-9", "a/0 0-10"])
    assert name.startswith("0000000012-")
    assert name not in (file_name(13, ["a/0 0-10", "a/1 5-9"]), file_name(12, ["a/0 0-11", "a/1 5-9"]))


def test_a_merged_file_is_called_after_its_first_and_last_batch() -> None:
    first, second, third = (file_name(number, ["a"]) for number in (3, 4, 5))
    merged = merged_name([second, first])

    assert merged.startswith("0000000003-0000000004-")
    assert merged_name([third, merged]).startswith("0000000003-0000000005-")
