import pytest

from tanist.spark.progress import Progress, shown_bytes, shown_seconds


def test_the_time_left_is_told_at_the_rate_up_to_now() -> None:
    progress = Progress(100.0, rows=2000, bytes=4_000_000, left_rows=1000)

    assert progress.line(102.0) == "2000 messages, 4.0 MB, 2.0 MB/s; 1000 messages left, about 1 s"


def test_what_can_not_be_told_is_left_out() -> None:
    assert Progress(100.0).line(100.5) == "0 messages, 0 B, 0 B/s"


@pytest.mark.parametrize(
    ("seconds", "text"), [(40, "40 s"), (720, "12 min"), (11_100, "3 h 5 min"), (187_200, "2 d 4 h")]
)
def test_times_are_said_as_one_says_them(seconds: float, text: str) -> None:
    assert shown_seconds(seconds) == text


def test_sizes_have_units() -> None:
    assert [shown_bytes(size) for size in (7, 1500, 2.5e9)] == ["7 B", "1.5 kB", "2.5 GB"]
