"""A wall clock of its own for a process, which somebody may set: libfaketime's, where it is installed."""

from dataclasses import dataclass
from pathlib import Path

from tanist.chaos.means import NotPossible

_LIBRARIES = ("/usr/lib/*/faketime/libfaketimeMT.so.1", "/usr/lib*/faketime/libfaketimeMT.so.1")


@dataclass(frozen=True, slots=True)
class WallClock:
    """The clock of those processes that ``within`` runs. The steady clock stays what it is."""

    file: Path
    """Says how far it is from the true time."""

    @property
    def within(self) -> tuple[str, ...]:
        """The command that runs a program by this clock. Raises NotPossible."""
        found = [path for pattern in _LIBRARIES for path in Path("/").glob(pattern.removeprefix("/"))]
        if not found:
            raise NotPossible("clocks can not be set here: install libfaketime (Debian's package faketime)")
        self.set(0)
        return (
            "env",
            f"LD_PRELOAD={found[0]}",
            f"FAKETIME_TIMESTAMP_FILE={self.file}",
            "FAKETIME_CACHE_DURATION=1",
            "FAKETIME_DONT_FAKE_MONOTONIC=1",
            "DONT_FAKE_MONOTONIC=1",
        )

    def set(self, ahead_s: int) -> None:
        """Be so far ahead of the true time from now on."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        # It is read at any moment, so it is never seen half written.
        new = self.file.with_suffix(".new")
        new.write_text(f"{ahead_s:+d}\n", encoding="ascii")
        new.replace(self.file)
