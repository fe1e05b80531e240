"""What is made once for all tests and kept under ``build/``: jars that Maven brings, programs, archives.

A result lives under a name that is the hash of what it was made from, so a changed source is made anew and
everything else is found ready. A file lock lets parallel test workers make each of them once.
"""

import contextlib
import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from pathlib import Path

from tests.support import partners

BUILD = Path(__file__).parents[2] / "build"


def jars(pom: Path, *, of: str, under: Path, properties: Mapping[str, str] | None = None) -> Path:
    """Return the directory with the jars that a pom names, fetched first where it is not there yet.

    ``properties`` override those of the pom. Only whoever has ``locked`` the directory above may ask.
    """
    given = [f"-D{name}={value}" for name, value in (properties or {}).items()]
    name = "-".join([hash_of([pom]), *(properties or {}).values()])
    return ready(under / name, lambda directory: _fetch_jars(pom, given, of, directory))


def ready(directory: Path, make: Callable[[Path], None]) -> Path:
    """Return this directory, complete. It gets its name only when it is, so its name is its stamp."""
    if not directory.exists():
        unfinished = directory.with_name(f"{directory.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        make(unfinished)
        unfinished.rename(directory)
    return directory


def hash_of(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


@contextlib.contextmanager
def locked(directory: Path) -> Generator[None]:
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch_jars(pom: Path, properties: list[str], of: str, directory: Path) -> None:
    print(f"fetching the jars of {of} into {directory.parent}", file=sys.stderr)
    command = [str(partners.maven()), "-B", "-q", "-f", str(pom), "dependency:copy-dependencies"]
    command += ["-DincludeScope=runtime", f"-DoutputDirectory={directory}", *properties]
    fetched = subprocess.run(command, capture_output=True, text=True, check=False)
    if fetched.returncode != 0:
        said = (fetched.stdout + fetched.stderr)[-2000:]
        raise partners.PartnerMissing(f"Maven could not bring the jars of {of}: {said}")
