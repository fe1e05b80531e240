"""Delta's jars."""

from pathlib import Path

from tests.support import built

_HERE = Path(__file__).parent
_BUILD = built.BUILD / "delta"


def install() -> str:
    """Delta's jars as Spark is told of them, fetched first where they are not there yet."""
    with built.locked(_BUILD):
        found = built.jars(_HERE / "pom.xml", of="Delta", under=_BUILD)
    return ",".join(sorted(str(jar) for jar in found.glob("*.jar")))
