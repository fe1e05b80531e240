"""A crash at any operation leaves a store that opens and keeps every promise.

Each script uses a store on a disk that loses its power at one operation, at every one in turn. Of each
crash several images are laid out: what a killed process leaves, the least that a loss of power leaves,
and some of all that may be between. The real store opens each of them, twice. An image that is byte for
byte one that was opened before, under the same promises, tells nothing new and is passed over.
"""

import hashlib
import itertools
import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tanist.errors import StoreError
from tanist.store.settings import StoreSettings
from tanist.store.store import MessageStore
from tests.support.clocks import FakeClock
from tests.support.crash_scripts import (
    NOW_MS,
    SCRIPTS,
    Machine,
    Script,
    delete_old_files,
    delete_topics,
    truncate,
    write_and_flush,
)
from tests.support.forgetful_disk import ForgetfulDisk, Loss, PowerLost
from tests.support.ledger import Ledger
from tests.support.messages import kill, tree

MORE_IMAGES = int(os.environ.get("TANIST_CRASH_IMAGES", "0"))
"""How many images of each crash are drawn beside the four that are always looked at: `make crash-images`."""
RECOVERY_CRASH_COUNT = 6
"""In how many recoveries of each script a second crash comes, at every operation of them."""


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder for thousands of small stores, in memory if the machine has such a place."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


def crash(script: Script, folder: Path, lose_power_at: int) -> tuple[Machine, bool]:
    """Run a script until the power is lost; whether it came to its end before."""
    folder.mkdir()
    machine = Machine(ForgetfulDisk(folder, lose_power_at=lose_power_at), folder / "store", SCRIPTS[script])
    try:
        script(machine)
    except PowerLost:
        return machine, False
    return machine, True


def throw_away(machine: Machine) -> None:
    machine.kill()
    machine.disk.let_go()
    shutil.rmtree(machine.root.parent)


class Images:
    """The images of one test, of which each is laid out and each different one is checked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._checked: set[tuple[bytes, bytes]] = set()
        self.count = 0

    def check(self, machine: Machine, rng: random.Random, loss: Loss) -> None:
        """Lay out an image, open it twice, as after two crashes in a row, and go on with it."""
        machine.disk.crash_image(self._folder, rng, loss)
        self.count += 1
        key = machine.ledger.promises(), fingerprint(self._folder)
        if key not in self._checked:
            check_store(self._folder / "store", machine.settings, machine.ledger)
            self._checked.add(key)
        shutil.rmtree(self._folder)

    def __str__(self) -> str:
        return f"{self.count} images, {len(self._checked)} different ones"


def fingerprint(folder: Path) -> bytes:
    """The hash of every name and every content under a folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        content = b"" if path.is_dir() else path.read_bytes()
        digest.update(f"{path.relative_to(folder)}\0{path.is_dir()}\0{len(content)}\0".encode() + content)
    return digest.digest()


def check_store(root: Path, settings: StoreSettings, ledger: Ledger) -> None:
    store = MessageStore.open(root, settings, clock=FakeClock(NOW_MS))
    try:
        ledger.check(store)
    finally:
        kill(store)
    found = tree(root)
    store = MessageStore.open(root, settings, clock=FakeClock(NOW_MS))
    try:
        assert tree(root) == found, "the second opening changed something"
        message = ledger.next_message()
        appended = store.append(message)
        assert store.dispatch() == 1
        (record,) = store.records(message.topic, message.queue_id, appended.queue_offset, 2)
        assert bytes(record.body) == message.body
    finally:
        kill(store)


@pytest.mark.behaviour("S2-40")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
@pytest.mark.takes(10)
@pytest.mark.known_bug("etcd #14370")
def test_a_crash_at_any_operation_breaks_no_promise(script: Script, scratch: Path) -> None:
    images = Images(scratch / "image")
    operation = 0
    is_done = False
    while not is_done:
        machine, is_done = crash(script, scratch / "live", operation)
        rng = random.Random(operation)
        drawn = [rng.choice((Loss.SECTORS, Loss.PAGES)) for _ in range(1 + MORE_IMAGES)]
        for loss in (Loss.NOTHING, Loss.EVERYTHING, Loss.SECTORS, *drawn):
            try:
                images.check(machine, rng, loss)
            except Exception as error:
                error.add_note(f"operation {operation}, loss of {loss.value}")
                raise
        throw_away(machine)
        operation += 1
    print(f"{script.__name__}: {operation} crashes, {images}")


@pytest.mark.behaviour("S2-40")
@pytest.mark.parametrize("script", [write_and_flush, truncate], ids=lambda script: script.__name__)
def test_what_a_killed_process_left_is_durable_before_it_is_promised(script: Script, scratch: Path) -> None:
    """The next process finds records that were never synced. It goes on behind them: they must not vanish."""
    images = Images(scratch / "image")
    operation = 0
    is_done = False
    while not is_done:
        machine, is_done = crash(script, scratch / "live", operation)
        machine.kill()
        store = machine.open()
        machine.ledger.resume(store)
        machine.ledger.append(store)
        machine.ledger.flush(store)
        for loss in (Loss.EVERYTHING, Loss.SECTORS):
            try:
                images.check(machine, random.Random(operation), loss)
            except Exception as error:
                error.add_note(f"killed at operation {operation}, loss of {loss.value}")
                raise
        throw_away(machine)
        operation += 1
    print(f"{script.__name__}: {operation} kills, {images}")


@pytest.mark.behaviour("S2-40")
@pytest.mark.parametrize(
    "script", [write_and_flush, truncate, delete_old_files, delete_topics], ids=lambda script: script.__name__
)
def test_a_crash_during_recovery_breaks_no_promise(script: Script, scratch: Path) -> None:
    rng = random.Random(script.__name__)
    images = Images(scratch / "image")
    for first_crash in sorted(rng.sample(range(20, 300), RECOVERY_CRASH_COUNT)):
        machine, _ = crash(script, scratch / "live", first_crash)
        machine.disk.crash_image(scratch / "found", rng, Loss.SECTORS)
        for second_crash in itertools.count():
            shutil.copytree(scratch / "found", scratch / "again")
            disk = ForgetfulDisk(scratch / "again", lose_power_at=second_crash)
            again = Machine(disk, scratch / "again" / "store", machine.settings, machine.ledger)
            with suppress(PowerLost):
                again.open()
            try:
                images.check(again, rng, rng.choice(list(Loss)))
            except Exception as error:
                error.add_note(f"operation {first_crash}, then operation {second_crash} of the recovery")
                raise
            throw_away(again)
            if again.store is not None:
                break
        throw_away(machine)
        shutil.rmtree(scratch / "found")
    print(f"{script.__name__}: {RECOVERY_CRASH_COUNT} recoveries, {images}")


def test_a_disk_that_only_says_it_syncs_is_found_out(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests would see a sync that is missing."""

    def forget(disk: ForgetfulDisk, node: object) -> None:
        """Settle nothing."""

    monkeypatch.setattr(ForgetfulDisk, "settle_file", forget)
    machine, _ = crash(write_and_flush, scratch / "live", 150)
    with pytest.raises((AssertionError, StoreError)):
        Images(scratch / "image").check(machine, random.Random(0), Loss.EVERYTHING)
    throw_away(machine)
