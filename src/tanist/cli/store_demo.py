"""``tanist store demo``: the log engine at work, and what it does when its process is killed."""

import itertools
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from tanist.model.message import Message
from tanist.store.settings import StoreSettings
from tanist.store.store import MessageStore

EXIT_BROKEN = 1

_SETTINGS = StoreSettings(
    mapped_file_size_commit_log=64 << 20, max_hash_slot_num=100_000, max_index_num=400_000
)
_TOPIC = "DemoTopic"
_QUEUE_COUNT = 4


@click.command()
@click.option(
    "-n",
    "--messages",
    "message_count",
    type=click.IntRange(min=1),
    default=50_000,
    show_default=True,
    help="How many messages to write.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="Where; a folder made for it, removed after, if not said.",
)
def demo(*, message_count: int, folder: Path | None) -> None:
    """Write, read, kill -9 and recover, truncate: the log engine without a broker."""
    if folder is not None and folder.exists() and any(folder.iterdir()):
        raise click.ClickException(f"{folder} is not empty; name a new folder")
    root = Path(tempfile.mkdtemp(prefix="tanist-demo-")) if folder is None else folder
    console = Console()
    table = Table("what was promised", "what was seen", title="Tanist's log")
    try:
        is_kept = [step(root, message_count, table) for step in _STEPS]
    finally:
        if folder is None:
            shutil.rmtree(root)
    console.print(table)
    if not all(is_kept):
        raise SystemExit(EXIT_BROKEN)


def _write(root: Path, message_count: int, table: Table) -> bool:
    with MessageStore.open(root, _SETTINGS) as store:
        started = time.perf_counter()
        for number in track(range(message_count), description="writing", transient=True):
            store.append(_message(number))
        seconds = time.perf_counter() - started
        store.dispatch()
        found = sum(queue.max_offset for _, queue in store.queues)
        table.add_row(
            f"{message_count} messages of 1 KiB are written and queued",
            f"{found} queued, {store.log.log_end / seconds / 1e6:.0f} MB/s",
        )
        by_key = store.find_by_key(_TOPIC, f"order-{message_count // 2}")
        table.add_row("a message is found by its key", f"{len(by_key)} found")
    return found == message_count and len(by_key) == 1


def _kill(root: Path, _message_count: int, table: Table) -> bool:
    acknowledged = _acknowledged_before_kill(root)
    started = time.perf_counter()
    with MessageStore.open(root, _SETTINGS) as store:
        seconds = time.perf_counter() - started
        missing = [key for key in acknowledged if not store.find_by_key(_TOPIC, key)]
        table.add_row(
            f"after kill -9 all {len(acknowledged)} acknowledged messages are there",
            f"{len(missing)} missing, open again after {seconds * 1000:.0f} ms",
        )
    return not missing


def _truncate(root: Path, _message_count: int, table: Table) -> bool:
    with MessageStore.open(root, _SETTINGS) as store:
        queue = store.queues.find(_TOPIC, 0)
        assert queue is not None
        cut = store.records(_TOPIC, 0, queue.max_offset // 2, 1)[0].log_offset
        store.truncate_to(cut)
    with MessageStore.open(root, _SETTINGS) as store:
        table.add_row("what is cut never comes back", f"cut at {cut}, the log ends at {store.log.log_end}")
        return store.log.log_end == cut


_STEPS: tuple[Callable[[Path, int, Table], bool], ...] = (_write, _kill, _truncate)


def _acknowledged_before_kill(root: Path) -> list[str]:
    """Let a child write and flush message after message, and kill it while it does; what it acknowledged."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            _write_until_killed(root, writer)
        finally:
            # Whatever went wrong, nothing of the parent's may run here.
            os._exit(EXIT_BROKEN)
    os.close(writer)
    with os.fdopen(reader) as acks:
        acknowledged = [next(acks) for _ in range(200)]
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        acknowledged += acks.readlines()
    return [f"killed-{int(number)}" for number in acknowledged if number.endswith("\n")]


def _write_until_killed(root: Path, acks: int) -> None:
    store = MessageStore.open(root, _SETTINGS)
    for number in itertools.count():
        store.append(_message(number, prefix="killed"))
        store.flush()
        os.write(acks, b"%d\n" % number)


def _message(number: int, prefix: str = "order") -> Message:
    return Message(
        topic=_TOPIC,
        queue_id=number % _QUEUE_COUNT,
        body=b"x" * 1024,
        properties=f"KEYS\x01{prefix}-{number}\x02TAGS\x01paid\x02".encode(),
        born_timestamp_ms=time.time_ns() // 1_000_000,
    )
