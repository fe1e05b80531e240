"""What a machine lets us do to it: some faults need the superuser, or a library that is not everywhere."""

import subprocess

from tanist.errors import MQError

_COMMAND_S = 10.0


class NotPossible(MQError):
    """This machine, or this user, can not have a fault; the text says what it lacks."""

    def __init__(self, what: str, error: OSError | subprocess.CalledProcessError | None = None) -> None:
        super().__init__(what if error is None else f"{what}: {_said(error)}")


def command(*words: str) -> None:
    """Run a program of the system. Raises OSError or CalledProcessError."""
    subprocess.run(words, check=True, capture_output=True, text=True, timeout=_COMMAND_S)  # noqa: S603


def _said(error: OSError | subprocess.CalledProcessError) -> str:
    return str(error.stderr).strip() if isinstance(error, subprocess.CalledProcessError) else str(error)
