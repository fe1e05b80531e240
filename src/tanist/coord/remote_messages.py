"""Changes and paths as they travel between a session and the controller that keeps the registry. Pure.

Both ends hold to the same bounds: the owner of a session is told of its mistake before anything is sent, and
the controller believes nobody.
"""

from collections.abc import Sequence
from dataclasses import replace

from tanist.coord.changes import MAX_COMMIT_BYTES, ROOT, check_changes, check_path
from tanist.coord.registry import Change, Check, Create, Delete, Put
from tanist.errors import RemoteProtocolError
from tanist.protocol.bodies import decode_java_json, encode_body
from tanist.protocol.bodies.coord import MAX_CHANGES, ChangeBody, CommitBody
from tanist.protocol.headers.coord import MAX_PATH_CHARS

MIN_TIMEOUT_S, MAX_TIMEOUT_S = 0.5, 60.0
"""For how short and how long a silence a session may be asked for."""

MAX_WATCHES = 1024
"""The paths that one session may watch."""

MAX_BODY_BYTES = 4 * MAX_COMMIT_BYTES
"""More than any commit within the bounds takes: its values in base64, and its paths."""


def check_remote_path(path: str) -> str:
    """The path itself if it can be asked for; ValueError says what is wrong with it."""
    if len(path) > MAX_PATH_CHARS:
        raise ValueError(
            f"path={path[:40]!r}... has {len(path)} characters; {MAX_PATH_CHARS} are allowed over the wire"
        )
    return check_path(path)


def check_timeout(timeout_s: float) -> None:
    """ValueError if no controller grants a session with this timeout."""
    if not MIN_TIMEOUT_S <= timeout_s <= MAX_TIMEOUT_S:
        raise ValueError(
            f"timeout_s={timeout_s!r} is not allowed; use {MIN_TIMEOUT_S:g} to {MAX_TIMEOUT_S:g}"
        )


def encode_changes(changes: Sequence[Change]) -> bytes:
    """The body of a commit; ValueError if no controller would take it."""
    _check(changes)
    return encode_body(CommitBody(changes=[_to_body(change) for change in changes]))


def decode_changes(body: bytes | memoryview) -> list[Change]:
    """The changes in a body. Raises RemoteProtocolError if they make no sense, ValueError if not allowed."""
    if len(body) > MAX_BODY_BYTES:
        raise RemoteProtocolError(f"a commit takes {len(body)} bytes; {MAX_BODY_BYTES} are allowed")
    changes = [_from_body(each) for each in decode_java_json(body, CommitBody).changes]
    _check(changes)
    return changes


def path_below(root: str, path: str) -> str:
    """Where a path of a session lies in the registry, which has it below ``root``."""
    return root if path == ROOT else root + path


def changes_below(root: str, changes: Sequence[Change]) -> list[Change]:
    """The same changes of records below ``root``."""
    return [replace(change, path=path_below(root, change.path)) for change in changes]


def _check(changes: Sequence[Change]) -> None:
    if len(changes) > MAX_CHANGES:
        raise ValueError(f"a commit has {len(changes)} changes; {MAX_CHANGES} are allowed over the wire")
    for change in changes:
        check_remote_path(change.path)
    check_changes(changes)


def _to_body(change: Change) -> ChangeBody:
    match change:
        case Create(path, value, is_ephemeral):
            return ChangeBody(kind="create", path=path, value=value, is_ephemeral=is_ephemeral)
        case Put(path, value, version):
            return ChangeBody(kind="put", path=path, value=value, version=version)
        case Delete(path, version):
            return ChangeBody(kind="delete", path=path, version=version)
        case Check(path, version):
            return ChangeBody(kind="check", path=path, version=version)


def _from_body(body: ChangeBody) -> Change:
    if body.kind == "create":
        return Create(body.path, body.value, body.is_ephemeral)
    if body.kind == "check":
        return Check(body.path, body.version)
    if body.version is None:
        raise RemoteProtocolError(f"a {body.kind} of {body.path} names no version")
    if body.kind == "put":
        return Put(body.path, body.value, body.version)
    return Delete(body.path, body.version)
