"""What a master has yet to tell one slave of its tables: first all of them, then what changes.

A change costs the master a name in a set, for every slave. What it changed to is looked up when the link
takes it, so several changes of one entry in a row travel as one. Topics and groups are looked up in one
state of their table, whose version goes with them; offsets change all the time and are told as they are
at that moment.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from msgspec import Raw

from tanist.broker.resets.order_file import encode_order
from tanist.broker.state import BrokerState
from tanist.model.data_version import DataVersion
from tanist.protocol.ha_tables import (
    MAX_ENTRY_BYTES,
    DelayEntry,
    DeletionEntry,
    Entry,
    GroupEntry,
    OffsetEntry,
    ResetEntry,
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


class _Question(NamedTuple):
    """What a slave is asked behind all that it is told before."""

    number: int


class _Due:
    """What of a table is to be told."""

    def __init__(self, kind: TableKind, tell: Callable[["_Due"], None]) -> None:
        self.kind = kind
        self.names: set[str] = set()
        self.is_whole = False
        self.is_queued = False
        self._tell = tell

    def on_changed(self, names: Iterable[str]) -> None:
        self.names.update(names)
        if not self.is_queued:
            self.is_queued = True
            self._tell(self)

    def on_all_changed(self, _level: int = 0) -> None:
        """A small table is told as a whole."""
        self.is_whole = True
        self.on_changed(())

    def take(self) -> tuple[bool, set[str]]:
        """Whether all is to be told, and else the names of what changed, which are told now."""
        is_whole, names = self.is_whole, self.names
        self.is_whole, self.is_queued, self.names = False, False, set()
        return is_whole, names


class TablesFeed:
    """The feed of one link, a ``tanist.ha.tables.TableFeed``.

    ``wake`` is called when there is something to take after there was nothing; in the beginning there is.
    """

    def __init__(self, state: BrokerState, wake: Callable[[], None]) -> None:
        self._state = state
        self._wake = wake
        self._is_awake = True
        self._queue: deque[_Due | _Question] = deque()
        """In the order in which they changed: a table that does it all the time must not hold up others."""
        self._pieces: Iterator[bytes] = iter(())
        dues = {kind: _Due(kind, self._tell) for kind in TableKind}
        self._watches: list[tuple[list[Any], Callable[..., None]]] = [
            (state.topics.watchers, dues[TableKind.TOPICS].on_changed),
            (state.groups.watchers, dues[TableKind.GROUPS].on_changed),
            (state.offsets.watchers, dues[TableKind.OFFSETS].on_changed),
            (state.delays.levels.watchers, dues[TableKind.DELAYS].on_all_changed),
            (state.store.on_deleted, dues[TableKind.DELETIONS].on_all_changed),
            (state.resets.watchers, dues[TableKind.RESETS].on_changed),
        ]
        if state.slave_consume is not None:
            self._watches.append(
                (state.pull_progress.watchers, partial(self._on_pulled, dues[TableKind.OFFSETS]))
            )
        for watchers, watcher in self._watches:
            watchers.append(watcher)
        for due in dues.values():
            due.on_all_changed()
        self._watches.append((state.table_safety.askers, self.ask))
        state.table_safety.askers.append(self.ask)
        if state.table_safety.asked:
            # Who waits for an answer waits for this link, too.
            self.ask(state.table_safety.asked)

    def take(self) -> bytes | None:
        """The next piece to send; None when the slave has been sent everything."""
        while (piece := next(self._pieces, None)) is None:
            if not self._queue:
                self._is_awake = False
                return None
            self._pieces = self._pieces_of(self._queue.popleft())
        return piece

    def ask(self, number: int) -> None:
        """Have the slave say when it has taken over what there is to be told by now."""
        self._tell(_Question(number))

    def on_held(self) -> None:
        self._state.table_safety.on_held()

    def close(self) -> None:
        """Hear of no more changes."""
        for watchers, watcher in self._watches:
            watchers.remove(watcher)
        self._watches = []

    def _on_pulled(self, offsets: _Due, group: str, topic: str) -> None:
        """A slave that is read instead counts what comes for the second time."""
        if self._state.offsets.queues(group, topic):
            offsets.on_changed((f"{topic}@{group}",))

    def _tell(self, due: _Due | _Question) -> None:
        self._queue.append(due)
        if not self._is_awake:
            self._is_awake = True
            self._wake()

    def _pieces_of(self, due: _Due | _Question) -> Iterator[bytes]:
        if isinstance(due, _Question):
            yield encode_piece(_empty(due, self._state))
            return
        # At the first piece: what changes from here on is due again.
        (is_whole, names), look, is_first = due.take(), _LOOKS[due.kind](self._state), True
        entries = _entries(due.kind, look, look.names() if is_whole else names, is_whole=is_whole)
        for batch, is_last in batches(entries):
            yield encode_piece(
                TablePiece(
                    kind=due.kind,
                    is_whole=is_whole,
                    is_first=is_first,
                    is_last=is_last,
                    log_end=self._state.store.log.log_end,
                    version=look.version,
                    entries=batch,
                )
            )
            is_first = False


def _empty(question: _Question, state: BrokerState) -> TablePiece:
    """A change of nothing, which asks."""
    return TablePiece(
        kind=TableKind.RESETS,
        is_whole=False,
        is_first=True,
        is_last=True,
        log_end=state.store.log.log_end,
        version=DataVersion(),
        question=question.number,
    )


def _entries(kind: TableKind, look: _Look, names: Iterable[str], *, is_whole: bool) -> Iterator[Raw]:
    for name in names:
        found = look.find(name)
        if not found and not is_whole:
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
    offsets, progress = state.offsets, state.pull_progress

    def find(key: str) -> list[Entry]:
        queues = [*offsets.queues_at(key).items()]
        pieces = [
            dict(queues[start : start + _ENTRY_QUEUES]) for start in range(0, len(queues), _ENTRY_QUEUES)
        ]
        topic, _, group = key.partition("@")
        entries: list[Entry] = [
            OffsetEntry(key, piece, progress.beyond(group, topic, piece)) for piece in pieces
        ]
        return entries

    return _Look(offsets.data_version, offsets.keys, find)


def _delays(state: BrokerState) -> _Look:
    table = state.delays.levels.table()

    def find(name: str) -> list[Entry]:
        return [DelayEntry(int(name), table.offset_table[int(name)])]

    return _Look(table.data_version, lambda: map(str, table.offset_table), find)


def _deletions(state: BrokerState) -> _Look:
    places = state.store.deleted_topics

    def find(topic: str) -> list[Entry]:
        return [DeletionEntry(topic, places[topic])]

    return _Look(DataVersion(), lambda: places, find)


def _resets(state: BrokerState) -> _Look:
    resets = state.resets

    def find(order_id: str) -> list[Entry]:
        order = resets.find(order_id)
        return [] if order is None else [ResetEntry(order_id, encode_order(order.saved(has_queues=False)))]

    return _Look(DataVersion(), lambda: [order.order_id for order in resets.orders()], find)


_LOOKS: dict[TableKind, Callable[[BrokerState], _Look]] = {
    TableKind.TOPICS: _topics,
    TableKind.OFFSETS: _offsets,
    TableKind.DELAYS: _delays,
    TableKind.GROUPS: _groups,
    TableKind.DELETIONS: _deletions,
    TableKind.RESETS: _resets,
}
