"""Deletes old files of the log, and keeps the indexes in step with what is left."""

import logging
from collections.abc import Sequence
from datetime import datetime

from tanist.clock import Clock
from tanist.store.commitlog import CommitLog
from tanist.store.deletions import Deletions
from tanist.store.dispatch import Dispatcher
from tanist.store.epoch_file import StoredEpochs
from tanist.store.key_index import KeyIndex
from tanist.store.queues import Queues
from tanist.store.retention import plan_retention
from tanist.store.segment import Segment
from tanist.store.settings import StoreSettings

_log = logging.getLogger(__name__)


class Cleaning:
    """Rounds of retention of one store: ``start``, then the files are discarded, then ``finish``."""

    def __init__(
        self,
        log: CommitLog,
        queues: Queues,
        index: KeyIndex,
        dispatcher: Dispatcher,
        *,
        deletions: Deletions,
        epochs: StoredEpochs,
        clock: Clock,
    ) -> None:
        self._log = log
        self._queues = queues
        self._index = index
        self._dispatcher = dispatcher
        self._deletions = deletions
        self._epochs = epochs
        self._clock = clock
        self._disk_refusal: str | None = None

    def start(self, settings: StoreSettings, *, used_ratio: float, is_asked: bool) -> list[Segment]:
        """Let old files go; the caller has them discarded."""
        now_ms = self._clock.now_ms()
        plan = plan_retention(
            settings,
            modified_ms=[segment.modified_ms for segment in self._log.segments],
            now_ms=now_ms,
            local_hour=datetime.fromtimestamp(now_ms / 1000).astimezone().hour,
            used_ratio=used_ratio,
            is_asked=is_asked,
        )
        self._refuse_for_disk(plan.refusal)
        # What is not durable and indexed yet is in use, however old its file is.
        settled_to = min(self._log.flushed_to, self._dispatcher.dispatched_to)
        count = min(plan.delete_count, sum(segment.end <= settled_to for segment in self._log.segments))
        gone = [self._log.take_first_segment() for _ in range(count)]
        if gone:
            self._queues.find_min(self._log.log_start)
        return gone

    def finish(self, gone: Sequence[Segment]) -> None:
        """The files are deleted: so may be what the indexes and the epochs say of them."""
        if gone:
            log_start = self._log.log_start
            self._queues.raise_min(log_start)
            self._index.raise_min(log_start)
            self._deletions.raise_start(log_start)
            self._epochs.raise_start(log_start)
            _log.info("old files deleted count=%d log_start=%d", len(gone), log_start)

    def _refuse_for_disk(self, refusal: str | None) -> None:
        """Take or lift the refusal that a full disk asks for; others stay."""
        if self._log.refusal is None or self._log.refusal == self._disk_refusal:
            self._log.refusal = refusal
        self._disk_refusal = refusal
