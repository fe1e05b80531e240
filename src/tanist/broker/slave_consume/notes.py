"""What master and slave of a group with fixed roles tell each other on their replication link. Pure.

A slave says twice a second what it does and which note it heard last, and a master answers each at once. So
a master knows of a moment of its own clock at which the slave was still linked to it: when it sent the note
that the slave heard.
"""

from collections.abc import Collection, Iterator, Mapping

import msgspec

from tanist.broker.slave_consume.live_view import LiveView
from tanist.errors import RemoteProtocolError
from tanist.model.offsets import QueueOffset
from tanist.protocol.ha_link import MAX_NOTE_BYTES
from tanist.protocol.java_json import BAD_JSON

NOTE_PERIOD_S = 0.5
VIEW_PERIOD_S = 2.0
"""How often a master tells who consumes there."""
_PIECE_BYTES = MAX_NOTE_BYTES // 4
"""What the offsets of a note take at most, and again where pulls have ended. The view of who consumes comes
on top."""
_KEY_BYTES = 10
_QUEUE_BYTES = len(b'"2147483647":9223372036854775807,2147483647,')
"""What a queue takes at most, with its place among those that have gone back."""

Offsets = Mapping[str, Mapping[int, QueueOffset]]
"""By ``topic@group`` and queue."""


class SlaveNote(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """From a slave to its master."""

    seq: int
    heard: int
    """The last note of the master's that came on this link; 0 if none did."""
    address: str
    checks: int
    """How many checks in a row have to hold before this slave makes itself the reader."""
    term: int
    is_reading: bool
    round: int = 0
    """0 while the slave reads on, and else the hand-back whose final offsets these are."""
    has_offsets: bool = False
    is_last: bool = True
    """Whether all offsets have come with this piece."""
    offsets: dict[str, dict[int, QueueOffset]] = {}
    gone_back: dict[str, list[int]] = {}
    """The queues of these offsets in which groups stand before where they stood when the slave began."""
    pulled: dict[str, dict[int, int]] = {}
    """Of a hand-back: where pulls of these queues had ended, if that is beyond their offsets."""
    view: LiveView | None = None
    """Who consumed at the slave, with the last piece of a hand-back."""


class MasterNote(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """From a master to its slave."""

    seq: int
    heard: int
    """The slave's note that this answers."""
    taken: int
    """The slave's last note whose offsets, with the pieces before it, the master has taken over."""
    adopted_term: int
    adopted_round: int
    view: LiveView | None = None
    """Who consumes at the master, now and then."""


def encode_note(note: SlaveNote | MasterNote) -> bytes:
    return msgspec.json.encode(note)


def decode_slave_note(data: bytes) -> SlaveNote:
    """Raises RemoteProtocolError if it is none."""
    try:
        note = msgspec.json.decode(data, type=SlaveNote)
    except BAD_JSON as error:
        raise RemoteProtocolError(f"no note of a slave: {error}") from error
    if any(offset < 0 for queues in note.offsets.values() for offset in queues.values()):
        raise RemoteProtocolError("a note with an offset below 0")
    return note


def decode_master_note(data: bytes) -> MasterNote:
    """Raises RemoteProtocolError if it is none."""
    try:
        return msgspec.json.decode(data, type=MasterNote)
    except BAD_JSON as error:
        raise RemoteProtocolError(f"no note of a master: {error}") from error


def gone_back(offsets: Offsets, base: Offsets) -> dict[str, list[int]]:
    """The queues in which these offsets are less than those of ``base``: somebody has reset them."""
    found = {
        key: [queue_id for queue_id, offset in queues.items() if offset < base.get(key, {}).get(queue_id, 0)]
        for key, queues in offsets.items()
    }
    return {key: queue_ids for key, queue_ids in found.items() if queue_ids}


def never_less(
    offsets: Offsets, own: Offsets, gone_back: Mapping[str, Collection[int]]
) -> dict[str, dict[int, QueueOffset]]:
    """What a master makes of a slave's offsets: where they are less than its own, its own count.

    A group may have told the master, just before it went, what its slave never heard of. Only where somebody
    has reset a group at the slave, its offsets count as they are.
    """
    return {
        key: {
            queue_id: offset
            if queue_id in gone_back.get(key, ())
            else max(offset, own.get(key, {}).get(queue_id, offset))
            for queue_id, offset in queues.items()
        }
        for key, queues in offsets.items()
    }


def pieces(offsets: Offsets) -> Iterator[tuple[dict[str, dict[int, QueueOffset]], bool]]:
    """The offsets in pieces that fit a note, and whether each is the last. One at least, also of nothing."""
    piece: dict[str, dict[int, QueueOffset]] = {}
    room = _PIECE_BYTES
    for key, queues in offsets.items():
        # It stands twice where queues have gone back.
        key_bytes = 2 * len(msgspec.json.encode(key)) + _KEY_BYTES
        for queue_id, offset in queues.items():
            size = _QUEUE_BYTES if key in piece else _QUEUE_BYTES + key_bytes
            if piece and size > room:
                yield piece, False
                piece, room = {}, _PIECE_BYTES
                size = _QUEUE_BYTES + key_bytes
            piece.setdefault(key, {})[queue_id] = offset
            room -= size
    yield piece, True
