"""Takes over on a slave what its master tells of its tables (see ``protocol/ha_tables``).

Pieces are gathered and applied as a whole, so that nobody sees half of a change. Topics and groups count
at once: they say nothing about the log. Offsets, and where topics were deleted, wait for the log
(``held_changes``). While consumers read at this broker it owns the offsets, and the master's wait for that
to be over; so do topics and groups, for whoever came to know of a group here, and not of its offsets, would
begin it anew. To save what was taken over is not done here: tasks of the broker do it now and then.
"""

import dataclasses
import logging
from collections.abc import Callable, Mapping
from typing import TypeVar

from tanist.broker.held_changes import Change, HeldChanges
from tanist.broker.queue_look import queue_bounds
from tanist.broker.resets.order_file import decode_order
from tanist.broker.state import BrokerState
from tanist.errors import DiskFull, RemoteProtocolError
from tanist.log import ToldFailures
from tanist.model.integers import INT64_MAX
from tanist.model.offsets import QueueOffset
from tanist.protocol.bodies.sync import (
    ConsumerOffsetTable,
    DelayOffsetTable,
    SubscriptionGroupTable,
    TopicConfigTable,
)
from tanist.protocol.ha_tables import (
    DelayEntry,
    DeletionEntry,
    Entry,
    GroupEntry,
    OffsetEntry,
    ResetEntry,
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
_Entries = dict[str, Entry | None]
"""The entries of a change by name, None for one that is gone."""
_WHOLE_ONLY = frozenset((TableKind.DELAYS, TableKind.DELETIONS))


class TablesSink:
    """One slave's, a ``tanist.ha.tables.TableSink``."""

    def __init__(self, state: BrokerState, owns_offsets: Callable[[], bool] = lambda: False) -> None:
        """``on_appended`` is to be called too when ``owns_offsets`` has become False."""
        self._state = state
        self._owns_offsets = owns_offsets
        self._offsets = HeldChanges[str, _Queues]()
        self._delays = HeldChanges[int, QueueOffset]()
        self._deletions = HeldChanges[str, int]()
        self._topics: TopicConfigTable | None = None
        """As the master told them on this link. What this broker added itself goes with the next change."""
        self._groups: SubscriptionGroupTable | None = None
        self._has_waiting = False
        """Whether topics or groups have come while we own the offsets."""
        self._begun: tuple[TableKind, bool] | None = None
        """The table of which pieces have come and not the last, and whether they are all of it."""
        self._entries: _Entries = {}
        self._gathered_bytes = 0
        self._known: set[TableKind] = set()
        self._is_begun = False
        self._failures = ToldFailures()

    @property
    def told_kinds(self) -> frozenset[TableKind] | None:
        """The tables that have come whole on the last link; None if there was none that brings tables."""
        return frozenset(self._known) if self._is_begun else None

    def begin(self) -> None:
        """A new link: what follows begins with whole tables, and what was not applied is told again."""
        self._known = set()
        self._is_begun = True
        self._topics = self._groups = None
        self._has_waiting = False
        self._offsets.clear()
        self._delays.clear()
        self._deletions.clear()
        self._forget_pieces()

    def apply(self, change: bytes) -> int:
        """Take one piece over; what it asks to be told of then, or 0.

        Raises RemoteProtocolError if it is none, or not the one that comes next.
        """
        piece = decode_piece(change)
        if self._begun != (None if piece.is_first else (piece.kind, piece.is_whole)):
            raise RemoteProtocolError(f"a piece of {piece.kind.name} begins or goes on out of turn")
        if not piece.is_whole and (piece.kind not in self._known or piece.kind in _WHOLE_ONLY):
            raise RemoteProtocolError(f"a part of {piece.kind.name} comes where all of it has to")
        self._gathered_bytes += len(change)
        if self._gathered_bytes > MAX_CHANGE_BYTES:
            raise RemoteProtocolError(f"a change of {piece.kind.name} has over {MAX_CHANGE_BYTES} bytes")
        self._begun = (piece.kind, piece.is_whole)
        self._gather(piece)
        if piece.is_last:
            entries = self._entries
            self._forget_pieces()
            self._take_over(piece, entries)
            self._known.add(piece.kind)
        return piece.question

    def on_appended(self) -> None:
        """The log has grown, or the offsets are the master's again: some may have waited for that."""
        if self._has_waiting and not self._owns_offsets():
            self._has_waiting = False
            self._follow_topics()
            self._follow_groups()
        log_end = self._state.store.log.log_end
        while not self._owns_offsets() and (offsets := self._offsets.take(log_end)) is not None:
            self._apply_offsets(offsets)
        while (delays := self._delays.take(log_end)) is not None:
            self._apply_delays(delays)
        while (deletions := self._deletions.take(log_end)) is not None:
            if not self._apply_deletions(deletions):
                self._deletions.put_back(deletions)
                break

    def settle_offsets(self) -> None:
        """The master is gone, and so is the log that offsets wait for: they count as far as our queues go.

        Our log is the beginning of its master's. So of a group that has come further than our queue, it is
        true that it has had all that is there.
        """
        while (offsets := self._offsets.take(INT64_MAX)) is not None:
            self._apply_offsets(dataclasses.replace(offsets, entries=self._within(offsets.entries)))

    def _within(self, entries: Mapping[str, _Queues | None]) -> dict[str, _Queues | None]:
        store = self._state.store
        return {
            key: queues
            and {
                queue: min(offset, queue_bounds(store, key.partition("@")[0], queue)[1])
                for queue, offset in queues.items()
            }
            for key, queues in entries.items()
        }

    def _forget_pieces(self) -> None:
        self._begun = None
        self._entries = {}
        self._gathered_bytes = 0

    def _gather(self, piece: TablePiece) -> None:
        """Read a piece when it comes: all of them at the end would hold up the log."""
        for entry in decode_entries(piece):
            if isinstance(entry, str):
                self._entries[entry] = None
                continue
            before = self._entries.get(entry.name)
            if isinstance(entry, OffsetEntry) and isinstance(before, OffsetEntry):
                self._entries[entry.name] = OffsetEntry(
                    entry.name, before.queues | entry.queues, before.pulled | entry.pulled
                )
            else:
                self._entries[entry.name] = entry

    def _take_over(self, last: TablePiece, entries: _Entries) -> None:
        match last.kind:
            case TableKind.TOPICS:
                self._take_topics(last, entries)
            case TableKind.GROUPS:
                self._take_groups(last, entries)
            case TableKind.OFFSETS:
                queues = {
                    name: entry.queues if isinstance(entry, OffsetEntry) else None
                    for name, entry in entries.items()
                }
                pulled = {
                    name: entry.pulled if isinstance(entry, OffsetEntry) else {}
                    for name, entry in entries.items()
                }
                self._state.delivered_twice.learn(pulled, is_whole=last.is_whole)
                self._offsets.add(_change(last, queues))
                if self._owns_offsets():
                    # Ours count in the end, which a later change brings back, and never those of before.
                    self._offsets.merge()
            case TableKind.DELAYS:
                levels = {
                    entry.level: entry.offset for entry in entries.values() if isinstance(entry, DelayEntry)
                }
                self._delays.add(_change(last, levels))
            case TableKind.DELETIONS:
                places = {
                    name: entry.log_offset
                    for name, entry in entries.items()
                    if isinstance(entry, DeletionEntry)
                }
                self._deletions.add(_change(last, places))
            case TableKind.RESETS:
                self._take_resets(last, entries)
        self.on_appended()

    def _take_resets(self, last: TablePiece, entries: _Entries) -> None:
        """Orders say nothing about the log. Those that are being watched here are better known here."""
        orders = [decode_order(entry.order) for entry in entries.values() if isinstance(entry, ResetEntry)]
        gone = [name for name, entry in entries.items() if entry is None]
        is_ours = self._owns_offsets()
        self._state.resets.follow(orders, gone, is_ours=is_ours, is_whole=last.is_whole)

    def _take_topics(self, last: TablePiece, entries: _Entries) -> None:
        before = TopicConfigTable() if last.is_whole or self._topics is None else self._topics
        topics = {name: entry if isinstance(entry, TopicEntry) else None for name, entry in entries.items()}
        configs = {name: entry and entry.config for name, entry in topics.items()}
        mappings = {name: entry and entry.mapping for name, entry in topics.items()}
        self._topics = TopicConfigTable(
            data_version=last.version,
            topics=_changed(before.topics, configs),
            mapping_data_version=self._state.topics.table.mapping_data_version,
            mappings=_changed(before.mappings or {}, mappings) or None,
        )
        self._follow_topics()

    def _take_groups(self, last: TablePiece, entries: _Entries) -> None:
        before = SubscriptionGroupTable() if last.is_whole or self._groups is None else self._groups
        groups = {name: entry if isinstance(entry, GroupEntry) else None for name, entry in entries.items()}
        configs = {name: entry and entry.config for name, entry in groups.items()}
        forbidden = {name: entry and entry.forbidden for name, entry in groups.items()}
        self._groups = SubscriptionGroupTable(
            data_version=last.version,
            groups=_changed(before.groups, configs),
            forbidden_table=_changed(before.forbidden_table, forbidden),
        )
        self._follow_groups()

    def _follow_topics(self) -> None:
        if self._topics is None or self._must_wait():
            return
        if self._state.topics.follow(self._topics):
            _log.info("topics follow the master count=%d", len(self._topics.topics))

    def _follow_groups(self) -> None:
        if self._groups is None or self._must_wait():
            return
        if self._state.groups.follow(self._groups):
            _log.info("groups follow the master count=%d", len(self._groups.groups))

    def _must_wait(self) -> bool:
        self._has_waiting |= self._owns_offsets()
        return self._has_waiting

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

    def _apply_deletions(self, change: Change[str, int]) -> bool:
        """Whether the disk has taken it: unlike the other tables this one is there before it counts."""
        places = {topic: place for topic, place in change.entries.items() if place is not None}
        try:
            self._state.store.follow_deletions(places)
        except (DiskFull, OSError) as error:
            if self._failures.is_news("deletions", str(error)):
                _log.warning("deletions wait for the disk count=%d reason=%s", len(places), error)
            return False
        self._failures.is_over("deletions")
        return True


def _changed(table: Mapping[str, _V], changes: Mapping[str, _V | None]) -> dict[str, _V]:
    """A new table with these changes."""
    kept = {name: value for name, value in changes.items() if value is not None}
    gone = changes.keys() - kept.keys()
    if not gone:
        return {**table, **kept}
    return {name: value for name, value in table.items() if name not in gone} | kept


def _change(last: TablePiece, entries: Mapping[_K, _V | None]) -> Change[_K, _V]:
    return Change(is_whole=last.is_whole, log_end=last.log_end, version=last.version, entries=entries)
