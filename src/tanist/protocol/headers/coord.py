"""The registry of a controller, as brokers reach it over its port. All of it is ours, not RocketMQ's.

``session`` is a secret: whoever knows it may act in that session.
"""

from typing import Annotated

import msgspec

from tanist.model.integers import Int32
from tanist.protocol.headers.base import Header

MAX_SESSION_CHARS = 64
MAX_PATH_CHARS = 1024

SessionText = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_SESSION_CHARS)]
PathText = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_PATH_CHARS)]


class OpenSessionRequest(Header, frozen=True, kw_only=True):
    """Begins a session that outlives the silence of its owner for this time."""

    timeout_ms: Int32 = msgspec.field(name="timeoutMillis")


class OpenSessionResponse(Header, frozen=True, kw_only=True):
    """The new session."""

    session: SessionText


class SessionRequest(Header, frozen=True, kw_only=True):
    """Keeps a session, closes it, or goes with the changes in the body."""

    session: SessionText


class PathRequest(Header, frozen=True, kw_only=True):
    """Reads a record, which comes as the body of the answer, or the names right below it."""

    session: SessionText
    path: PathText


class ReadResponse(Header, frozen=True, kw_only=True):
    """The version of the record; None if it is not there."""

    version: Int32 | None = None


class WatchRequest(Header, frozen=True, kw_only=True):
    """Begins a watch on this connection, which is told of at once, or ends it."""

    session: SessionText
    path: PathText
    is_wanted: bool = msgspec.field(name="wanted")


class ChangedRequest(Header, frozen=True, kw_only=True):
    """The controller tells that a path may have changed since it told the last time."""

    path: PathText
