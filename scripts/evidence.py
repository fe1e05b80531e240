"""What `make evidence` runs: writes docs/evidence.md out of the records of the last long runs.

`make sim-long`, `chaos`, `crash-images`, `fuzz`, `soak` and `idle` leave what they found in build/evidence,
with the commit they ran at. This makes a small record of each in docs/evidence, and the page out of them: a
part that nobody has run since says what was found when it was, and one that never was run says so.
"""

import json
import re
import statistics
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FOUND = ROOT / "build" / "evidence"
RECORDS = ROOT / "docs" / "evidence"
PAGE = ROOT / "docs" / "evidence.md"
_IMAGES = re.compile(r"^(\w+): .*?(\d+) images, (\d+) different ones$", re.MULTILINE)

_PAUSES = (
    "Pauses are the longest of a run from the fault on: median and worst of its runs. What a mode does not "
    "promise to go on pauses for as long as the fault lasts."
)
_ABOUT = (
    "What the last long runs found, written by `make evidence` out of `docs/evidence/*.json`. Only what was "
    "run stands here, with the commit it ran at (`-dirty`: with changes on top). All of it can be run again: "
    "[the simulator](sim.md), [breaking it on purpose](chaos.md), [the checker](check.md)."
)

Record = dict[str, Any]


def condense_sim(text: str) -> Record:
    found = json.loads(text)
    kept = ("worlds", "firstSeed", "histories", "switches", "seconds", "broken")
    return {key: found[key] for key in kept}


def condense_chaos(text: str) -> Record:
    found = json.loads(text)
    runs = [
        {
            "mode": each["mode"],
            "fault": each["fault"],
            "seed": each["seed"],
            "acknowledged": each["verdict"]["counts"]["acknowledged"],
            "anomalies": each["verdict"]["anomaly_counts"],
            "brokenPromises": len(each["brokenPromises"]),
            "noSendMs": each["sends"]["longestMs"],
            "noReadMs": each["reads"]["longestMs"],
        }
        for each in found["results"]
    ]
    return {"runs": runs, "leftOut": found["leftOut"], "failures": found["failures"]}


def condense_images(text: str) -> Record:
    # Our own test run wrote it.
    suite = next(ET.fromstring(text).iter("testsuite"))
    said = "\n".join(each.text or "" for each in suite.iter("system-out"))
    scripts = _IMAGES.findall(said)
    return {
        "scripts": len({name for name, _, _ in scripts}),
        "images": sum(int(images) for _, images, _ in scripts),
        "different": sum(int(different) for _, _, different in scripts),
        "failures": int(suite.get("failures", 0)) + int(suite.get("errors", 0)),
        "seconds": round(float(suite.get("time", 0))),
    }


def condense_fuzz(text: str) -> Record:
    results = json.loads(text)
    return {
        "targets": len(results),
        "inputs": sum(each["runs"] for each in results),
        "seconds": sum(each["seconds"] for each in results),
        "findings": [f"{each['target']}: {one}" for each in results for one in each["findings"]],
    }


def condense_rows(text: str) -> Record:
    return {"rows": json.loads(text)}


def tell_sim(record: Record) -> list[str]:
    worlds, first = record["worlds"], record["firstSeed"]
    seeds = record["histories"] // len(worlds)
    return [
        (
            f"{record['histories']:,} histories with {record['switches']:,} switches of role, in the worlds "
            f"{', '.join(worlds)}; seeds {first:,} to {first + seeds - 1:,} of each; "
            f"{record['seconds']:,.0f} s. Rules broken: **{len(record['broken'])}**."
        ),
        *(f"- {each['world']} seed {each['seed']}: {each['rule']}" for each in record["broken"]),
    ]


