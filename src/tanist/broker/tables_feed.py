"""What a master has yet to tell one slave of its tables: first all of them, then what changes.

A change costs the master a name in a set, for every slave. What it changed to is looked up when the link
takes it, so several changes of one entry in a row travel as one. Topics and groups are looked up in one
state of their table, whose version goes with them; offsets change all the time and are told as they are
at that moment.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from msgspec import Raw

from tanist.broker.state import BrokerState
from tanist.model.data_version import DataVersion
from tanist.protocol.ha_tables import (
    MAX_ENTRY_BYTES,
    DelayEntry,
    Entry,
    GroupEntry,
    OffsetEntry,
    TableKind,
    TablePiece,
    TopicEntry,
    batches,
    encode_entry,
    encode_piece,
)

_log = logging.getLogger(__name__)

_ENTRY_QUEUES = 4096
"""How many queues one entry of offsets has at most: a group may read a topic of very many."""


class _Look(NamedTuple):
    """A table to be told: its version, the names of all entries, and the entry of a name, if there is one."""

    version: DataVersion
    names: Callable[[], Iterable[str]]
    find: Callable[[str], list[Entry]]


@dataclass(slots=True)
class _Due:
    """What of a table is to be told."""

    is_whole: bool = False
    names: set[str] = field(default_factory=set[str])


class TablesFeed:
    """The feed of one link, a ``tanist.ha.tables.TableFeed``.

    ``wake`` is called when there is something to take after there was nothing; in the beginning there is.
    """

    def __init__(self, state: BrokerState, wake: Callable[[], None]) -> None:
        self._state = state
        self._wake = wake
        self._is_awake = True
        self._due = {kind: _Due(is_whole=True) for kind in TableKind}
        """In the order in which they are told: a table that changes all the time must not hold up others."""
        self._pieces: Iterator[bytes] = iter(())
        self._watched = [
            (state.topics.watchers, partial(self._changed, TableKind.TOPICS)),
            (state.groups.watchers, partial(self._changed, TableKind.GROUPS)),
            (state.offsets.watchers, partial(self._changed, TableKind.OFFSETS)),
        ]
        for watchers, watcher in self._watched:
            watchers.append(watcher)
        state.delays.levels.watchers.append(self._delivered)

    def take(self) -> bytes | None:
        """The next piece to send; None when the slave has been sent everything."""
        while (piece := next(self._pieces, None)) is None:
            if not self._due:
                self._is_awake = False
                return None
            kind = next(iter(self._due))
            self._pieces = self._pieces_of(kind, self._due.pop(kind))
        return piece

    def close(self) -> None:
        """Hear of no more changes."""
        for watchers, watcher in self._watched:
            watchers.remove(watcher)
        if self._watched:
            self._state.delays.levels.watchers.remove(self._delivered)
        self._watched = []

    def _changed(self, kind: TableKind, names: Iterable[str]) -> None:
        due = self._due.get(kind)
        if due is None:
            due = self._due[kind] = _Due()
        due.names.update(names)
        if not self._is_awake:
            self._is_awake = True
            self._wake()

    def _delivered(self, _level: int) -> None:
        """There are few levels, so all of them are told."""
        self._changed(TableKind.DELAYS, ())
        self._due[TableKind.DELAYS].is_whole = True

    def _pieces_of(self, kind: TableKind, due: _Due) -> Iterator[bytes]:
        look = _LOOKS[kind](self._state)
        entries = self._entries(kind, look.find, look.names() if due.is_whole else due.names, due)
        is_first = True
        for batch, is_last in batches(entries):
            yield encode_piece(
                TablePiece(
                    kind=kind,
                    is_whole=due.is_whole,
                    is_first=is_first,
                    is_last=is_last,
                    log_end=self._state.store.log.log_end,
                    version=look.version,
                    entries=batch,
                )
            )
            is_first = False

    def _entries(
        self, kind: TableKind, find: Callable[[str], list[Entry]], names: Iterable[str], due: _Due
    ) -> Iterator[Raw]:
        for name in names:
            found = find(name)
            if not found and not due.is_whole:
                yield encode_entry(name)
            for entry in found:
                encoded = encode_entry(entry)
                if len(encoded) <= MAX_ENTRY_BYTES:
                    yield encoded
                else:
                    _log.error(
                        "entry is too large for slaves table=%s name=%s size_bytes=%d",
                        *(kind.name, name, len(encoded)),
                    )


def _topics(state: BrokerState) -> _Look:
    table = state.topics.table
    mappings = table.mappings or {}

    def find(name: str) -> list[Entry]:
        config = table.topics.get(name)
        return [] if config is None else [TopicEntry(config, mappings.get(name))]

    return _Look(table.data_version, lambda: table.topics, find)


def _groups(state: BrokerState) -> _Look:
    table = state.groups.table

    def find(name: str) -> list[Entry]:
        config = table.groups.get(name)
        return [] if config is None else [GroupEntry(config, table.forbidden_table.get(name))]

    return _Look(table.data_version, lambda: table.groups, find)


def _offsets(state: BrokerState) -> _Look:
    offsets = state.offsets

    def find(key: str) -> list[Entry]:
        queues = [*offsets.queues_at(key).items()]
        return [
            OffsetEntry(key, dict(queues[start : start + _ENTRY_QUEUES]))
            for start in range(0, len(queues), _ENTRY_QUEUES)
        ]

    return _Look(offsets.data_version, offsets.keys, find)


def _delays(state: BrokerState) -> _Look:
    table = state.delays.levels.table()

    def find(name: str) -> list[Entry]:
        return [DelayEntry(int(name), table.offset_table[int(name)])]

    return _Look(table.data_version, lambda: map(str, table.offset_table), find)


_LOOKS: dict[TableKind, Callable[[BrokerState], _Look]] = {
    TableKind.TOPICS: _topics,
    TableKind.OFFSETS: _offsets,
    TableKind.DELAYS: _delays,
    TableKind.GROUPS: _groups,
}
