"""The page of evidence says what was run and found, and nothing else."""

import json
from pathlib import Path

from scripts.evidence import PAGE, PARTS, RECORDS, condense, page


def test_the_page_is_what_the_kept_records_make() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(RECORDS), "run `make evidence`"


def test_a_part_that_was_never_run_says_so(tmp_path: Path) -> None:
    told = page(tmp_path)
    assert told.count("Not run yet: ") == len(PARTS)


def test_what_a_run_left_becomes_a_record_with_its_commit(tmp_path: Path) -> None:
    found = {
        "results": [
            {
                "mode": "auto-switch",
                "fault": "kill-master",
                "seed": 7,
                "verdict": {"counts": {"acknowledged": 1000}, "anomaly_counts": {"lost": 2}},
                "brokenPromises": ["nobody could send"],
                "sends": {"longestMs": 1500},
                "reads": {"longestMs": 200},
            }
        ],
        "leftOut": ["classic-sync full-disk: no disk can be mounted here"],
        "failures": 0,
    }
    (tmp_path / "chaos.json").write_text(json.dumps(found))
    (tmp_path / "chaos.commit").write_text("0123456789ab\n")
    condense(tmp_path, tmp_path / "records")
    told = page(tmp_path / "records")
    assert "at commit 0123456789ab" in told
    assert "Anomalies: **2**; promises of progress broken: **1**" in told
    assert "| auto-switch | kill-master | 1 | 1,000 | 2 | 1.5 s | 0.2 s |" in told
    assert "- left out: classic-sync full-disk: no disk can be mounted here" in told


def test_a_broken_rule_of_the_simulator_is_told_with_its_seed(tmp_path: Path) -> None:
    found = {
        "worlds": ["reading", "lease"],
        "firstSeed": 10,
        "histories": 200,
        "switches": 3,
        "seconds": 1.5,
        "broken": [{"world": "lease", "seed": 17, "rule": "S8"}],
    }
    (tmp_path / "sim.json").write_text(json.dumps(found))
    (tmp_path / "sim.commit").write_text("0123456789ab\n")
    condense(tmp_path, tmp_path / "records")
    told = page(tmp_path / "records")
    assert "seeds 10 to 109 of each" in told
    assert "Rules broken: **1**" in told
    assert "- lease seed 17: S8" in told
