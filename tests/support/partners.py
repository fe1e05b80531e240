"""The programs some tests need beside Tanist itself, and what to do about a missing one.

A test names its partners with ``@pytest.mark.partner("java", "maven")``. Where one is missing the test
is skipped with a reason that says how to get it. Where the environment says ``CI=true`` the same lack is
a failure: a check that quietly did not run is worse than one that failed.
"""

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest

from tanist.broker import lane
from tanist.protocol import layout

JAVA_AT_LEAST = 17


class PartnerMissing(Exception):
    """A partner is not to be had here. The text says how to get it."""


def java_tool(name: str) -> Path:
    """Find ``java`` or ``javac`` of a Java Development Kit that is new enough."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(name, path=f"{home}/bin") if home else shutil.which(name)
    if found is None:
        raise PartnerMissing(_get_java(f"{name} is missing"))
    version = _major_version(found)
    if version < JAVA_AT_LEAST:
        raise PartnerMissing(_get_java(f"{found} is of version {version}"))
    return Path(found)


def maven() -> Path:
    """Find ``mvn``, which brings the jars of the Java partners."""
    found = shutil.which("mvn")
    if found is None:
        raise PartnerMissing("Maven is missing: install maven, then run make test again")
    return Path(found)


def chromium() -> Path:
    """Find ``chromium``, in which pages of the console are looked at."""
    found = shutil.which("chromium")
    if found is None:
        raise PartnerMissing("Chromium is missing: install chromium, then run make test again")
    return Path(found)


def require(*names: str) -> None:
    """Skip the running test, or fail it where ``CI=true``, if one of these partners is missing."""
    for name in names:
        try:
            _FINDERS[name]()
        except PartnerMissing as lack:
            do_without(lack)


def do_without(lack: PartnerMissing) -> NoReturn:
    """End the running test because of a missing partner."""
    if os.environ.get("CI") == "true":
        pytest.fail(str(lack), pytrace=False)
    pytest.skip(str(lack))


def _find_java() -> None:
    java_tool("java")
    java_tool("javac")


def _find_native() -> None:
    if layout.native is None or lane.engine is None:
        raise PartnerMissing("the C part of Tanist was not built here: run make setup and see what it says")


def _find_arrow() -> None:
    for package in ("pyarrow", "numpy", "pyspark"):
        if find_spec(package) is None:
            raise PartnerMissing(f"{package} is missing: run make setup, or pip install 'tanist[spark]'")


def _find_spark() -> None:
    _find_arrow()
    java_tool("java")


def _find_systemd() -> None:
    if shutil.which("systemd-analyze") is None:
        raise PartnerMissing("systemd-analyze is missing: install systemd, then run make test again")


_FINDERS: dict[str, Callable[[], object]] = {
    "arrow": _find_arrow,
    "java": _find_java,
    "maven": maven,
    "native": _find_native,
    "spark": _find_spark,
    "chromium": chromium,
    "systemd": _find_systemd,
}


def _get_java(lack: str) -> str:
    return (
        f"{lack}, Java {JAVA_AT_LEAST} is needed: install openjdk-17-jdk-headless, then run make test again"
    )


@functools.cache
def _major_version(tool: str) -> int:
    shown = subprocess.run([tool, "-version"], capture_output=True, text=True, check=True)
    # java prints `openjdk version "17.0.15"` and javac `javac 17.0.15`; either may choose stderr.
    match = re.search(r"(\d+)[.\d]*", shown.stdout + shown.stderr)
    return int(match[1]) if match else 0
