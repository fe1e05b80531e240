"""Writes that are made once: what a broker has of them. All of these requests are ours."""

from tanist.model.integers import Int32
from tanist.protocol.headers.base import Header


class GetWriteProgressRequest(Header, frozen=True, kw_only=True):
    """A writer asks what there is of its query in a topic: its plans, and the marks of one partition."""

    query: str
    topic: str
    partition: Int32


class PutWritePlanRequest(Header, frozen=True, kw_only=True):
    """A writer says which queues its query writes to; the plan is in the body."""

    query: str
    topic: str


class EndWriteRequest(Header, frozen=True, kw_only=True):
    """A query is done, and nothing of it will ever be repeated."""

    query: str
    topic: str
