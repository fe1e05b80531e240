"""Make .venv and install Tanist into it with the pinned versions, unless that is done already.

    make setup                          with the first python3 that is new enough
    make setup PYTHON=/path/to/python   with this one

This file runs on any Python from 3.8 on, so that an old machine hears what is missing instead of a
syntax error. A stamp inside .venv says what was installed, and is written last: a .venv without one
was left half-made and is made again.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
STAMP = VENV / "tanist-setup.txt"

# The same bounds as requires-python in pyproject.toml, newest first.
VERSIONS = ((3, 13), (3, 12), (3, 11))

# What .venv depends on; the last holds the version that the installed package shows.
INPUTS = (
    "pyproject.toml",
    "constraints.txt",
    "scripts/setup.py",
    "scripts/build_native.py",
    "src/tanist/protocol/_native.c",
    "src/tanist/protocol/_crc.h",
    "src/tanist/protocol/_link_frames.h",
    "src/tanist/protocol/_log_walk.h",
    "src/tanist/protocol/_record_layout.h",
    "src/tanist/protocol/_send_header.h",
    "src/tanist/protocol/_send_plan.h",
    "src/tanist/protocol/_sound.h",
    "src/tanist/ha/_track.c",
    "src/tanist/broker/_engine.c",
    "src/tanist/broker/_line.h",
    "src/tanist/broker/_taking.h",
    "src/tanist/spark/_native.c",
    "src/tanist/__init__.py",
)

# What is written in C and can be done without, and how it shows that it was built.
COMPILED = {
    "the codecs": "protocol/_native*.so",
    "the engine for sends": "broker/_engine*.so",
    "the track for slaves": "ha/_track*.so",
    "Spark's decoding": "spark/_native*.so",
}

# Asked of an interpreter: its version, and which of the modules named after it can be imported.
PROBE = """
import sys
from importlib.util import find_spec
print(*sys.version_info[:2], *(int(find_spec(name) is not None) for name in sys.argv[1:]))
"""


class SetupError(Exception):
    """The text is all the user needs to see."""


class Python(NamedTuple):
    """One interpreter of this machine, and what it can do for us."""

    path: str
    version: tuple[int, int]
    has_venv: bool
    has_ensurepip: bool
    has_pip: bool

    def lacks(self) -> str | None:
        """Say why this one will not do, or nothing."""
        if self.version not in VERSIONS:
            return "is too old" if self.version < VERSIONS[-1] else "is newer than Tanist is tested with"
        if not self.has_venv or not (self.has_ensurepip or self.has_pip):
            name = "python{}.{}-venv".format(*self.version)
            return f"cannot make a virtual environment (Debian, Ubuntu: apt-get install {name})"
        return None


def main() -> int:
    """Bring .venv up to date."""
    try:
        with Path(__file__).open("r+") as lock:
            _wait_for_others(lock)
            _set_up()
    except SetupError as failure:
        print(f"setup: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("setup: stopped; `make setup` starts again", file=sys.stderr)
        return 130
    return 0


def _set_up() -> None:
    usable = _is_usable()
    stamp = _stamp()
    if usable and STAMP.read_text(encoding="utf-8") == stamp:
        print("setup: .venv is up to date", flush=True)
        return
    if usable:
        STAMP.unlink()
    else:
        _make_venv(_find_python())
    # The build backend is installed first, by its pinned version. Left to itself, pip would fetch the
    # newest one into a place of its own. PySpark comes as sources that only setuptools can build.
    pip = [str(VENV_PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "-c", "constraints.txt"]
    _run("installing the build backends", [*pip, "hatchling", "setuptools"])
    if not any(map(shutil.which, ("cc", "gcc", "clang"))):
        # pip has a C compiler as well, for the one module that is written in C and can be done without.
        subprocess.run([*pip, "ziglang"], check=False)
    _run("installing Tanist and its tools", [*pip, "--no-build-isolation", "-e", ".[dev]"])
    STAMP.write_text(stamp, encoding="utf-8")
    missing = [name for name, pattern in COMPILED.items() if not any((ROOT / "src/tanist").glob(pattern))]
    if missing:
        print(
            "setup: {} could not be built in C (a compiler or Python's headers are missing); "
            "Python does the work, slower".format(", ".join(missing)),
            flush=True,
        )
    print("setup: done; the command is .venv/bin/tanist", flush=True)


def _is_usable() -> bool:
    """Whether .venv was finished once, in this place, and its Python still runs and finds its packages."""
    if not (STAMP.is_file() and (VENV / "bin" / "tanist").is_file() and VENV_PYTHON.exists()):
        return False
    if STAMP.read_text(encoding="utf-8").splitlines()[:1] != [str(VENV)]:
        return False
    answer = _ask(str(VENV_PYTHON), "pip", "tanist")
    return answer is not None and all(answer[2:])


def _stamp() -> str:
    """Say where .venv is, because its scripts hold that path, and which inputs it was made from."""
    digest = hashlib.sha256()
    for name in INPUTS:
        digest.update((ROOT / name).read_bytes())
    return f"{VENV}\n{digest.hexdigest()}\n"


def _find_python() -> Python:
    """Take the Python that runs this file if it will do, else the newest on the PATH that does."""
    # A virtual environment may be the very one about to be replaced: take the Python it was made from.
    own = sys.executable if sys.prefix == sys.base_prefix else str(Path(sys.executable).resolve())
    others = (shutil.which("python{}.{}".format(*version)) for version in VERSIONS)
    found: list[str] = []
    for path in [own, *filter(None, others)]:
        python = _probe(path)
        if python is None:
            continue
        lack = python.lacks()
        if lack is None:
            return python
        found.append("  {} (Python {}.{}) {}".format(path, *python.version, lack))
    wanted = ", ".join("{}.{}".format(*version) for version in reversed(VERSIONS))
    raise SetupError(
        f"Tanist needs one of Python {wanted}, with its venv module. Found:\n"
        + "\n".join(found or ["  none that runs"])
        + "\nInstall one, or say where it is: make setup PYTHON=/path/to/python"
    )


def _probe(path: str) -> Python | None:
    answer = _ask(path, "venv", "ensurepip", "pip")
    if answer is None:
        return None
    major, minor, has_venv, has_ensurepip, has_pip = answer
    return Python(path, (major, minor), bool(has_venv), bool(has_ensurepip), bool(has_pip))


def _ask(path: str, *modules: str) -> list[int] | None:
    """Ask an interpreter what it is. Version switchers leave commands behind that only print an error."""
    command = [path, "-I", "-c", PROBE, *modules]
    try:
        answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return [int(word) for word in answer.stdout.split()]


def _make_venv(python: Python) -> None:
    make = [python.path, "-m", "venv", "--clear"]
    what = "making .venv with {} (Python {}.{})".format(python.path, *python.version)
    if python.has_ensurepip:
        _run(what, [*make, str(VENV)])
    else:
        # Debian ships ensurepip apart from Python. The machine's own pip can stand in for it.
        _run(what, [*make, "--without-pip", str(VENV)])
        _run("installing pip", [python.path, "-m", "pip", "--python", str(VENV_PYTHON), "install", "pip"])


def _run(what: str, command: Sequence[str]) -> None:
    print(f"setup: {what}", flush=True)
    if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
        raise SetupError(f"{what} failed; the lines above say why. `make setup` starts again.")


def _wait_for_others(lock: IO[str]) -> None:
    """Keep a second make in the same tree from clearing what the first is filling."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("setup: waiting for another setup of this tree", flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)


if __name__ == "__main__":
    sys.exit(main())
