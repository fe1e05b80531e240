"""What ten thousand queues cost: memory and file descriptors of a process that opens such a store.

And how fast queues and key index follow a log that came from another replica.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.table import Row, interleaved
from tanist.model.message import Message
from tanist.protocol.properties import encode_properties
from tanist.store import dispatch
from tanist.store.settings import StoreSettings
from tanist.store.store import MessageStore

_QUEUE_COUNT = 10_000
_TOPIC_COUNT = 1_000
_SETTINGS = StoreSettings(mapped_file_size_commit_log=64 << 20)
_COPIED_COUNT = 50_000
_ROUNDS = 3

_CHILD = """
import json, sys, time
from pathlib import Path
import psutil
from bench.queues import open_store
started = time.perf_counter()
store = open_store(Path(sys.argv[1]))
seconds = time.perf_counter() - started
me = psutil.Process()
seen = {"queues": len(store.queues), "rss": me.memory_info().rss, "fds": me.num_fds(), "seconds": seconds}
print(json.dumps(seen))
store.close()
"""


def open_store(root: Path) -> MessageStore:
    return MessageStore.open(root, _SETTINGS)


def run() -> list[Row]:
    return [*_open(), _dispatch()]


def _dispatch() -> Row:
    """A log as a slave has it from its master: nothing of it is known but its bytes."""
    with (
        tempfile.TemporaryDirectory(prefix="tanist-bench-") as root,
        open_store(Path(root, "master")) as master,
        open_store(Path(root, "slave")) as slave,
    ):
        for number in range(_COPIED_COUNT):
            names = {
                "KEYS": f"order-{number}",
                "UNIQ_KEY": f"{number:032X}",
                "TAGS": "paid",
                "WAIT": "true",
            }
            properties = encode_properties(names)
            master.append(
                Message(topic="BenchTopic", queue_id=number % 8, body=b"x" * 1024, properties=properties)
            )
        while slave.log.log_end < master.log.log_end:
            slave.append_raw(slave.log.log_end, master.log.read_ahead(slave.log.log_end, 1 << 20))
        ours, peer = interleaved(_ROUNDS, lambda: _rate(slave), lambda: _rate_without_native(slave))
    return Row(
        "dispatch of a copied log, 1 KiB bodies",
        f"{ours:,.0f} records/s",
        f"Python alone {peer:,.0f}",
        ours / peer,
        "≥ 3 times Python",
        ours >= 3 * peer if dispatch.native is not None else None,
    )


def _rate(store: MessageStore) -> float:
    """Records a second. They are indexed anew each time, from an empty store on."""
    store.dispatcher.rewind(0)
    store.queues.cut(0)
    store.index.cut(0)
    # The time of this process alone: what else the machine does is no part of it.
    started = time.process_time()
    while store.dispatch_some():
        pass
    assert store.dispatcher.dispatched_to == store.log.log_end
    return _COPIED_COUNT / (time.process_time() - started)


def _rate_without_native(store: MessageStore) -> float:
    native, dispatch.native = dispatch.native, None
    try:
        return _rate(store)
    finally:
        dispatch.native = native


def _open() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="tanist-bench-") as root:
        with open_store(Path(root)) as store:
            for number in range(2 * _QUEUE_COUNT):
                topic, queue_id = f"Topic{number % _TOPIC_COUNT}", number // _TOPIC_COUNT % 10
                store.append(Message(topic=topic, queue_id=queue_id, body=b"x" * 100))
            store.dispatch()
        child = subprocess.run(
            [sys.executable, "-c", _CHILD, root], capture_output=True, text=True, check=True
        )
    seen = json.loads(child.stdout)
    assert seen["queues"] == _QUEUE_COUNT
    what = f"open a store with {_QUEUE_COUNT} queues"
    return [
        Row(f"{what}: RSS", f"{seen['rss'] / 1e6:.0f} MB", "", None, "< 300 MB", seen["rss"] < 300e6),
        Row(f"{what}: descriptors", str(seen["fds"]), "", None, "< 1000", seen["fds"] < 1000),
        Row(f"{what}: time", f"{seen['seconds']:.2f} s", "", None, "", None),
    ]
