"""Looks whether Spark can run here: which Java, which packages, and why these."""

import importlib.metadata
import os
import sys
from collections.abc import Callable, Mapping

import msgspec

from tanist.spark import FORMATS
from tanist.spark.java import SeenJava, choose, home_of, look_for_java

PACKAGES = ("pyspark", "pyarrow", "numpy", "pandas")


class Diagnosis(msgspec.Struct, rename="camel"):
    """What was found. Spark runs here if there are no problems."""

    python: str
    java: list[SeenJava]
    """All that were looked at, in the order in which they are chosen."""
    java_home: str | None
    """What Spark will be started with."""
    packages: dict[str, str | None]
    formats: list[str]
    problems: list[str]


def diagnose(
    environ: Mapping[str, str] = os.environ, version_of: Callable[[str], str | None] | None = None
) -> Diagnosis:
    """Look at everything; nothing is started but the Javas, to ask what they are."""
    seen = list(look_for_java(environ))
    chosen = choose(seen)
    packages = {name: (version_of or _version_of)(name) for name in PACKAGES}
    problems = [
        f"{name} is not installed; `pip install 'tanist[spark]'` brings it"
        for name, version in packages.items()
        if version is None
    ]
    if chosen is None:
        problems.append(
            "there is no Java of version 17 or newer; install one, or `pip install 'tanist[spark-jre]'`"
        )
    return Diagnosis(
        python=sys.executable,
        java=seen,
        java_home=None if chosen is None else home_of(chosen, environ),
        packages=packages,
        formats=list(FORMATS),
        problems=problems,
    )


def _version_of(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
