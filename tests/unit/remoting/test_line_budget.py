from tanist.remoting.line_budget import LineBudget


def test_a_flood_writes_a_few_lines_a_period_and_the_rest_is_counted() -> None:
    budget = LineBudget(lines_a_period=2, period_s=10)
    assert [budget.spend(0), budget.spend(1), budget.spend(2), budget.spend(9.9)] == [0, 0, None, None]
    assert [budget.spend(10), budget.spend(11), budget.spend(12)] == [2, 0, None]
    assert budget.spend(1000) == 1
