"""What slow peers may cost together: frames that are not whole yet, and answers that nobody takes.

Pure. Each connection is bounded by itself, but a thousand of them at their bounds would take the memory
of all. Whoever has held something for longest goes first: a peer that gets on, however large its frames
are, holds nothing for long.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

_AFTER_SHARE = 0.9
"""Down to this share room is made: measuring every peer must not happen at each further byte."""

P = TypeVar("P")


class HeldBytes(Generic[P]):
    """How many bytes are held for which peer, those first who have held some for longest."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._by_peer: dict[P, int] = {}
        self.total_bytes = 0

    @property
    def is_over(self) -> bool:
        return self.total_bytes > self._max_bytes

    def note(self, peer: P, size_bytes: int) -> None:
        """What is held for a peer now. With 0 it is forgotten, and comes last when it holds some again."""
        if size_bytes:
            self.total_bytes += size_bytes - self._by_peer.get(peer, 0)
            self._by_peer[peer] = size_bytes
        else:
            self.total_bytes -= self._by_peer.pop(peer, 0)

    def make_room(self, measure: Callable[[P], int]) -> list[P]:
        """Take out those to give up until the rest is well within the bounds.

        ``measure`` tells what a peer holds at this moment: most may have got on since they were noted.
        """
        for peer in list(self._by_peer):
            self.note(peer, measure(peer))
        given_up: list[P] = []
        if self.is_over:
            for peer in list(self._by_peer):
                if self.total_bytes <= self._max_bytes * _AFTER_SHARE:
                    break
                self.note(peer, 0)
                given_up.append(peer)
        return given_up
