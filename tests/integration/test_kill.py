"""A process that writes is killed a hundred times over the same store, at any moment, opening included."""

import random
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tanist.store.store import MessageStore
from tests.support.ledger import check_indexes, walk
from tests.support.messages import kill
from tests.support.writer import SETTINGS

KILL_COUNT = 100
PROJECT = Path(__file__).parents[2]


def write_until_killed(root: Path, first_number: int, rng: random.Random) -> list[int]:
    """Let a process write, kill it; the numbers of the messages that it said were flushed."""
    command = [sys.executable, "-m", "tests.support.writer", str(root), str(first_number)]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert said == b"opening\n"
        acked = [int(process.stdout.readline()) for _ in range(rng.choice((0, 1, rng.randrange(40))))]
        # Any moment between two lines, and, if there was none yet, any of the opening.
        spin_until(time.perf_counter() + rng.random() * (0.001 if acked else 0.02))
        process.kill()
        return acked + [int(line) for line in process.stdout.read().split()]


def spin_until(moment_s: float) -> None:
    while time.perf_counter() < moment_s:
        pass


def numbers_in(store: MessageStore) -> list[int]:
    """The numbers of all messages in the log. One that was garbled has none."""
    found: list[int] = []
    for record, _ in walk(store):
        match = re.fullmatch(rb"message (\d+) \.*", record.body)
        assert match, bytes(record.body)
        assert record.properties == f"UNIQ_KEY\x01id-{int(match[1])}\x02".encode()
        found.append(int(match[1]))
    return found


@pytest.mark.takes(20)
def test_what_was_flushed_survives_every_kill(tmp_path: Path) -> None:
    rng = random.Random(2)
    acked: set[int] = set()
    found: list[int] = []
    next_number = 0
    # The first process may be killed before it makes the folder.
    (tmp_path / "store").mkdir()
    for _ in range(KILL_COUNT):
        acked.update(write_until_killed(tmp_path / "store", next_number, rng))
        # A copy is looked at: the next process shall find the store as the kill left it.
        shutil.copytree(tmp_path / "store", tmp_path / "copy")
        store = MessageStore.open(tmp_path / "copy", SETTINGS)
        try:
            found = numbers_in(store)
            assert found == sorted(set(found)), "a message is there twice or out of order"
            assert acked <= set(found)
            check_indexes(store, walk(store))
        finally:
            kill(store)
        shutil.rmtree(tmp_path / "copy")
        # What was written and not flushed may be there or not; its number is not used again.
        next_number = max(found, default=next_number) + 10
    print(f"{KILL_COUNT} kills, {len(acked)} messages acknowledged, {len(found)} found")
    assert len(acked) > KILL_COUNT
