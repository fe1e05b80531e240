"""The files of ``deploy``, as what they ask Prometheus."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"


def board() -> dict[str, Any]:
    return json.loads((DEPLOY / "grafana" / "tanist.json").read_text(encoding="utf-8"))


def rules() -> list[dict[str, Any]]:
    text = (DEPLOY / "prometheus" / "rules.yml").read_text(encoding="utf-8")
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


def expressions() -> Iterator[str]:
    """Every expression of the board and of the rules."""
    for panel in board()["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"]
    for rule in rules():
        yield rule["expr"]
