"""Puts a folder into the place of another in one step, so that nobody ever sees neither or both."""

import ctypes
import errno
import os
from pathlib import Path

from tanist.spark.errors import SparkError

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_UNABLE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EXDEV)


def swap(one: Path, other: Path) -> None:
    """Exchange two folders of one file system. One clear error where it can not do that."""
    libc = ctypes.CDLL(None, use_errno=True)
    failed = libc.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    if not failed:
        return
    number = ctypes.get_errno()
    if number in _UNABLE:
        raise SparkError(
            f"{one} lies on a file system that can not exchange two folders in one step "
            f"({os.strerror(number)}), so readers would see messages twice or not at all; compact on a local "
            "disk (ext4, xfs, btrfs, tmpfs)"
        )
    raise OSError(number, os.strerror(number), str(one))