def tell_chaos(record: Record) -> list[str]:
    runs = record["runs"]
    anomalies = sum(count for run in runs for count in run["anomalies"].values())
    seeds = [run["seed"] for run in runs]
    faults = {run["fault"] for run in runs}
    lines = [
        (
            f"{len(runs)} runs, kinds of faults: {len(faults)}, seeds {min(seeds)} to {max(seeds)}; "
            f"{sum(run['acknowledged'] for run in runs):,} messages acknowledged. "
            f"Anomalies: **{anomalies}**; promises of progress broken: "
            f"**{sum(run['brokenPromises'] for run in runs)}**; runs that could not be ended: "
            f"**{record['failures']}**."
        ),
        "",
        _PAUSES,
        "",
        "| mode | fault | runs | acknowledged | anomalies | no send | no read |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    pairs = dict.fromkeys((run["mode"], run["fault"]) for run in runs)
    for mode, fault in sorted(pairs):
        these = [run for run in runs if (run["mode"], run["fault"]) == (mode, fault)]
        acknowledged = sum(run["acknowledged"] for run in these)
        wrong = sum(sum(run["anomalies"].values()) for run in these)
        sends, reads = (_pauses([run[key] for run in these]) for key in ("noSendMs", "noReadMs"))
        lines.append(f"| {mode} | {fault} | {len(these)} | {acknowledged:,} | {wrong} | {sends} | {reads} |")
    return [
        *lines,
        *(["", *(f"- left out: {each}" for each in record["leftOut"])] if record["leftOut"] else []),
    ]


def _pauses(pauses_ms: list[int]) -> str:
    median, worst = statistics.median(pauses_ms) / 1000, max(pauses_ms) / 1000
    return f"{worst:.1f} s" if len(pauses_ms) == 1 else f"{median:.1f} / {worst:.1f} s"


def tell_images(record: Record) -> list[str]:
    return [
        (
            f"{record['images']:,} images of crashed stores, {record['different']:,} of them different, of "
            f"{record['scripts']} scripts; each different one was opened twice. Tests that failed: "
            f"**{record['failures']}**."
        )
    ]


def tell_fuzz(record: Record) -> list[str]:
    return [
        (
            f"{record['inputs']:,} inputs to {record['targets']} decoders in {record['seconds']:,} s. "
            f"Findings: **{len(record['findings'])}**."
        ),
        *(f"- {each}" for each in record["findings"]),
    ]


def tell_rows(record: Record) -> list[str]:
    return [
        "| what | found | bound | held |",
        "| --- | --- | --- | --- |",
        *(
            f"| {row['what']} | {row['ours']} | {row['target']} | {'yes' if row['isMet'] else '**NO**'} |"
            for row in record["rows"]
        ),
    ]


Part = tuple[str, str, str, Callable[[str], Record], Callable[[Record], list[str]]]
PARTS: dict[str, Part] = {
    "sim": ("Simulated histories", "make sim-long", "sim.json", condense_sim, tell_sim),
    "chaos": ("Clusters broken on purpose", "make chaos", "chaos.json", condense_chaos, tell_chaos),
    "crash-images": (
        "Crash images",
        "make crash-images",
        "crash-images.xml",
        condense_images,
        tell_images,
    ),
    "fuzz": ("Fuzzing", "make fuzz", "fuzz.json", condense_fuzz, tell_fuzz),
    "soak": ("Hours in a small memory", "make soak", "soak.json", condense_rows, tell_rows),
    "idle": (
        "Idle connections, stalled and slow clients",
        "make idle",
        "idle.json",
        condense_rows,
        tell_rows,
    ),
}


def condense(found: Path, records: Path) -> None:
    """Make a record of each run that left something."""
    for name, (_, _, file, make, _) in PARTS.items():
        source = found / file
        if source.exists() and (text := source.read_text(encoding="utf-8")).strip():
            day = datetime.fromtimestamp(source.stat().st_mtime, UTC).date().isoformat()
            commit = (found / f"{name}.commit").read_text(encoding="ascii").strip()
            record = {"commit": commit, "day": day, **make(text)}
            records.mkdir(parents=True, exist_ok=True)
            (records / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def page(records: Path) -> str:
    """The page that these records make."""
    lines = [
        "# Evidence",
        "",
        _ABOUT,
    ]
    for name, (title, command, _, _, tell) in PARTS.items():
        lines += ["", f"## {title}", ""]
        file = records / f"{name}.json"
        if file.exists():
            record = json.loads(file.read_text(encoding="utf-8"))
            lines += [f"`{command}` at commit {record['commit']}, {record['day']}.", "", *tell(record)]
        else:
            lines.append(f"Not run yet: `{command}`.")
    return "\n".join(lines) + "\n"


def main() -> int:
    condense(FOUND, RECORDS)
    PAGE.write_text(page(RECORDS), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
