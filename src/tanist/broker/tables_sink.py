"""Takes over on a slave what its master tells of its tables (see ``protocol/ha_tables``).

Pieces are gathered and applied as a whole, so that nobody sees half of a change. Topics and groups count
at once: they say nothing about the log. Offsets wait for the log (``held_changes``). To save what was
taken over is not done here: tasks of the broker do it now and then.
"""

import logging
from collections.abc import Callable, Mapping
from typing import TypeVar

from tanist.broker.held_changes import Change, HeldChanges
from tanist.broker.state import BrokerState
from tanist.errors import RemoteProtocolError
from tanist.model.offsets import QueueOffset
from tanist.protocol.bodies.sync import (
    ConsumerOffsetTable,
    DelayOffsetTable,
    SubscriptionGroupTable,
    TopicConfigTable,
)
from tanist.protocol.ha_tables import (
    DelayEntry,
    EntryT,
    GroupEntry,
    OffsetEntry,
    TableKind,
    TablePiece,
    TopicEntry,
    decode_entries,
    decode_piece,
)

_log = logging.getLogger(__name__)

MAX_CHANGE_BYTES = 256 << 20
"""More than the largest table that a broker can have."""

_K = TypeVar("_K")
_V = TypeVar("_V")
_Queues = dict[int, QueueOffset]


