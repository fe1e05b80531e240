"""The store: the log, what is derived from it, and the order in which things happen to them.

    open:  lock -> finish what was interrupted -> check the files -> find the end -> index the rest
    close: index the rest -> flush -> checkpoint -> unlock

One thread uses a store. Only the disk's work, ``flush`` and ``PendingCheckpoint.finish``, may run on another,
and ``keep_diverged`` while the log is not cut or closed.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from tanist.clock import Clock, SystemClock
from tanist.errors import DiskFull, LocalProtocolError, OffsetOutOfRange
from tanist.model.epochs import EpochHistory
from tanist.model.host import pack_host
from tanist.model.message import Appended, Message
from tanist.model.offsets import QueueOffset
from tanist.protocol.record import Record
from tanist.store.checkpoints import Checkpoints, PendingCheckpoint
from tanist.store.cleaning import Cleaning
from tanist.store.commitlog import CommitLog
from tanist.store.deletions import Deletions
from tanist.store.disk import Disk
from tanist.store.dispatch import Dispatcher
from tanist.store.diverged import keep_diverged
from tanist.store.epoch_file import StoredEpochs
from tanist.store.guard import StoreGuard
from tanist.store.incarnation import Incarnation
from tanist.store.key_index import KeyIndex
from tanist.store.lookup import MAX_TIMESTAMP_MS, Lookup
from tanist.store.opening import RecoveryReport, find_end, settle
from tanist.store.queues import Queues, check_topic_name
from tanist.store.recovery import sound_in_turns, whole_to
from tanist.store.segment import Segment
from tanist.store.segments import Segments
from tanist.store.set_aside import finish_set_aside
from tanist.store.settings import FlushMode, StoreSettings
from tanist.store.time_lookup import Boundary
from tanist.store.truncation import Truncation

_log = logging.getLogger(__name__)

MAX_QUEUE_ID = 1 << 16


class MessageStore:
    """One broker's messages on disk. Use ``MessageStore.open``, and close it or use ``with``."""

    recovery: RecoveryReport
    """What opening the store found and did."""

    def __init__(
        self,
        root: Path,
        settings: StoreSettings,
        *,
        store_host: bytes,
        clock: Clock,
        disk: Disk,
        is_waited_for: bool,
    ) -> None:
        self.root = root
        self.settings = settings
        self._disk = disk
        self._clock = clock
        self._guard = StoreGuard(disk, root)
        self._incarnation = Incarnation(disk, root)
        self._epochs = StoredEpochs(disk, root)
        segments = Segments(disk, root / "commitlog", settings.mapped_file_size_commit_log)
        self.log = CommitLog(
            segments,
            store_host=store_host,
            max_body_bytes=settings.max_message_size,
            clock=clock,
            is_warming=settings.flush_disk_type is FlushMode.ASYNC_FLUSH and not is_waited_for,
        )
        self._deletions = Deletions(disk, root)
        self.on_deleted: list[Callable[[], None]] = []
        """Called when ``delete_topics`` has deleted something."""
        self.queues = Queues(disk, root / "consumequeue", settings.queue_file_bytes, self._deletions)
        self.index = KeyIndex(
            disk,
            root / "index",
            slot_count=settings.max_hash_slot_num,
            max_entries=settings.max_index_num,
            clock=clock,
        )
        self.dispatcher = Dispatcher(self.log, self.queues, self.index, delay_levels=settings.delay_levels)
        self._lookup = Lookup(self.log, self.queues, self.index, self._deletions)
        self._checkpoints = Checkpoints(disk, root, self.log)
        self._truncation = Truncation(disk, root, self._cut_all)
        self._cleaning = Cleaning(
            self.log,
            self.queues,
            self.index,
            self.dispatcher,
            deletions=self._deletions,
            epochs=self._epochs,
            clock=clock,
        )

    @classmethod
    def open(
        cls,
        root: Path,
        settings: StoreSettings | None = None,
        *,
        store_host: bytes | None = None,
        clock: Clock | None = None,
        disk: Disk | None = None,
        accept_loss: bool = False,
        waits_for_confirm: bool = False,
        is_waited_for: bool = False,
    ) -> Self:
        """Open or make a store. A damaged one is refused, with the file and the way out.

        ``accept_loss`` cuts a damaged log at the damage all the same: everything behind it is lost.
        ``waits_for_confirm`` is for a replica under a controller: what is not known to be confirmed is not
        indexed before ``dispatcher.confirmed_to`` says so, for another master may have been elected without
        it.
        ``is_waited_for`` says that somebody waits for the disk with ASYNC_FLUSH too: a slave's master.
        """
        store = cls(
            root,
            settings or StoreSettings(),
            store_host=store_host or pack_host("127.0.0.1", 10911),
            clock=clock or SystemClock(),
            disk=disk or Disk(),
            is_waited_for=is_waited_for,
        )
        store._open(accept_loss=accept_loss, waits_for_confirm=waits_for_confirm)
        return store

    def _open(self, *, accept_loss: bool, waits_for_confirm: bool) -> None:
        self._disk.make_dir(self.root)
        self._guard.acquire()
        try:
            finish_set_aside(self.root, disk=self._disk)
            was_closed = self._guard.was_closed()
            self._checkpoints.load()
            if not was_closed or not self._checkpoints.is_there:
                # The last process may have been killed before it synced the names that we see.
                self._disk.sync_tree(self.root)
            self.log.segments.open()
            self._deletions.load()
            self.queues.open(was_closed=was_closed)
            self.index.open()
            self._epochs.load()
            self._incarnation.load()
            self.log.resume(self.log.segments.end)
            finished = self._truncation.resume()
            found = find_end(
                self.log,
                self.queues,
                checkpoint=self._checkpoints.saved,
                was_closed=was_closed,
                accept_loss=accept_loss,
            )
            if waits_for_confirm:
                # What is indexed was confirmed, or was shown before there was a controller.
                confirmed_to = max(found.start, self._checkpoints.saved.confirmed_to)
                # If some of it is lost, what comes in its place is not confirmed.
                self.dispatcher.confirmed_to = min(confirmed_to, found.end)
            # Not before this: a store that is refused is left as it was found.
            self._guard.mark_open()
            self.recovery = settle(
                self.log,
                self.queues,
                self.index,
                self.dispatcher,
                found,
                was_closed=was_closed,
                finished_truncation=finished,
            )
            # A master writes its epoch down before its first byte, and the crash may have taken that byte.
            self._epochs.cut(found.end + 1)
            # Likewise a deletion: what is written from now on must not be taken for deleted.
            self._deletions.cut(found.end)
            self.count_queue_offsets()
            try:
                self.checkpoint()
            except DiskFull as full:
                # Consumers need none, and upkeep tries again. Until then a crash costs a longer start.
                _log.warning("checkpoint waits for the disk reason=%s", full)
        except BaseException:
            self._let_go()
            raise
        _log.info("store opened root=%s %s", self.root, self.recovery)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    # Writing

    def append(self, message: Message) -> Appended:
        """Append one message to the log. ``dispatch`` makes it visible in its queue."""
        self._check_queue(message)
        appended = self.log.append(message)
        self.dispatcher.note((message.topic, message.queue_id), appended)
        return appended

    def append_laid(self, queue: tuple[str, int], place: Appended, records: bytes) -> bool:
        """Append what was laid out already for where it goes; see CommitLog.append_laid."""
        if not self.log.append_laid(queue, place, records):
            return False
        self.dispatcher.note(queue, place)
        return True

    def append_packed(self, batch: Message) -> Appended:
        """Append the messages that a batch has in its body, as one unit."""
        self._check_queue(batch)
        appended = self.log.append_packed(batch)
        self.dispatcher.note((batch.topic, batch.queue_id), appended)
        return appended

    def append_raw(self, log_offset: int, data: bytes | memoryview) -> int:
        """Append bytes of the master's log; the new end."""
        return self.log.append_raw(log_offset, data)

    def dispatch(self, limit: int | None = None) -> int:
        """Index what was appended; how many records. See Dispatcher.run."""
        return self.dispatcher.run(limit)

    def dispatch_some(self) -> bool:
        """Index so much that others wait only for a moment; whether there is more. See Dispatcher.step."""
        return self.dispatcher.step()

    def flush(self) -> int:
        """Make the log durable up to its end, which is returned."""
        return self.log.flush()

    def truncate_to(self, log_offset: int) -> None:
        """Cut the log and all indexes at the start of a record. What is cut never comes back."""
        self._check_between_records(log_offset)
        # Before anything is changed, because both may need space; the queues then know the next offsets.
        self.dispatcher.run(log_offset)
        self.queues.write()
        try:
            with self._checkpoints.held():
                self._truncation.cut(log_offset)
        except BaseException:
            if self._truncation.is_begun:
                # The next start finishes the cut: what would be written until then would be lost.
                self.log.refusal = f"the log could not be cut at {log_offset}; restart the broker"
            raise
        self.count_queue_offsets()
        self.checkpoint()

    def keep_diverged(self, log_offset: int, *, is_dropped: Callable[[], bool] = lambda: False) -> None:
        """Copy all messages from the start of a record on, which are about to be cut, into a folder.

        As soon as ``is_dropped`` says so nothing is kept, and NotWritable is raised.
        """
        self._check_between_records(log_offset)
        keep_diverged(
            self._disk,
            self.root,
            self.log,
            start=log_offset,
            end=self.whole_to,
            epochs=self.epochs,
            now_ms=self._clock.now_ms(),
            is_dropped=is_dropped,
        )

    @property
    def whole_to(self) -> int:
        """Where the log's last whole record ends: a master may have sent only a part of the next."""
        if self.log.ends_with_record:
            return self.log.log_end
        start = max(self.dispatcher.dispatched_to, self.log.log_start)
        return whole_to(self.log.segments, start, self.log.log_end)

    @property
    def confirmed_whole_to(self) -> int | None:
        """Where the last record ends that is confirmed as a whole; None: that is not asked.

        Replicas ack parts of records too. A record of which a part is confirmed was shown to nobody, and the
        next master may not have the rest of it.
        """
        confirmed_to = self.dispatcher.confirmed_log_end
        if confirmed_to is None:
            return None
        start = max(self.dispatcher.dispatched_to, self.log.log_start)
        return whole_to(self.log.segments, start, confirmed_to)

    def sound_in_turns(self) -> Iterator[int]:
        """Check what is not indexed yet, message by message; the last place told is the end of it.

        With others served between two turns, for there may be much that waits to be confirmed.
        """
        start = max(self.dispatcher.dispatched_to, self.log.log_start)
        return sound_in_turns(self.log.segments, start, self.log.log_end)

    @property
    def settled_to(self) -> int:
        """All before this is on disk, in the log and in the queues."""
        return self._checkpoints.saved.indexed_to or self.log.log_start

    def count_queue_offsets(self) -> None:
        """Learn which offset each queue's next message gets, as a slave must before it becomes master."""
        self.log.next_queue_offsets = self.dispatcher.next_offsets()

    def delete_topics(self, topics: Collection[str]) -> None:
        """Delete all messages that these topics have now; on return no crash brings them back.

        Their queues go on with the next offset if the topics are made again. The space comes back with
        the files of the log.
        """
        # So that the queues know all that is to go. What waits to be confirmed, they hide when it comes.
        self.dispatcher.run()
        found = {
            topic
            for (topic, queue_id), next_offset in self.log.next_queue_offsets.items()
            if topic in topics
            and ((queue := self.queues.find(topic, queue_id)) is None or queue.min_offset < next_offset)
        }
        if found:
            self._deletions.add(found, self.log.log_end)
            self.queues.hide_all(found)
            _log.info("messages deleted topics=%s log_end=%d", ",".join(sorted(found)), self.log.log_end)
            for listener in self.on_deleted:
                listener()

    @property
    def deleted_topics(self) -> Mapping[str, int]:
        """Where in the log each deleted topic was deleted; another table after every change."""
        return self._deletions.places

    def follow_deletions(self, places: Mapping[str, int]) -> None:
        """Delete what topics had before these places, as the master did, if the log has them all."""
        known = self._deletions.places
        if all(known.get(topic, 0) >= place for topic, place in places.items()):
            return
        # So that the queues know all that is to go.
        self.dispatcher.run()
        self._deletions.merge(places)
        self.queues.hide_before(places.keys(), self.log.log_start)

    def remove_expired_queues(self, topics: Collection[str]) -> int:
        """Remove the queues of these topics of which the log holds nothing any more; how many went."""
        self.dispatcher.run()
        # Of what waits to be confirmed some may be for these queues.
        waiting = {
            topic
            for (topic, queue_id), next_offset in self.dispatcher.next_offsets().items()
            if (queue := self.queues.find(topic, queue_id)) is None or queue.max_offset < next_offset
        }
        expired = self.queues.remove_expired(set(topics) - waiting, self.log.log_start)
        for key in expired:
            self.log.next_queue_offsets.pop(key, None)
        return len(expired)

    def begin_epoch(self, epoch: int) -> None:
        """Write down that a new master's reign begins at the log's end, before it writes anything."""
        self._epochs.begin(epoch, self.log.log_end)

    def follow_epoch(self, epoch: int, start: int) -> None:
        """Write down that the log from ``start`` on is of an epoch, before its bytes are appended."""
        self._epochs.begin(epoch, start)

    # Which log this is

    @property
    def epochs(self) -> EpochHistory:
        """Which master wrote from which byte on."""
        return self._epochs.history

    @property
    def incarnation(self) -> bytes:
        """The name of the log that this is or follows; NO_INCARNATION if it has none yet."""
        return self._incarnation.value

    def make_incarnation(self, fresh: bytes) -> bytes:
        """Give a master's log its name, unless it has one; the name it has then. ``fresh`` is random."""
        return self._incarnation.make(fresh)

    def adopt_incarnation(self, value: bytes) -> None:
        """Take the name of the log that a slave was accepted to follow."""
        self._incarnation.adopt(value)

    # Reading

    def records(self, topic: str, queue_id: int, queue_offset: int, max_count: int) -> list[Record]:
        """The messages of a queue from an offset on, as views of the log."""
        return self._lookup.records(topic, queue_id, queue_offset, max_count)

    def find_by_key(
        self,
        topic: str,
        key: str,
        *,
        begin_ms: int = 0,
        end_ms: int = MAX_TIMESTAMP_MS,
        max_count: int = 64,
        has_deleted: bool = False,
    ) -> list[Record]:
        """The newest messages of a topic that carry a key (or have it as unique id), newest first.

        With ``has_deleted`` also those that went with their topic, as long as the log holds them.
        """
        return self._lookup.find_by_key(
            topic, key, begin_ms=begin_ms, end_ms=end_ms, max_count=max_count, has_deleted=has_deleted
        )

    def walk_key(self, topic: str, key: str, *, begin_ms: int, end_ms: int) -> Iterator[Record | None]:
        """The same step by step, without end, and None for each message that was passed over.

        See Lookup.walk_key.
        """
        return self._lookup.walk_key(topic, key, begin_ms=begin_ms, end_ms=end_ms)

    def record_at(self, log_offset: int) -> Record | None:
        """The message that begins at an offset of the log; None if there is none (any more)."""
        return self._lookup.record_at(log_offset)

    def message_at(self, log_offset: int) -> Record | None:
        """The same for who consumes: None also for what is not confirmed yet."""
        record, confirmed_to = self._lookup.record_at(log_offset), self.dispatcher.confirmed_to
        if record is None or confirmed_to is None:
            return record
        # Of the last record a part may be confirmed.
        return record if log_offset + record.size_bytes <= confirmed_to else None

    def offset_at_time(
        self, topic: str, queue_id: int, timestamp_ms: int, boundary: Boundary = Boundary.LOWER
    ) -> QueueOffset:
        """The queue offset that belongs to a time; 0 for a queue that is not there."""
        return self._lookup.offset_at_time(topic, queue_id, timestamp_ms, boundary)

    def is_whole(self, topic: str) -> bool:
        """Whether the log has all that a topic got since it was deleted; False if it never was."""
        return self._deletions.first_kept(topic, self.log.log_start) > self.log.log_start

    def earliest_timestamp_ms(self) -> int | None:
        """When the log's first message was stored; None in an empty log."""
        record = self._lookup.record_at(self.log.log_start)
        return None if record is None else record.store_timestamp_ms

    @property
    def last_timestamp_ms(self) -> int:
        """The store time of the last record that is indexed; 0 if there never was one."""
        return self.dispatcher.last_timestamp_ms or self._checkpoints.saved.queue_timestamp_ms

    # Upkeep

    def used_ratio(self) -> float:
        """How full the disk is, from 0 to 1."""
        return self._disk.used_ratio(self.root)

    def checkpoint(self) -> None:
        """Make log and indexes durable, and write down up to where."""
        self.start_checkpoint().finish()

    def start_checkpoint(self) -> PendingCheckpoint:
        """The part of a checkpoint that needs the store's thread; the disk's part may run on another.

        Raises DiskFull if there is no room for what the indexes have in memory: a crash would lose it, so
        the last checkpoint stays the true one.
        """
        self.queues.write()
        self.index.write()
        return self._checkpoints.start(
            stamp_ms=self.last_timestamp_ms,
            index_stamp_ms=self.index.full_to_ms,
            indexed_to=self.dispatcher.dispatched_to,
            # A record must end where a checkpoint says that all is durable, else its half would look damaged.
            flushed_to=self.whole_to,
            queue_total=self.queues.total,
            confirmed_to=self.dispatcher.confirmed_log_end,
            dirty_paths=[*self.queues.take_dirty(), *self.index.take_dirty()],
        )

    def clean(self, *, is_asked: bool = False) -> int:
        """One round of retention: delete old files and keep the indexes in step; how many went."""
        gone = self.start_clean(is_asked=is_asked)
        self.log.segments.discard(gone)
        self.finish_clean(gone)
        return len(gone)

    def start_clean(self, *, is_asked: bool = False) -> list[Segment]:
        """Let old files go. The caller has them discarded, on any thread, and then calls ``finish_clean``.

        Deleting a file of a GiB takes the disk long enough for every client to notice.
        """
        return self._cleaning.start(self.settings, used_ratio=self.used_ratio(), is_asked=is_asked)

    def finish_clean(self, gone: Sequence[Segment]) -> None:
        """The files are deleted: so may be what the indexes and the epochs say of them."""
        self._cleaning.finish(gone)

    def close(self) -> None:
        """Index and flush everything and let go. What can not be finished is left for recovery."""
        if not self._guard.is_held:
            return
        try:
            self.dispatcher.run()
            self.checkpoint()
            if self.dispatcher.dispatched_to == self.log.log_end:
                self._guard.mark_closed()
        finally:
            self._let_go()

    # Inside

    def _check_queue(self, message: Message) -> None:
        """A queue is checked once, when it is new."""
        if (message.topic, message.queue_id) in self.log.next_queue_offsets:
            return
        check_topic_name(message.topic)
        if not 0 <= message.queue_id < MAX_QUEUE_ID:
            raise LocalProtocolError(
                f"queue id {message.queue_id} is not allowed; use 0 to {MAX_QUEUE_ID - 1}"
            )

    def _check_between_records(self, log_offset: int) -> None:
        if not self.log.is_record_start(log_offset) and not self._ends_record(log_offset):
            raise OffsetOutOfRange(
                "no record begins at log offset", log_offset, self.log.log_start, self.log.log_end
            )

    def _ends_record(self, log_offset: int) -> bool:
        """Whether a record that is not indexed ends here. What follows may be half of one, or damaged."""
        start = max(self.dispatcher.dispatched_to, self.log.log_start)
        return start <= log_offset and whole_to(self.log.segments, start, log_offset) == log_offset

    def _cut_all(self, log_offset: int) -> int:
        """Cut the indexes, then the log; each step can be done again."""
        self.dispatcher.rewind(log_offset)
        self.queues.cut(log_offset)
        self.index.cut(log_offset)
        for path in (*self.queues.take_dirty(), *self.index.take_dirty()):
            self._disk.sync_file(path)
        self._epochs.cut(log_offset)
        self._deletions.cut(log_offset)
        cleared = self.log.cut(log_offset)
        self._checkpoints.lower(log_offset)
        return cleared

    def _let_go(self) -> None:
        self.log.refusal = "message store has shutdown, so appendToPhyQueue is forbidden"
        self.log.close()
        self.queues.close()
        self.index.close()
        self._guard.release()
