"""Messages and small stores for tests of the store."""

from collections.abc import Iterable
from pathlib import Path

from tanist.clock import Clock
from tanist.model.message import Appended, Message
from tanist.protocol.properties import encode_properties
from tanist.store import MessageStore, StoreSettings
from tanist.store.disk import Disk
from tests.support.clocks import FakeClock

SMALL = StoreSettings(
    mapped_file_size_commit_log=4096,
    mapped_file_size_consume_queue=10 * 20,
    max_hash_slot_num=16,
    max_index_num=64,
)
"""Files so small that a few dozen messages fill several of each kind."""

TOPIC = "TopicA"


def make_message(
    number: int = 0,
    *,
    topic: str = TOPIC,
    queue_id: int = 0,
    body_bytes: int = 0,
    keys: str = "",
    tag: str = "",
    sys_flag: int = 0,
    **properties: str,
) -> Message:
    """A message whose body tells its number, padded with dots to at least ``body_bytes``."""
    named = {"KEYS": keys, "TAGS": tag} | properties
    return Message(
        topic=topic,
        queue_id=queue_id,
        body=f"message {number} ".encode().ljust(body_bytes, b"."),
        properties=encode_properties({name: value for name, value in named.items() if value}),
        sys_flag=sys_flag,
    )


def append_all(store: MessageStore, messages: Iterable[Message]) -> list[Appended]:
    """Append one message after the other; where each lies."""
    return [store.append(message) for message in messages]


def open_store(
    root: Path,
    settings: StoreSettings = SMALL,
    *,
    clock: Clock | None = None,
    disk: Disk | None = None,
    accept_loss: bool = False,
) -> MessageStore:
    """Open a small store, on a clock that stands still unless another is given."""
    return MessageStore.open(root, settings, clock=clock or FakeClock(), disk=disk, accept_loss=accept_loss)


def kill(store: MessageStore) -> None:
    """Let go of a store as the kernel does when its process is killed: nothing is finished or written."""
    store._let_go()


def bodies(store: MessageStore, topic: str = TOPIC, queue_id: int = 0) -> list[bytes]:
    """The bodies of all messages that a queue has, without their padding."""
    queue = store.queues.find(topic, queue_id)
    if queue is None:
        return []
    records = store.records(topic, queue_id, queue.min_offset, queue.max_offset - queue.min_offset)
    return [bytes(record.body).rstrip(b".") for record in records]


def numbered(*numbers: int) -> list[bytes]:
    """The bodies that messages of these numbers have, as ``bodies`` tells them."""
    return [f"message {number} ".encode() for number in numbers]


def tree(root: Path) -> dict[str, bytes]:
    """Every file under a folder with its content, to see what an operation has changed."""
    return {
        str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()
    }
