"""What a message costs a broker, counted, beside what was recorded."""

import pytest

from bench.cost import Cost, baseline_name, cheapest, engines, measure, read_baseline

_TRIES = 3


@pytest.mark.takes(10)
@pytest.mark.parametrize("engine", engines())
def test_no_hot_path_costs_a_tenth_more_than_recorded(engine: str) -> None:
    recorded = read_baseline().get(baseline_name(engine))
    if recorded is None:
        pytest.skip(f"no cost is recorded for {baseline_name(engine)}: make cost-baseline does that")
    seen = measure(engine)
    assert seen.keys() == recorded.keys()
    for _ in range(_TRIES - 1):
        if not any(cost.growth(recorded[path]) for path, cost in seen.items()):
            break
        # A chore that fell among the messages only adds.
        seen = cheapest(seen, measure(engine))
    assert not [f"{path}: {more}" for path, cost in seen.items() for more in cost.growth(recorded[path])]


def test_more_than_a_tenth_is_told() -> None:
    recorded = Cost(bytecodes=100, calls=10)
    assert Cost(bytecodes=109, calls=10.9).growth(recorded) == []
    assert Cost(bytecodes=111, calls=5).growth(recorded) == ["111.0 bytecodes a message, recorded 100.0"]
    assert Cost(bytecodes=50, calls=12).growth(recorded) == ["12.0 calls a message, recorded 10.0"]
