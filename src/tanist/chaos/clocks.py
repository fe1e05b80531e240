"""A wall clock of its own for a process of ours, which somebody may set.

The process reads it instead of the machine's, by a module that Python loads before all others. So one that
forks keeps it, which it does not with a library that stands before the system's calls.
"""

import os
from dataclasses import dataclass
from pathlib import Path

_MODULES = Path(__file__).parent / "own_clock"


@dataclass(frozen=True, slots=True)
class WallClock:
    """The clock of those processes that ``within`` runs. The steady clock stays what it is."""

    file: Path
    """Says how many seconds it is from the true time."""

    @property
    def within(self) -> tuple[str, ...]:
        """The command that runs a program by this clock."""
        self.set(0)
        paths = [str(_MODULES), *filter(None, [os.environ.get("PYTHONPATH")])]
        return ("env", f"PYTHONPATH={os.pathsep.join(paths)}", f"TANIST_WALL_CLOCK={self.file}")

    def set(self, ahead_s: int) -> None:
        """Be so far ahead of the true time from now on."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        # It is read at any moment, so it is never seen half written.
        new = self.file.with_suffix(".new")
        new.write_text(f"{ahead_s:+d}\n", encoding="ascii")
        new.replace(self.file)
