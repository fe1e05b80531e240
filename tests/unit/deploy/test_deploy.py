"""The board and the rules ask for what there is: every metric, and every label of it."""

import configparser
import re
from pathlib import Path

import pytest
import yaml

from tanist.metrics.names import ALL, Process
from tests.support.deployed import DEPLOY, board, expressions, rules
from tests.support.promql import BadQuery, read_query

_OF_PROMETHEUS = {"up": {"job", "instance"}, "process_resident_memory_bytes": {"job", "instance"}}
_TEMPLATE_LABEL = re.compile(r"\$labels\.(\w+)")


def labels_of(metric: str) -> set[str]:
    if metric in _OF_PROMETHEUS:
        return _OF_PROMETHEUS[metric]
    (name,) = [each for each in ALL if each.exported_name == metric] or [None]
    assert name is not None, f"{metric} is no metric of ours"
    processes = [name.process] if name.process is not None else list(Process)
    return {"instance", "job", *name.labels, *(label for each in processes for label in each.labels)}


@pytest.mark.parametrize("expression", sorted(set(expressions())))
def test_an_expression_asks_for_metrics_and_labels_that_there_are(expression: str) -> None:
    query = read_query(expression)
    known = [labels_of(metric) for metric in query.metrics]
    assert query.labels <= set.union(*known)


def test_every_alert_says_how_bad_it_is_and_what_to_do_with_labels_that_it_has() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    for rule in rules():
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert re.fullmatch(r"\d+[smh]", rule["for"])
        query = read_query(rule["expr"])
        kept: set[str] = set[str]().union(*(labels_of(metric) for metric in query.metrics))
        if re.search(r"\b(?:sum|max|min)\b", rule["expr"]):
            kept = query.labels
        for text in rule["annotations"].values():
            assert set(_TEMPLATE_LABEL.findall(text)) <= kept, rule["alert"]
            assert text.endswith(".") is (text == rule["annotations"]["description"])


def test_panels_have_ids_of_their_own_a_description_and_do_not_overlap() -> None:
    panels = board()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert place["x"] + place["w"] <= 24
        taken |= cells
        assert panel["type"] == "row" or panel["description"]


def test_the_sample_of_prometheus_loads_the_rules() -> None:
    sample = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
    (rule_file,) = sample["rule_files"]
    assert (DEPLOY / "prometheus" / rule_file).is_file()
    assert sample["scrape_configs"][0]["job_name"] == "tanist"


@pytest.mark.parametrize("text", ["sum(rate(a_total[5m])", "nothing_known(a)", "1 + 2"])
def test_what_makes_no_sense_is_seen(text: str) -> None:
    with pytest.raises(BadQuery):
        read_query(text)


def test_what_an_expression_asks_for_is_found() -> None:
    query = read_query('sum by (topic) (rate(in_total{job="a,b",x!~"c"}[5m])) / on (topic) other > bool 3')
    assert query.metrics == {"in_total", "other"}
    assert query.labels == {"topic", "job", "x"}


def test_a_broker_may_write_the_folder_of_its_config_and_no_other_of_the_system() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # pyright: ignore[reportAttributeAccessIssue]
    unit.read(DEPLOY.parent / "conf/systemd/tanist-broker@.service")
    service = unit["Service"]
    config = Path(service["ExecStart"].rpartition(" -c ")[2])
    assert (service["ProtectSystem"], service["ReadWritePaths"]) == ("strict", str(config.parent))
