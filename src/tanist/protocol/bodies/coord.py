"""What a commit to the registry of a controller carries, and what it comes to. Ours, not RocketMQ's."""

from typing import Annotated, Literal

import msgspec

from tanist.model.integers import Int32
from tanist.protocol.bodies.base import Body
from tanist.protocol.headers.coord import PathText

MAX_CHANGES = 256
"""What one commit may consist of."""


class ChangeBody(Body, frozen=True, kw_only=True):
    """One change, or one condition."""

    kind: Literal["create", "put", "delete", "check"]
    path: PathText
    value: bytes = b""
    """A new value, in base64."""
    version: Int32 | None = None
    """The version that is expected; None, in a check, if the record must not be there."""
    is_ephemeral: bool = msgspec.field(name="ephemeral", default=False)


class CommitBody(Body, frozen=True, kw_only=True):
    """All that is to be made in one step."""

    changes: Annotated[list[ChangeBody], msgspec.Meta(min_length=1, max_length=MAX_CHANGES)]


class CommitOutcome(Body, frozen=True, kw_only=True):
    """The version of each record after the commit; or which change, counted from 0, met another state."""

    versions: list[Int32] = msgspec.field(default=[])
    conflict_at: Int32 | None = None


class ChildrenBody(Body, frozen=True, kw_only=True):
    """The names right below a path, sorted."""

    names: list[str] = msgspec.field(default=[])
