"""A process that writes to a store until it is killed: ``python -m tests.support.writer ROOT NUMBER``.

It says ``opening``, then one line for each message that was flushed: its number, from NUMBER on. A line
is one write, so it comes whole or not at all. The messages go to three queues in turn.
"""

import itertools
import os
import sys
from pathlib import Path

from tanist.model.message import Message
from tanist.store.settings import StoreSettings
from tanist.store.store import MessageStore
from tests.support.messages import append_all, make_message

SETTINGS = StoreSettings(
    mapped_file_size_commit_log=16384,
    mapped_file_size_consume_queue=2000,
    max_hash_slot_num=512,
    max_index_num=200,
)
QUEUE_COUNT = 3


def write(root: Path, first_number: int) -> None:
    """Write for ever, one to four messages at a time, and dispatch and take checkpoints at odd times."""
    _say("opening")
    store = MessageStore.open(root, SETTINGS)
    numbers = itertools.count(first_number)
    for turn in itertools.count():
        batch = list(itertools.islice(numbers, 1 + turn % 4))
        append_all(store, (_message(number) for number in batch))
        if turn % 3 == 0:
            store.dispatch()
        store.flush()
        for number in batch:
            _say(str(number))
        if turn % 7 == 0:
            store.checkpoint()
            store.log.segments.prepare()


def _message(number: int) -> Message:
    return make_message(
        number, queue_id=number % QUEUE_COUNT, body_bytes=number % 300, UNIQ_KEY=f"id-{number}"
    )


def _say(line: str) -> None:
    os.write(sys.stdout.fileno(), f"{line}\n".encode())


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]))
