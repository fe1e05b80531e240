"""All that a broker knows of the messages that wait, and what it writes down of it.

Progress is saved after the log is flushed: else a power cut could take a delivered message and leave the
note that it was delivered.
"""

from collections.abc import Callable
from pathlib import Path
from threading import Lock

from tanist.broker.delays.levels import LevelSchedule
from tanist.broker.delays.timers import TimerSchedule
from tanist.broker.settings import BrokerSettings
from tanist.clock import Clock
from tanist.model.data_version import DataVersion
from tanist.model.timer_progress import TimerProgress
from tanist.protocol.bodies.sync import DelayOffsetTable, TimerCheckPoint
from tanist.store import MessageStore
from tanist.store.config_table import ConfigTable
from tanist.store.disk import Disk
from tanist.store.timer_checkpoint import TimerCheckpointFile
from tanist.store.timer_log import TimerLog

Finish = Callable[[], None]


class DelayTable:
    """The schedules of delay levels and timers over their files. Make one with ``DelayTable.open``."""

    def __init__(
        self,
        levels: LevelSchedule,
        timers: TimerSchedule,
        *,
        timer_file: TimerCheckpointFile,
        timer_log: TimerLog,
        timer_point: TimerCheckPoint,
        store: MessageStore,
        clock: Clock,
    ) -> None:
        self.levels = levels
        self.timers = timers
        self.timer_log = timer_log
        self.timer_point = timer_point
        """What RocketMQ is told of the timer."""
        self._timer_file = timer_file
        self._saved_timers = timers.state_count
        self._store = store
        self._clock = clock
        self._saving = Lock()
        """Of the timer's files: one thread saves now and then, another at the end of a time as master."""

    @classmethod
    def open(
        cls, disk: Disk, root: Path, settings: BrokerSettings, store: MessageStore, clock: Clock
    ) -> "DelayTable":
        timer_file = TimerCheckpointFile(disk, root)
        progress, point = timer_file.load()
        table = cls(
            LevelSchedule.open(
                ConfigTable(disk, root, DelayOffsetTable),
                delays_ms=store.settings.delay_levels,
                clock=clock,
            ),
            TimerSchedule(progress, precision_ms=settings.precision_ms),
            timer_file=timer_file,
            timer_log=TimerLog(
                disk,
                root,
                file_bytes=store.settings.mapped_file_size_timer_log,
                precision_ms=settings.precision_ms,
            ),
            timer_point=point or _point(TimerProgress(), 0, 0, DataVersion()),
            store=store,
            clock=clock,
        )
        if point is not None:
            table._point_to_queue()
        table.timer_log.clear()
        return table

    def _point_to_queue(self) -> None:
        """The timer log begins anew: until all that waits is in it, RocketMQ has to find it in the queue."""
        progress = self.timers.before
        point = _point(progress, progress.first_waiting, 0, self.timer_point.data_version)
        self._timer_file.save(progress, point)
        self.timer_point = point

    def start_save_levels(self) -> Finish | None:
        """The disk's part of saving the delay offsets, for another thread; None if nothing changed."""
        save = self.levels.start_save()
        return None if save is None else lambda: self._after_flush(save)

    def start_save_timers(self) -> Finish | None:
        """The disk's part of saving the timer's progress, for another thread; None if nothing changed."""
        state_count = self.timers.state_count
        if state_count == self._saved_timers:
            return None
        now_ms = self._clock.now_ms()
        progress = self.timers.progress(now_ms)
        if progress is None:
            return None
        version = self.timer_point.data_version.bumped(now_ms=now_ms)
        write_log = self.timer_log.start_save(progress.read_ms)
        timers = self.timers

        def save() -> None:
            with self._saving:
                if timers is not self.timers:
                    # It rests since: what the log has is of no use any more.
                    return
                write_log()
                is_whole = self.timer_log.leads_to_all(progress.read_ms)
                queue_offset = progress.taken_to if is_whole else progress.first_waiting
                point = _point(progress, queue_offset, self.timer_log.end, version)
                self._timer_file.save(progress, point)
                self.timer_point = point
                self._saved_timers = state_count

        return lambda: self._after_flush(save)

    def rest(self) -> Finish:
        """Deliver nothing from now on: whoever does it next reads the queues again. The disk's part of it.

        Offsets of levels that are not saved yet are saved when it is their time.
        """
        progress = self.timers.progress(self._clock.now_ms()) or self.timers.before
        self.levels.rest()
        self.timers = TimerSchedule(progress, precision_ms=self.timers.precision_ms)
        self._saved_timers = self.timers.state_count

        def finish() -> None:
            with self._saving:
                self._point_to_queue()
                self.timer_log.clear()

        return lambda: self._after_flush(finish)

    def close(self) -> None:
        """Save what changed."""
        try:
            for finish in (self.start_save_levels(), self.start_save_timers()):
                if finish is not None:
                    finish()
        finally:
            self.timer_log.close()

    def _after_flush(self, save: Finish) -> None:
        self._store.flush()
        save()


def _point(
    progress: TimerProgress, queue_offset: int, timer_log_end: int, version: DataVersion
) -> TimerCheckPoint:
    return TimerCheckPoint(
        last_read_time_ms=progress.read_ms,
        last_timer_log_flushed_to=timer_log_end,
        last_timer_queue_offset=queue_offset,
        master_timer_queue_offset=queue_offset,
        data_version=version,
    )
