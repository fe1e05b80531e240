"""The golden bytes: what Apache RocketMQ's own classes write, kept in ``tests/data/golden``.

``python -m tests.support.golden`` captures them again. A case whose bytes hold a clock or a process number
says ``"varies": true``; its kept bytes are left as they are, so that a second capture changes nothing.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any, cast

from tests.support.rocketmq.client import ask
from tests.support.rocketmq.jars import install

GOLDEN = Path(__file__).parents[1] / "data" / "golden"

Cases = dict[str, dict[str, Any]]
"""The cases of one file by their names."""


def load(file: str) -> Cases:
    """Return the kept cases of one file, such as ``records``."""
    return cast("Cases", json.loads((GOLDEN / f"{file}.json").read_text(encoding="utf-8")))


def capture(scratch: Path) -> dict[str, Cases]:
    """Ask the real classes for their bytes now, and return the cases by the file they belong to."""
    captured: dict[str, Cases] = {}
    for answer in ask(install(), "capture", home=scratch, directory=str(scratch / "stores")):
        captured.setdefault(answer["file"], {})[answer["name"]] = answer["case"]
    return captured


def kept_files() -> list[str]:
    """Return the names of the files there are."""
    return sorted(path.stem for path in GOLDEN.glob("*.json"))


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        captured = capture(Path(scratch))
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for file in {*kept_files()} - captured.keys():
        (GOLDEN / f"{file}.json").unlink()
    for file, cases in captured.items():
        _keep(file, cases)
        print(f"{file}: {len(cases)} cases", file=sys.stderr)


def _keep(file: str, cases: Cases) -> None:
    kept = load(file) if file in kept_files() else {}
    for name, case in cases.items():
        if case.get("varies") and name in kept:
            cases[name] = kept[name]
    text = json.dumps(cases, indent=1, ensure_ascii=False)
    (GOLDEN / f"{file}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
