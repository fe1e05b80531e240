"""The jars of Apache RocketMQ and our Java programs beside them, made once and kept under ``build/``.

Maven brings the jars that ``pom.xml`` names, ``javac`` compiles ``java/*.java`` against them. The programs of
``java_client`` are clients only, and are compiled against the jars of each line of clients.

A program whose classes were put into an archive by a rehearsal starts with half the work (``rehearsal.py``).
"""

import contextlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support import built, partners
from tests.support.process import ProcessFailed

_HERE = Path(__file__).parent
_BUILD = (built.BUILD / "rocketmq").resolve()
_POM = _HERE / "pom.xml"
_CLIENT_POMS = {"5.3.3": _POM, "4.9.8": _HERE / "pom-client-4.9.xml"}
_OLD_BROKER_POM = _HERE / "pom-broker-4.9.xml"
_PROXY_POM = _HERE / "pom-proxy.xml"
LOGGING = _HERE / "rmq.logback.xml"
"""What partners write to a log, and where."""
_RUN_TIMEOUT_S = 120.0
_PROGRAMS = "programs.jar"
_rehearsals: list[bool] = []

CLIENT_LINES = tuple(_CLIENT_POMS)
"""The clients that there are, one release of each line."""
OLDER_CLIENTS = ("4.9.7", "5.1.4")
"""The last releases in which a broadcasting client can not keep the offset of a single queue."""
# A partner shares two cores with the tests: a plain collector and a quick start suit it.
QUICK_START = (
    *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    *("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote"),
    # A server with TLS makes an RSA key as it starts, which takes as long as the rest of its start.
    "-Dtls.server.mode=disabled",
)
FULL_SPEED = ("-Xms1g", "-Xmx1g", "-XX:+UseG1GC")
"""For benchmarks: a heap that is not the limit, and the compiler of long runs."""


@dataclass(frozen=True)
class Installation:
    """RocketMQ as it stands on this machine."""

    java: Path
    jars: Path
    programs: Path

    def command(
        self,
        main_class: str,
        *arguments: str,
        home: Path,
        heap: str,
        flags: Sequence[str] = QUICK_START,
    ) -> list[str]:
        """Return the command line that runs one of its programs, or ours, with files kept under ``home``."""
        return [
            str(self.java),
            f"-Xms{heap}",
            f"-Xmx{heap}",
            *flags,
            *self._archive_flags(main_class),
            "-Djava.net.preferIPv4Stack=true",
            "-Dfile.encoding=UTF-8",
            f"-Duser.home={home}",
            f"-Drmq.logback.configurationFile={LOGGING}",
            "-cp",
            os.pathsep.join(map(str, [self.programs, *sorted(self.jars.glob("*.jar"))])),
            main_class,
            *arguments,
        ]

    def _archive_flags(self, main_class: str) -> list[str]:
        """Take the archive of this program's classes, or make it in a rehearsal.

        Java does without one that it can not use, as that of another Java.
        """
        archive = self.programs.with_name(f"{main_class}.jsa")
        # What Java has to say about archives would come between the answers of the program.
        if archive.exists():
            return ["-Xlog:disable", f"-XX:SharedArchiveFile={archive}"]
        return ["-Xlog:disable", f"-XX:ArchiveClassesAtExit={archive}"] if _rehearsals else []

    def run(self, main_class: str, *arguments: str, home: Path) -> str:
        """Run a program to its end and return what it printed."""
        home.mkdir(parents=True, exist_ok=True)
        run = subprocess.run(
            self.command(main_class, *arguments, home=home, heap="256m"),
            capture_output=True,
            encoding="utf-8",
            timeout=_RUN_TIMEOUT_S,
            check=False,
            # The operator command leaves files where it stands.
            cwd=home,
            env=environment(home),
        )
        if run.returncode != 0:
            said = run.stderr[-3000:]
            raise ProcessFailed(f"{main_class} {arguments[0]} ended with code {run.returncode}:\n{said}")
        return run.stdout


def environment(home: Path) -> dict[str, str]:
    """Return the environment for a program of RocketMQ, which wants to be told its home."""
    return {**os.environ, "ROCKETMQ_HOME": str(home)}


def install() -> Installation:
    """Return the installation, made first where it is not there yet."""
    return _install(_POM, _HERE / "java")


def install_client(line: str) -> Installation:
    """Return the same for the clients of one of ``CLIENT_LINES``, or of ``OLDER_CLIENTS``.

    The jars need not hold a server.
    """
    older = {"rocketmq.version": line} if line in OLDER_CLIENTS else None
    return _install(_CLIENT_POMS.get(line, _CLIENT_POMS["4.9.8"]), _HERE / "java_client", older)


def install_proxy() -> Installation:
    """Return the same for the proxy, beside which no program of ours runs."""
    return _install_jars(_PROXY_POM)


def install_old_broker() -> Installation:
    """Return the same for the broker of the 4.9 line, beside which no program of ours runs either."""
    return _install_jars(_OLD_BROKER_POM)


def is_fetched() -> bool:
    """Whether the jars of the server are there, so that nothing has to be downloaded."""
    return (_BUILD / built.hash_of([_POM])).exists()


def _install(pom: Path, programs: Path, properties: Mapping[str, str] | None = None) -> Installation:
    java = partners.java_tool("java")
    with built.locked(_BUILD):
        jars = _jars(pom, properties)
        sources = sorted(programs.glob("*.java"))
        programs = built.ready(
            jars.with_name(f"{jars.name}-programs-{built.hash_of(sources)}"),
            lambda directory: _compile(sources, jars, directory),
        )
    return Installation(java, jars, programs / _PROGRAMS)


@contextlib.contextmanager
def rehearsal() -> Generator[None]:
    """Have each program that ends by itself in this block leave an archive of its classes, if it has none."""
    _rehearsals.append(True)
    try:
        yield
    finally:
        _rehearsals.pop()


def _install_jars(pom: Path) -> Installation:
    java = partners.java_tool("java")
    with built.locked(_BUILD):
        jars = _jars(pom)
    return Installation(java, jars, jars)


def _jars(pom: Path, properties: Mapping[str, str] | None = None) -> Path:
    return built.jars(pom, of="Apache RocketMQ", under=_BUILD, properties=properties)


def _compile(sources: list[Path], jars: Path, directory: Path) -> None:
    print(f"compiling {len(sources)} Java programs into {directory.parent}", file=sys.stderr)
    command = [
        str(partners.java_tool("javac")),
        "--release",
        str(partners.JAVA_AT_LEAST),
        "-encoding",
        "UTF-8",
    ]
    classes = directory / "classes"
    command += ["-Werror", "-Xlint:deprecation,rawtypes,unchecked", "-cp", f"{jars}/*", "-d", str(classes)]
    subprocess.run([*command, *map(str, sources)], check=True)
    # An archive of classes is only for those that come from a jar.
    with zipfile.ZipFile(directory / _PROGRAMS, "w") as jar:
        for file in sorted(classes.rglob("*.class")):
            jar.write(file, file.relative_to(classes))
