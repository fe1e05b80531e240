"""How many files this process may have open, and which of them connections may take."""

import contextlib
import resource

_KEPT_FILES = 1024
"""Left to the store and the rest of the process: a message must not be refused for want of a file."""
_KEPT_SHARE = 4
"""Of a low limit no more than one part in so many is kept."""
_ENDLESS = 1 << 31


def raise_file_limit() -> None:
    """Have as many files as the system allows at most, as Java does. Shells often begin with 1,024."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # Some systems allow less than they say.
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def first_kept_file() -> int:
    """The number from which on a file is not for connections.

    A new file gets the lowest number that is free, so a connection's number tells how many files are
    open, whoever opened them.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        limit = _ENDLESS
    return limit - min(_KEPT_FILES, limit // _KEPT_SHARE)
