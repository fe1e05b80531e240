"""This package as one file, as Spark hands it to the workers of a cluster.

It is Python alone. What was built in C runs only where it was built, and is left out: workers then do the
same by Python, somewhat slower.
"""

import atexit
import shutil
import tempfile
import zipfile
from functools import cache
from pathlib import Path

import tanist

_PACKAGES = ("tanist", "pyspark_commitlog", "pyspark_rocketmq")


@cache
def shipped_package() -> str:
    """The file to ship: the one that we were shipped as ourselves, or one that lasts as long as we do."""
    home = Path(tanist.__file__).parents[1]
    if home.is_file():
        return str(home)
    folder = Path(tempfile.mkdtemp(prefix="tanist-"))
    # Spark serves it from there whenever a worker joins, so it goes when this process does.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return str(pack(home, folder / "tanist.zip"))


def pack(home: Path, target: Path) -> Path:
    """Put all that is Python of the packages in a folder into one file."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in _PACKAGES:
            for path in sorted((home / name).rglob("*.py")):
                archive.write(path, path.relative_to(home))
    return target
