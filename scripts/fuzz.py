"""What `make fuzz` runs: each decoder is given bytes that atheris bends until they reach new code.

    make fuzz                                   all targets, a minute each
    make fuzz ARGS="--seconds 10 sql record"    some

What is found is left in build/fuzz/findings and ends the run with 1; what was run stands in
build/evidence/fuzz.json. atheris is fetched first; where there is none for this Python that is said, and
nothing is run: the tests bend the same bytes with Hypothesis.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "fuzz"
RESULTS = ROOT / "build" / "evidence" / "fuzz.json"
_DONE = re.compile(r"Done (\d+) runs in (\d+) second")
_MAX_BYTES = 4096
_MAX_MB = 1024


def main() -> int:
    parser = argparse.ArgumentParser(description="Bend bytes until a decoder breaks")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("targets", nargs="*")
    given = parser.parse_args()
    if given.one:
        return _fuzz(given.targets[0], given.seconds)
    if not _has_atheris():
        print("fuzz: atheris can not be installed for this Python; nothing was fuzzed", file=sys.stderr)
        return 2
    from tests.support.fuzz_targets import TARGETS  # noqa: PLC0415

    unknown = set(given.targets) - set(TARGETS)
    if unknown:
        print(
            f"fuzz: no target {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}", file=sys.stderr
        )
        return 2
    results = [_run(name, given.seconds) for name in given.targets or TARGETS]
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=2), encoding="utf-8")
    return 1 if any(result["findings"] for result in results) else 0


def _has_atheris() -> bool:
    ask = [sys.executable, "-c", "import atheris"]
    if subprocess.run(ask, check=False, capture_output=True).returncode == 0:
        return True
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "atheris>=3"], check=False)
    return subprocess.run(ask, check=False, capture_output=True).returncode == 0


def _run(name: str, seconds: int) -> dict[str, object]:
    """One target in a process of its own, which it may bring down."""
    findings = BUILD / "findings" / name
    findings.mkdir(parents=True, exist_ok=True)
    before = set(findings.iterdir())
    command = [sys.executable, __file__, "--one", "--seconds", str(seconds), name]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    said = done.stdout + done.stderr
    runs = int(match[1]) if (match := _DONE.search(said)) else 0
    found = sorted(path.name for path in set(findings.iterdir()) - before)
    if done.returncode and not found:
        found = [f"ended with {done.returncode}"]
    print(f"{name:22} {runs:>12,} runs  {len(found)} findings", flush=True)
    if found:
        print(said[-3000:], file=sys.stderr)
    return {"target": name, "runs": runs, "seconds": seconds, "findings": found}


def _fuzz(name: str, seconds: int) -> int:
    # Not everybody has it, so nothing is known of its types.
    atheris: Any = import_module("atheris")

    with atheris.instrument_imports(include=["tanist"]):
        from tests.support.fuzz_targets import CORPUS, TARGETS  # noqa: PLC0415

    grown = BUILD / "corpus" / name
    grown.mkdir(parents=True, exist_ok=True)
    kept = CORPUS / name
    arguments = [
        *(sys.argv[0], f"-max_total_time={seconds}", f"-max_len={_MAX_BYTES}"),
        *(f"-rss_limit_mb={_MAX_MB}", "-timeout=5", f"-artifact_prefix={BUILD / 'findings' / name}{os.sep}"),
        *(str(folder) for folder in (grown, kept) if folder.is_dir()),
    ]
    atheris.Setup(arguments, TARGETS[name])
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
