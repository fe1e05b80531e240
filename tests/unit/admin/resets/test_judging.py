import pytest

from tanist.admin.resets.judging import Verdict, judge


@pytest.mark.parametrize(
    ("before", "target", "now", "verdict"),
    [
        (50, 20, 20, Verdict.AT_TARGET),
        (50, 20, 30, Verdict.WENT_ON),
        (50, 20, 50, Verdict.AMBIGUOUS),
        (50, 20, 70, Verdict.AMBIGUOUS),
        (50, 20, 10, Verdict.BEHIND),
        (50, 80, 80, Verdict.AT_TARGET),
        (50, 80, 90, Verdict.WENT_ON),
        (50, 80, 50, Verdict.NOT_MOVED),
        (50, 80, 60, Verdict.BEHIND),
        (None, 80, 90, Verdict.WENT_ON),
        (50, 80, None, Verdict.UNKNOWN),
        (50, 50, 50, Verdict.AT_TARGET),
    ],
)
def test_what_an_offset_says_of_a_reset(
    before: int | None, target: int, now: int | None, verdict: Verdict
) -> None:
    assert judge(before=before, target=target, now=now) is verdict
