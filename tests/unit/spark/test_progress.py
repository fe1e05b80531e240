import pytest

from tanist.spark.progress import Progress, shown_bytes, shown_seconds


def test_the_time_left_is_told_at_the_rate_up_to_now() -> None:
    progress = Progress(100.0, rows=2000, bytes=4_000_000, left_rows=1000)

    assert progress.line(102.0) == "2000 messages, 4.0 MB, 2.0 MB/s; 1000 messages left, about 1 s"


@pytest.mark.parametrize(
    ("progress", "line"),
    [
        (Progress(100.0, bytes=4_000_000, left_bytes=2_000_000), "4.0 MB, 2.0 MB/s; 2.0 MB left, about 1 s"),
        (
            Progress(100.0, rows=600, done_parts=2, left_parts=3),
            "600 messages, 300/s; 3 parts left, about 3 s",
        ),
        (Progress(100.0, done_parts=1, left_parts=1), "1 parts; 1 parts left, about 2 s"),
    ],
)
def test_what_nobody_counts_is_not_told_as_nothing(progress: Progress, line: str) -> None:
    assert progress.line(102.0) == line


def test_what_can_not_be_told_is_left_out() -> None:
    assert Progress(100.0).line(100.5) == "0 messages, 0 B, 0 B/s"


@pytest.mark.parametrize(
    ("seconds", "text"), [(40, "40 s"), (720, "12 min"), (11_100, "3 h 5 min"), (187_200, "2 d 4 h")]
)
def test_times_are_said_as_one_says_them(seconds: float, text: str) -> None:
    assert shown_seconds(seconds) == text


def test_sizes_have_units() -> None:
    assert [shown_bytes(size) for size in (7, 1500, 2.5e9)] == ["7 B", "1.5 kB", "2.5 GB"]
