import pytest

from bench.figures import OURS, Figure, Goal, Series, Verdict, percentile, shown


def _figure(ours: tuple[float, ...], peer: tuple[float, ...], *, is_more_better: bool = True) -> Figure:
    return Figure("row", "what", "msg/s", (Series(OURS, ours), Series("Peer", peer)), is_more_better)


def test_a_ratio_is_the_median_of_the_ratios_of_each_round() -> None:
    # In the second round the machine was slow for both.
    figure = _figure((30.0, 3.0, 30.0), (10.0, 1.0, 15.0))
    assert figure.ratios("Peer") == (3.0, 3.0, 2.0)
    assert figure.ratio("Peer") == 3.0


@pytest.mark.parametrize(
    ("bound", "verdict"), [(1.5, Verdict.WON), (2.5, Verdict.UNCLEAR), (3.5, Verdict.LOST)]
)
def test_a_goal_is_won_or_lost_if_all_rounds_say_the_same(bound: float, verdict: Verdict) -> None:
    assert _figure((30.0, 20.0), (10.0, 10.0)).judge(Goal(bound, "Peer")) is verdict


def test_of_times_less_is_better() -> None:
    figure = _figure((1.0, 2.0), (4.0, 4.0), is_more_better=False)
    assert figure.judge(Goal(0.5, "Peer")) is Verdict.WON
    assert figure.judge(Goal(0.4, "Peer")) is Verdict.UNCLEAR
    assert figure.judge(Goal(0.2, "Peer")) is Verdict.LOST


def test_a_goal_without_a_peer_is_about_our_figure() -> None:
    assert _figure((30.0, 20.0), ()).judge(Goal(20.0)) is Verdict.WON
    assert _figure((30.0, 20.0), ()).judge(Goal(25.0)) is Verdict.UNCLEAR


def test_what_a_peer_did_not_run_has_no_verdict() -> None:
    figure = Figure("row", "what", "s", (Series(OURS, (1.0,)), Series("Peer", lack="it is missing")))
    assert figure.ratio("Peer") is None
    assert figure.judge(Goal(1.0, "Peer")) is Verdict.NOT_RUN
    assert figure.judge(Goal(1.0, "Somebody else")) is Verdict.NOT_RUN


def test_the_spread_is_the_range_as_a_share_of_the_median() -> None:
    assert Series("a", (9.0, 10.0, 12.0)).spread == pytest.approx(0.3)
    assert Series("a").spread == 0.0


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (12_345.0, "msg/s", "12.3 kmsg/s"),
        (1.5e9, "B/s", "1.50 GB/s"),
        (0.1234, "ms", "0.123 ms"),
        (250.4, "µs", "250 µs"),
        (float("inf"), "s", "never"),
        (0.0, "s", "0 s"),
    ],
)
def test_values_are_shown_with_three_digits(value: float, unit: str, text: str) -> None:
    assert shown(value, unit) == text


def test_a_percentile_is_one_of_the_samples() -> None:
    samples = [float(number) for number in range(100, 0, -1)]
    assert percentile(samples, 0.5) == 51.0
    assert percentile(samples, 0.999) == 100.0