class TablesSink:
    """One slave's, a ``tanist.ha.tables.TableSink``."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._offsets = HeldChanges[str, _Queues]()
        self._delays = HeldChanges[int, QueueOffset]()
        self._topics: TopicConfigTable | None = None
        """As the master told them on this link. What this broker added itself goes with the next change."""
        self._groups: SubscriptionGroupTable | None = None
        self._pieces: list[TablePiece] = []
        self._gathered_bytes = 0
        self._known: set[TableKind] = set()

    @property
    def is_fed(self) -> bool:
        """Whether this link has brought all tables, so that nobody needs to ask for them while it is up."""
        return len(self._known) == len(TableKind)

    def begin(self) -> None:
        """A new link: what follows begins with whole tables, and what was not applied is told again."""
        self._known = set()
        self._topics = self._groups = None
        self._offsets.clear()
        self._delays.clear()
        self._forget_pieces()

    def apply(self, change: bytes) -> None:
        """Take one piece over. Raises RemoteProtocolError if it is none, or not the one that comes next."""
        piece = decode_piece(change)
        if piece.is_first == bool(self._pieces):
            raise RemoteProtocolError(f"a change of {piece.kind.name} begins or goes on out of turn")
        if self._pieces and (self._pieces[0].kind, self._pieces[0].is_whole) != (piece.kind, piece.is_whole):
            raise RemoteProtocolError(f"a piece of {piece.kind.name} lies in another change")
        if not piece.is_whole and (piece.kind not in self._known or piece.kind is TableKind.DELAYS):
            raise RemoteProtocolError(f"a part of {piece.kind.name} comes where all of it has to")
        self._gathered_bytes += len(change)
        if self._gathered_bytes > MAX_CHANGE_BYTES:
            raise RemoteProtocolError(f"a change of {piece.kind.name} has over {MAX_CHANGE_BYTES} bytes")
        self._pieces.append(piece)
        if piece.is_last:
            pieces = self._pieces
            self._forget_pieces()
            self._take_over(pieces)
            self._known.add(piece.kind)

    def on_appended(self) -> None:
        """The log has grown: offsets may have waited for that."""
        log_end = self._state.store.log.log_end
        while (offsets := self._offsets.take(log_end)) is not None:
            self._apply_offsets(offsets)
        while (delays := self._delays.take(log_end)) is not None:
            self._apply_delays(delays)

    def _forget_pieces(self) -> None:
        self._pieces = []
        self._gathered_bytes = 0

    def _take_over(self, pieces: list[TablePiece]) -> None:
        match pieces[0].kind:
            case TableKind.TOPICS:
                self._take_topics(pieces)
            case TableKind.GROUPS:
                self._take_groups(pieces)
            case TableKind.OFFSETS:
                self._take_offsets(pieces)
            case TableKind.DELAYS:
                self._take_delays(pieces)

    def _take_topics(self, pieces: list[TablePiece]) -> None:
        changes = _gather(pieces, TopicEntry, lambda entry: entry.config.topic_name)
        before = TopicConfigTable() if pieces[0].is_whole or self._topics is None else self._topics
        configs = {name: entry and entry.config for name, entry in changes.items()}
        mappings = {name: entry and entry.mapping for name, entry in changes.items()}
        self._topics = TopicConfigTable(
            data_version=pieces[-1].version,
            topics=_changed(before.topics, configs),
            mapping_data_version=self._state.topics.table.mapping_data_version,
            mappings=_changed(before.mappings or {}, mappings) or None,
        )
        if self._state.topics.follow(self._topics):
            _log.info("topics follow the master count=%d told=%d", len(self._topics.topics), len(changes))

    def _take_groups(self, pieces: list[TablePiece]) -> None:
        changes = _gather(pieces, GroupEntry, lambda entry: entry.config.group_name)
        before = SubscriptionGroupTable() if pieces[0].is_whole or self._groups is None else self._groups
        configs = {name: entry and entry.config for name, entry in changes.items()}
        forbidden = {name: entry and entry.forbidden for name, entry in changes.items()}
        self._groups = SubscriptionGroupTable(
            data_version=pieces[-1].version,
            groups=_changed(before.groups, configs),
            forbidden_table=_changed(before.forbidden_table, forbidden),
        )
        if self._state.groups.follow(self._groups):
            _log.info("groups follow the master count=%d told=%d", len(self._groups.groups), len(changes))

    def _take_offsets(self, pieces: list[TablePiece]) -> None:
        changes: dict[str, _Queues | None] = {}
        for piece in pieces:
            for entry in decode_entries(piece, OffsetEntry):
                if isinstance(entry, str):
                    changes[entry] = None
                else:
                    # A key with very many queues comes in several entries.
                    changes[entry.key] = (changes.get(entry.key) or {}) | entry.queues
        self._offsets.add(_change(pieces, changes))
        self.on_appended()

    def _take_delays(self, pieces: list[TablePiece]) -> None:
        entries = _gather(pieces, DelayEntry, lambda entry: str(entry.level))
        changes = {entry.level: entry.offset for entry in entries.values() if entry is not None}
        self._delays.add(_change(pieces, changes))
        self.on_appended()

    def _apply_offsets(self, change: Change[str, _Queues]) -> None:
        if not change.is_whole:
            self._state.offsets.follow_keys(change.entries, change.version)
            return
        offsets = {key: queues for key, queues in change.entries.items() if queues}
        self._state.offsets.follow(ConsumerOffsetTable(data_version=change.version, offset_table=offsets))

    def _apply_delays(self, change: Change[int, QueueOffset]) -> None:
        """Levels are told all at once."""
        offsets = {level: offset for level, offset in change.entries.items() if offset is not None}
        self._state.delays.levels.follow(DelayOffsetTable(data_version=change.version, offset_table=offsets))


def _gather(
    pieces: list[TablePiece], entry_type: type[EntryT], name_of: Callable[[EntryT], str]
) -> dict[str, EntryT | None]:
    """The entries of a change by name, None for one that is gone."""
    changes: dict[str, EntryT | None] = {}
    for piece in pieces:
        for entry in decode_entries(piece, entry_type):
            if isinstance(entry, str):
                changes[entry] = None
            else:
                changes[name_of(entry)] = entry
    return changes


def _changed(table: Mapping[str, _V], changes: Mapping[str, _V | None]) -> dict[str, _V]:
    """A new table with these changes."""
    kept = {name: value for name, value in changes.items() if value is not None}
    gone = changes.keys() - kept.keys()
    if not gone:
        return {**table, **kept}
    return {name: value for name, value in table.items() if name not in gone} | kept


def _change(pieces: list[TablePiece], entries: Mapping[_K, _V | None]) -> Change[_K, _V]:
    last = pieces[-1]
    return Change(is_whole=last.is_whole, log_end=last.log_end, version=last.version, entries=entries)
