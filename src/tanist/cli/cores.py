"""Keeps what a server has in memory, its secrets among it, from being written to a disk when it crashes."""

import ctypes

_PR_SET_DUMPABLE = 4


def forbid_cores() -> None:
    """Have the system write no core of this process, nor of those that it forks.

    A limit of 0 for cores would not do: where the system hands them to a program it counts for nothing.
    Nobody but the superuser may look into the memory of such a process either.
    """
    # It exists on Linux alone. Where the call is refused or unknown, cores are what the system makes of them.
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
