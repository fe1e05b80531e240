import xml.etree.ElementTree as ET

from bench.figures import OURS, Figure, Goal, Series
from bench.race_page import pages
from bench.race_record import RaceRecord, RowRecord, figure_rows, told_line
from bench.table import Row

_LOST = Figure(
    "lean-sends",
    "1 connection",
    "msg/s",
    (Series(OURS, (10.0, 11.0)), Series("Peer", (20.0, 20.0)), Series("Other", lack="it is not installed")),
    is_more_better=True,
    goals=(Goal(1.3, "Peer"), Goal(1.0, "Other")),
)
_CURVE = [
    Figure("sizes", f"by size: {at}", "s", (Series(OURS, (at / 2,)),), curve="by size", at=at)
    for at in (1.0, 4.0)
]


def _record(*rows: RowRecord) -> RaceRecord:
    machine = {"cpu": "a CPU", "cores": "2"}
    return RaceRecord("then", "abc", True, False, machine, {"Python": "3.11"}, list(rows))


def _text(record: RaceRecord | None, name: str) -> str:
    (found,) = (text for path, text in pages(record).items() if path.name == name)
    return found


def test_a_lost_goal_and_a_missing_peer_stand_in_the_table() -> None:
    page = _text(_record(RowRecord("lean-sends", 3.0, 1.0, (_LOST,))), "performance.md")
    assert "Of the goals: 0 won, 1 lost, 0 unclear, 1 not run." in page
    cells = "| 1 connection | 10.5 msg/s ± 5% | Peer 20.0 msg/s ± 0%<br>Other not run: it is not installed |"
    assert f"{cells} 0.53 [0.50 to 0.55] | ≥ 1.3 of Peer<br>≥ 1 of Other | **lost**<br>not run |" in page


def test_a_row_that_did_not_run_says_why_and_is_named_beside_the_goals() -> None:
    record = _record(RowRecord("spark", 0.0, 1.0, lack="Spark is missing\nin many words"))
    page = _text(record, "performance.md")
    assert "**Not run:** Spark is missing\n\nTook" in page
    for name in ("performance.md", "README.md"):
        assert "the rows that did not run: spark." in _text(record, name)


def test_the_readme_has_the_goals_of_the_main_rows() -> None:
    assert "| lean-sends: 1 connection |" in _text(
        _record(RowRecord("lean-sends", 3.0, 1.0, (_LOST,))), "README.md"
    )


def test_without_a_race_the_pages_say_that_there_is_none() -> None:
    assert "No full race has been recorded yet" in _text(None, "performance.md")
    assert "No full race has been recorded yet" in _text(None, "README.md")


def test_plots_are_whole_documents() -> None:
    record = _record(RowRecord("lean-sends", 3.0, 1.0, (_LOST,)), RowRecord("sizes", 1.0, 1.0, tuple(_CURVE)))
    plots = {path.name: text for path, text in pages(record).items() if path.suffix == ".svg"}
    assert plots.keys() == {"ratios.svg", "by-size.svg"}
    for text in plots.values():
        assert ET.fromstring(text).tag.endswith("svg")


def test_a_figure_is_a_row_for_each_of_its_goals() -> None:
    rows = figure_rows([_LOST])
    assert [(row.target, row.is_met) for row in rows] == [("≥ 1.3 of Peer", False), ("≥ 1 of Other", None)]


def test_a_row_without_samples_keeps_its_verdict() -> None:
    line = told_line(Row("  what", "1 s", "Peer 2 s", 0.5, "≤ 1", False))
    assert (line.what, line.verdicts) == ("what", ("lost",))
