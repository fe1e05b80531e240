"""How the tables beside the log travel on a link: what a link needs of who knows the tables."""

from collections.abc import Callable
from typing import Protocol


class TableFeed(Protocol):
    """The changes that one slave has yet to be sent: first whole tables, then what changed."""

    def take(self) -> bytes | None:
        """The next change to send, at most MAX_BODY_BYTES; None when the slave has been sent everything."""
        ...

    def on_held(self) -> None:
        """The slave has taken over what it was asked about: its replica knows up to where."""
        ...

    def close(self) -> None:
        """The link is gone."""
        ...


FeedMaker = Callable[[Callable[[], None]], TableFeed]
"""Makes the feed of one link. It calls its argument whenever there is something to take."""


class TableSink(Protocol):
    """Takes over on a slave what its master sends."""

    def begin(self) -> None:
        """A new link: what follows begins with whole tables."""
        ...

    def apply(self, change: bytes) -> int:
        """Take one change over; what the master asks to be told of then, or 0.

        Raises RemoteProtocolError if it is none.
        """
        ...
