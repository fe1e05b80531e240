"""Damage at the log's end: what a crash can explain is cut, what it can not is refused.

The log of every test looks the same. Its process was killed, after a checkpoint:

    dispatched            flushed                written
    0 ................... 6 .................... 12 ................ 18   messages
    indexed_to            flushed_to             log_end

Damage behind the checkpoint's flushed_to is what a loss of power may do. Before it every byte was on disk.
"""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tanist.errors import CorruptRecord, ForeignFile
from tests.support.ledger import Written, check_indexes, walk
from tests.support.messages import kill, make_message, open_store, tree

DISPATCHED, FLUSHED, WRITTEN = 6, 12, 18

# Where fields begin in a record, and their bytes: size, magic, body_crc, log_offset, body_bytes.
PROVEN_FIELDS = ((0, 4), (4, 4), (8, 4), (28, 8), (84, 4))
BODY_AT = 88


class Log:
    """The log of one killed process: its last file, and the messages in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        store = open_store(root)
        self.messages: list[Written] = []
        for number in range(WRITTEN):
            message = make_message(
                number, queue_id=number % 2, body_bytes=60 + number, keys=f"key-{number}", tag="tag"
            )
            at = store.append(message)
            raw = bytes(store.log.read(at.log_offset, at.size_bytes))
            self.messages.append(Written(message, at.log_offset, raw))
            if number + 1 == DISPATCHED:
                store.dispatch()
            if number + 1 == FLUSHED:
                store.checkpoint()
        kill(store)
        assert len(store.log.segments) == 1
        self.path = store.log.segments[0].path

    @property
    def end(self) -> int:
        return self.messages[-1].end

    def change(self, position: int, data: bytes) -> None:
        with self.path.open("r+b") as file:
            file.seek(position)
            file.write(data)

    def check_kept(self, count: int, *, accept_loss: bool = False) -> None:
        """The store opens with so many messages, which are as they were, and goes on."""
        for _ in range(2):
            store = open_store(self.root, accept_loss=accept_loss)
            found = walk(store)
            assert [raw for _, raw in found] == [written.raw for written in self.messages[:count]]
            check_indexes(store, found)
            kill(store)
        with open_store(self.root) as store:
            assert store.append(make_message(99)).log_offset == self.messages[count - 1].end
            assert store.dispatch() == 1

    def check_refused(self, position: int) -> None:
        """The store does not open, says where, and is left alone."""
        before = tree(self.root)
        with pytest.raises(CorruptRecord, match="accept the loss") as refused:
            open_store(self.root)
        assert (refused.value.path, refused.value.position) == (self.path, position)
        assert tree(self.root) == before


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "store")


def zero_rest(log: Log, position: int) -> None:
    """As if the file had been cut there and given its length back."""
    log.change(position, bytes(log.end - position))


def zero_sector(log: Log, position: int) -> None:
    start = position // 512 * 512
    log.change(start, bytes(512))


def flip_body(log: Log, position: int) -> None:
    at = position + BODY_AT
    log.change(at, bytes([log.path.read_bytes()[at] ^ 0x10]))


def fill_with_noise(log: Log, position: int) -> None:
    log.change(position, random.Random(position).randbytes(log.end - position))


Damage = Callable[[Log, int], None]


@pytest.mark.parametrize("number", range(FLUSHED, WRITTEN))
@pytest.mark.parametrize("damage", [zero_rest, flip_body, fill_with_noise])
def test_a_bad_record_behind_what_was_flushed_is_cut_with_all_behind_it(
    log: Log, damage: Damage, number: int
) -> None:
    damage(log, log.messages[number].log_offset)
    log.check_kept(number)


def test_a_lost_sector_behind_what_was_flushed_costs_its_records_and_all_behind_them(log: Log) -> None:
    first_sector = -(-log.messages[FLUSHED].log_offset // 512)
    position = first_sector * 512
    zero_sector(log, position)
    log.check_kept(sum(written.end <= position for written in log.messages))


@pytest.mark.parametrize("number", range(DISPATCHED, FLUSHED))
@pytest.mark.parametrize("damage", [zero_rest, flip_body, fill_with_noise])
def test_a_bad_record_that_was_flushed_is_refused_by_its_place(log: Log, damage: Damage, number: int) -> None:
    damage(log, log.messages[number].log_offset)
    log.check_refused(log.messages[number].log_offset)


@pytest.mark.parametrize("number", range(DISPATCHED, FLUSHED))
def test_a_loss_that_is_accepted_leaves_what_was_before_it(log: Log, number: int) -> None:
    flip_body(log, log.messages[number].log_offset)
    log.check_kept(number, accept_loss=True)


def test_a_file_that_was_cut_short_is_refused(log: Log) -> None:
    """A file has its full length, durably, before the first record: no crash can take it."""
    with log.path.open("r+b") as file:
        file.truncate(log.messages[FLUSHED + 2].log_offset)
    before = tree(log.root)
    with pytest.raises(ForeignFile, match=log.path.name):
        open_store(log.root)
    assert tree(log.root) == before


@pytest.mark.parametrize("number", range(WRITTEN - 3, WRITTEN))
def test_a_flipped_bit_behind_what_was_flushed_spoils_nothing_before_it(log: Log, number: int) -> None:
    """Where the record's format proves the byte the record is cut; elsewhere it may be taken as it is."""
    rng = random.Random(number)
    pristine = tree(log.root)
    damaged = log.messages[number]
    for at in range(len(damaged.raw)):
        flipped = bytes([damaged.raw[at] ^ 1 << rng.randrange(8)])
        log.change(damaged.log_offset + at, flipped)
        store = open_store(log.root)
        found = [raw for _, raw in walk(store)]
        assert found[:number] == [written.raw for written in log.messages[:number]]
        if is_proven(damaged, at):
            assert len(found) == number
        else:
            assert found[number : number + 1] in ([], [damaged.raw[:at] + flipped + damaged.raw[at + 1 :]])
        kill(store)
        restore(log.root, pristine)


def test_a_flipped_bit_in_what_was_flushed_is_refused_wherever_the_format_proves_it(log: Log) -> None:
    rng = random.Random(8)
    damaged = log.messages[DISPATCHED + 2]
    for at in range(len(damaged.raw)):
        if is_proven(damaged, at):
            log.change(damaged.log_offset + at, bytes([damaged.raw[at] ^ 1 << rng.randrange(8)]))
            log.check_refused(damaged.log_offset)
            log.change(damaged.log_offset, damaged.raw)


def is_proven(written: Written, at: int) -> bool:
    """Whether a change of this byte of a record must show: by a checksum, by its place or by adding up."""
    topic_length_at = BODY_AT + len(written.message.body)
    properties_length_at = topic_length_at + 1 + len(written.message.topic)
    return (
        any(first <= at < first + size for first, size in PROVEN_FIELDS)
        or BODY_AT <= at <= topic_length_at
        or properties_length_at <= at < properties_length_at + 2
    )


def restore(root: Path, files: dict[str, bytes]) -> None:
    """Bring a tree back to what it was."""
    for name, content in tree(root).items():
        if name not in files:
            (root / name).unlink()
        elif content != files[name]:
            (root / name).write_bytes(files[name])
