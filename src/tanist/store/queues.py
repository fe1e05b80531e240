"""All consume queues of a store, by topic and queue id."""

from collections.abc import Collection, Iterator
from functools import lru_cache
from pathlib import Path

from tanist.errors import DiskFull, LocalProtocolError
from tanist.store.consume_queue import ConsumeQueue
from tanist.store.deletions import Deletions
from tanist.store.disk import Disk
from tanist.store.open_files import OpenFiles

MAX_TOPIC_NAME_BYTES = 255
"""A topic names a folder, and folders can not have longer names."""
_QUEUES_A_TURN = 200


class Queues:
    """Opens, makes, syncs and cuts queues. Those written since the last sync are known.

    What ``deletions`` hides is not in a queue: its first message is the first that was not deleted.
    """

    def __init__(self, disk: Disk, directory: Path, file_bytes: int, deletions: Deletions) -> None:
        self._disk = disk
        self._directory = directory
        self._deletions = deletions
        self.file_bytes = file_bytes
        self._files = OpenFiles(disk)
        self._queues: dict[tuple[str, int], ConsumeQueue] = {}
        self._dirty: set[ConsumeQueue] = set()

    def open(self, *, was_closed: bool = True) -> None:
        """Open every queue there is a folder for; see ConsumeQueue.open."""
        for topic in self._disk.folders(self._directory):
            for name in self._disk.folders(self._directory / topic):
                if name.isascii() and name.isdecimal():
                    self._make(topic, int(name)).open(was_closed=was_closed)

    def __iter__(self) -> Iterator[tuple[tuple[str, int], ConsumeQueue]]:
        return iter(self._queues.items())

    def __len__(self) -> int:
        return len(self._queues)

    @property
    def open_file_count(self) -> int:
        return len(self._files)

    @property
    def indexed_to(self) -> int:
        """One past the last log byte that any queue points at; 0 if all are empty."""
        return max((queue.indexed_to for queue in self._queues.values()), default=0)

    @property
    def total(self) -> int:
        """What the next offsets of all queues add up to: it shows that one has lost entries at its end."""
        return sum(queue.max_offset for queue in self._queues.values())

    def total_before(self, log_offset: int) -> int | None:
        """The same of the entries before a log offset; None if a file is missing some that it had to have.

        Only recovery asks, before anything is appended.
        """
        queues = self._queues.values()
        if any(queue.has_hole_before(log_offset) for queue in queues):
            return None
        return sum(queue.end_before(log_offset) for queue in queues)

    def find(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        return self._queues.get((topic, queue_id))

    def append(
        self, topic: str, queue_id: int, queue_offset: int, data: bytes | bytearray, indexed_to: int
    ) -> None:
        """Add entries to a queue, which is made if it is new."""
        queue = self._queues.get((topic, queue_id))
        if queue is None:
            check_topic_name(topic)
            queue = self._make(topic, queue_id)
        self._dirty.add(queue)
        place = self._deletions.places.get(topic, 0)
        is_deleted = queue.indexed_to < place
        queue.append(queue_offset, data, indexed_to)
        if is_deleted:
            # It was in the log, and waited to be confirmed, when its topic was deleted.
            queue.find_min(place)

    def write(self) -> None:
        """Hand all new entries to the system. Raises DiskFull for what stays in memory for want of room."""
        for _ in self.write_in_turns():
            pass

    def write_in_turns(self) -> Iterator[None]:
        """The same in steps, for who has others to serve between them."""
        refusal: DiskFull | None = None
        for number, queue in enumerate(list(self._dirty), 1):
            try:
                queue.write()
            except DiskFull as error:
                refusal = error
            if number % _QUEUES_A_TURN == 0:
                yield
        if refusal is not None:
            raise refusal

    def take_dirty(self) -> list[Path]:
        """The files written since they were taken last: the caller makes them durable."""
        dirty, self._dirty = self._dirty, set()
        return sorted(path for queue in dirty for path in queue.take_dirty())

    def cut(self, log_offset: int) -> None:
        for queue in self._queues.values():
            queue.cut(log_offset)
            self._dirty.add(queue)

    def find_min(self, log_start: int) -> None:
        for (topic, _), queue in self._queues.items():
            queue.find_min(self._deletions.first_kept(topic, log_start))

    def raise_min(self, log_start: int) -> None:
        for (topic, _), queue in self._queues.items():
            queue.raise_min(self._deletions.first_kept(topic, log_start))

    def hide_all(self, topics: Collection[str]) -> None:
        """These topics were deleted just now: what their queues have is gone, and they go on behind it."""
        for (topic, _), queue in self._queues.items():
            if topic in topics:
                queue.min_offset = queue.max_offset

    def hide_before(self, topics: Collection[str], log_start: int) -> None:
        """These topics were deleted where ``deletions`` says, and may have got messages since."""
        for (topic, _), queue in self._queues.items():
            if topic in topics:
                queue.find_min(self._deletions.first_kept(topic, log_start))

    def topics(self) -> set[str]:
        """Every topic that has a queue."""
        return {topic for topic, _ in self._queues}

    def remove_expired(self, topics: Collection[str], log_start: int) -> list[tuple[str, int]]:
        """Remove the queues of these topics of which the log holds no message any more; which they were.

        Not before: a queue that is built again from the log must go on with the same offsets.
        """
        expired = [
            key for key, queue in self._queues.items() if key[0] in topics and queue.indexed_to <= log_start
        ]
        for key in expired:
            queue = self._queues.pop(key)
            self._dirty.discard(queue)
            queue.remove()
            self._disk.remove_dir(self._directory / key[0])
        return expired

    def next_offsets(self) -> dict[tuple[str, int], int]:
        """The offset of each queue's next message."""
        return {key: queue.max_offset for key, queue in self._queues.items()}

    def close(self) -> None:
        self._files.close()

    def _make(self, topic: str, queue_id: int) -> ConsumeQueue:
        queue = ConsumeQueue(self._files, self._directory / topic / str(queue_id), self.file_bytes)
        self._queues[topic, queue_id] = queue
        return queue


# Dispatch asks for every message, and there are few topics.
@lru_cache(maxsize=4096)
def check_topic_name(topic: str) -> None:
    """Refuse what can not name a folder, above all a name that leads out of the store."""
    is_path = "/" in topic or "\0" in topic or topic in ("", ".", "..")
    if is_path or len(topic.encode()) > MAX_TOPIC_NAME_BYTES:
        raise LocalProtocolError(f"topic {topic!r} can not name a folder; use letters, digits, %, |, - and _")
