"""What a change may look like, the same for every home of the registry. Pure."""

from collections.abc import Sequence

from tanist.coord.registry import Change, Check, Create, Put

ROOT = "/"

MAX_COMMIT_BYTES = 512 << 10
"""How much the values of one commit may hold: ZooKeeper drops who sends it 1 MiB, paths included."""


def parent_of(path: str) -> str:
    """The path right above; the root is its own."""
    return path.rpartition("/")[0] or ROOT


def ancestors(path: str) -> list[str]:
    """All paths above but the root, the topmost first."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(2, len(parts))]


def check_path(path: str) -> str:
    """The path itself if it can be one; ValueError says what is wrong with it."""
    if path != ROOT:
        if not path.startswith("/"):
            raise ValueError(f"path={path!r} is not allowed; begin it with /")
        if any(part in {"", ".", ".."} for part in path[1:].split("/")):
            raise ValueError(f"path={path!r} is not allowed; every part needs a name, and not . or ..")
        if not path.isprintable():
            raise ValueError(f"path={path!r} is not allowed; use characters that can be printed")
    return path


def check_changes(changes: Sequence[Change]) -> None:
    """ValueError if no home could make these changes, whatever it holds."""
    if not changes:
        raise ValueError("a commit needs at least one change")
    for change in changes:
        if check_path(change.path) == ROOT and (not isinstance(change, Check) or change.version is None):
            raise ValueError(f"{change} is not allowed; the root is always there and has no value")
    held = sum(len(change.value) for change in changes if isinstance(change, Create | Put))
    if held > MAX_COMMIT_BYTES:
        raise ValueError(f"the values of a commit hold {held} bytes; {MAX_COMMIT_BYTES} are allowed")
