"""Reads again what lies on disk, and finds what was damaged there since.

Opening a store trusts what lies before its checkpoint: to read all of it would take hours. So a running store
goes over it slowly, file by file, from the one where the last round ended; a round a day, and one after each
start. Looking is done on a thread of its own. What it finds is judged by the thread that owns the store: it
knows what was cut or deleted meanwhile.

What is damaged is written down, so that the next start knows of it before anybody takes this log for whole.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tanist.clock import Clock
from tanist.protocol.queue_entry import decode_entries
from tanist.store.disk import Disk
from tanist.store.recovery import points_at
from tanist.store.scrub_note import ScrubNote, ScrubNoteFile
from tanist.store.segment import Segment
from tanist.store.soundness import BadRecord, Piece, QueueRun, Soundness
from tanist.store.store import MessageStore

_log = logging.getLogger(__name__)

MAX_PLACES = 20
"""So many damaged places are told and kept: more of them need no other remedy."""
_ROUND_S = 86_400.0
_OFF_LOOK_S = 10.0
"""How often is looked whether it was turned on again."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A place that is not as it was written."""

    log_offset: int
    """Of the record that is damaged, or whose entry in its queue is."""
    text: str
    is_in_queue: bool
    """Whether the log is sound: queues are built again from it."""

    def __str__(self) -> str:
        return self.text


class Scrub:
    """One store's. ``recall`` once, then ``run`` as long as the store is open."""

    def __init__(self, store: MessageStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._disk = Disk()
        self._note_file = ScrubNoteFile(self._disk, store.root)
        self._note = ScrubNote()
        self._damage: dict[int, Damage] = {}
        self.checked_bytes = 0
        """Of the log, since this process began."""
        self.on_found: Callable[[Damage], None] = lambda _damage: None
        """Called once with each place."""

    @property
    def damage(self) -> Sequence[Damage]:
        """What is known to be damaged of what the log has, the lowest place first."""
        log = self._store.log
        kept = sorted(offset for offset in self._damage if log.log_start <= offset < log.log_end)
        return [self._damage[offset] for offset in kept]

    def recall(self) -> None:
        """Look again at what was damaged when this store was last open."""
        self._note = self._note_file.load()
        segments = self._store.log.segments
        for log_offset in self._note.damaged[:MAX_PLACES]:
            if segments.start <= log_offset < self._store.settled_to:
                segment = segments.at(log_offset)
                end = min(segment.end, self._store.settled_to)
                self._judge(segment, log_offset, self._look(self._soundness(), segment, log_offset, end))

    async def run(self) -> None:
        """Go round and round until cancelled."""
        while True:
            next_s = self._clock.monotonic_s() + _ROUND_S
            await self.run_round()
            await asyncio.sleep(next_s - self._clock.monotonic_s())

    async def run_round(self) -> None:
        """Look at all files once."""
        files = _around([segment.start for segment in self._store.log.segments], self._note.next_file)
        with ThreadPoolExecutor(1, thread_name_prefix="scrub") as executor:
            for start, following in itertools.pairwise([*files, *files[:1]]):
                await self._check_file(start, executor)
                await self._save(following, executor)

    async def _check_file(self, start: int, executor: ThreadPoolExecutor) -> None:
        store, loop = self._store, asyncio.get_running_loop()
        segment = next((each for each in store.log.segments if each.start == start), None)
        if segment is None:
            return
        # What comes in the meantime is the next round's.
        position, end, soundness = start, min(segment.end, store.settled_to), self._soundness()
        while position < end:
            bytes_per_second = store.settings.scrub_bytes_per_second
            if not bytes_per_second:
                await asyncio.sleep(_OFF_LOOK_S)
                continue
            cut_count = store.log.cut_count
            piece = await loop.run_in_executor(executor, self._look, soundness, segment, position, end)
            if store.log.cut_count != cut_count or store.log.log_start > start:
                # What was read may be gone, and records may begin at other places now.
                return
            if self._judge(segment, position, piece):
                await self._save(self._note.next_file, executor)
            self.checked_bytes += piece.end - position
            await asyncio.sleep((piece.end - position) / bytes_per_second)
            position = piece.end

    def _soundness(self) -> Soundness:
        """For one file: what it reads ahead of the queues is theirs as they are now."""
        return Soundness(self._disk, self._store.root / "consumequeue", self._store.queues.file_bytes)

    def _look(self, soundness: Soundness, segment: Segment, log_offset: int, end: int) -> Piece:
        try:
            with self._disk.open(segment.path, read_only=True) as file:
                return soundness.look(
                    file, start=segment.start, size_bytes=segment.size_bytes, log_offset=log_offset, end=end
                )
        except OSError as error:
            return Piece(end, BadRecord(log_offset, str(error)))

    def _judge(self, segment: Segment, log_offset: int, piece: Piece) -> bool:
        """Take in what was found in a piece that begins here; whether something is new."""
        found: dict[int, Damage] = {}
        if (bad := piece.bad_record) is not None:
            place = f"{segment.path} at byte {bad.log_offset - segment.start}"
            found[bad.log_offset] = Damage(bad.log_offset, f"{place}: {bad.reason}", is_in_queue=False)
        for run in piece.unlike:
            found |= {damage.log_offset: damage for damage in self._wrong_entries(run)}
        known = {offset for offset in self._damage if log_offset <= offset < piece.end}
        for offset in known - found.keys():
            _log.info("damaged place is sound again place=%s", self._damage.pop(offset))
        is_new = False
        for offset, damage in found.items():
            if offset not in self._damage and len(self._damage) < MAX_PLACES:
                self._damage[offset] = damage
                self.on_found(damage)
                is_new = True
        return is_new or not known <= found.keys()

    def _wrong_entries(self, run: QueueRun) -> Iterator[Damage]:
        """What of a run a queue has wrong. What was deleted or never indexed it need not have."""
        queue = self._store.queues.find(run.topic, run.queue_id)
        if queue is None:
            return
        for queue_offset, due in enumerate(decode_entries(run.entries), run.first_offset):
            if not queue.min_offset <= queue_offset < queue.max_offset:
                continue
            entry = queue.entry(queue_offset)
            if run.is_like(due, entry):
                continue
            # A log may have a message of this offset twice, and then the queue has the first.
            if entry.log_offset != due.log_offset and points_at(
                self._store.log.segments,
                entry,
                topic=run.topic,
                queue_id=run.queue_id,
                queue_offset=queue_offset,
            ):
                continue
            place = f"queue {run.topic}/{run.queue_id} offset {queue_offset}"
            yield Damage(
                due.log_offset,
                f"{place}: it says {entry} where the log has {due}",
                is_in_queue=True,
            )

    async def _save(self, next_file: int, executor: ThreadPoolExecutor) -> None:
        self._note = ScrubNote(next_file, tuple(damage.log_offset for damage in self.damage))
        await asyncio.get_running_loop().run_in_executor(executor, self._note_file.save, self._note)


def _around(starts: Sequence[int], first: int) -> list[int]:
    """All files once, beginning with the one that lies at ``first`` or behind it."""
    return [*(start for start in starts if start >= first), *(start for start in starts if start < first)]
