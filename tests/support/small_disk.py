"""A disk of a few hundred kilobytes that a test may fill.

It is a tmpfs, mounted in a mount namespace of its own: root may do that, and where the kernel lets
ordinary users have namespaces anybody. The scenario runs there in a process of its own, so a signal that
kills it (SIGBUS, if somebody stores into a page that the disk has no room for) fails one test and no more.
"""

import functools
import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.support.partners import PartnerMissing, do_without

PROJECT: Final = Path(__file__).parents[2]
TIMEOUT_S: Final = 120
_LACK = (
    "no small disk can be mounted here: run the tests as root, or let users make namespaces "
    "(sysctl kernel.unprivileged_userns_clone=1), and install util-linux for mount and unshare"
)


class SmallDisk:
    """The mounted disk, as its scenario sees it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    @property
    def free_bytes(self) -> int:
        usage = os.statvfs(self.path)
        return usage.f_bavail * usage.f_frsize

    def fill(self, *, leave_bytes: int = 0) -> None:
        """Take all space but this."""
        with self._ballast.open("wb") as file:
            taken_bytes = 0
            while (room_bytes := self.free_bytes - leave_bytes) > 0:
                # Others write meanwhile, and take what there was just now.
                with suppress(OSError):
                    os.posix_fallocate(file.fileno(), taken_bytes, room_bytes)
                    taken_bytes += room_bytes

    def free(self) -> None:
        """Give the space back."""
        self._ballast.unlink()


Scenario = Callable[[SmallDisk], None]


def run_on_small_disk(scenario: Scenario, mount_point: Path, options: str) -> None:
    """Run a module's function on a new disk; ``options`` are those of tmpfs, such as ``size=256k``."""
    enter = _enter_namespace(mount_point)
    name = f"{scenario.__module__}:{scenario.__name__}"
    command = [*enter, sys.executable, "-m", "tests.support.small_disk", name, str(mount_point), options]
    done = subprocess.run(
        command, cwd=PROJECT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, f"ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"


def _enter_namespace(mount_point: Path) -> list[str]:
    """The command that runs another where it may mount; the running test is skipped if there is none."""
    mount_point.mkdir()
    for enter in (["unshare", "-m"], ["unshare", "-rm"]):
        if _can_mount(tuple(enter)):
            return enter
    return do_without(PartnerMissing(_LACK))


@functools.cache
def _can_mount(enter: tuple[str, ...]) -> bool:
    command = [*enter, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def main(name: str, mount_point: str, options: str) -> None:
    """Mount, and run a scenario. The mount goes with the namespace, that is with this process."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", mount_point], check=True)
    module, _, function = name.partition(":")
    scenario: Scenario = getattr(importlib.import_module(module), function)
    scenario(SmallDisk(Path(mount_point)))


if __name__ == "__main__":
    main(*sys.argv[1:])
