"""What ten thousand queues cost: memory and file descriptors of a process that opens such a store."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.table import Row
from tanist.model.message import Message
from tanist.store.settings import StoreSettings
from tanist.store.store import MessageStore

_QUEUE_COUNT = 10_000
_TOPIC_COUNT = 1_000
_SETTINGS = StoreSettings(mapped_file_size_commit_log=64 << 20)

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
