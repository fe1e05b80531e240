"""Gives messages to Tanist's store, and says what a client of RocketMQ has to see of them.

The store is small on purpose: a few thousand messages fill several files of every kind. A broker of
RocketMQ that is to use it needs the same sizes, ``BROKER_SIZES``.
"""

import base64
import itertools
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from tanist.model.host import PACKED_V6_BYTES, pack_host
from tanist.model.message import Appended, Message, SysFlag
from tanist.model.property_names import KEYS, TAGS, UNIQ_KEY
from tanist.model.topics import TopicConfig
from tanist.protocol.bodies.sync import TopicConfigTable
from tanist.protocol.compression import Compression, compress_body
from tanist.protocol.message_id import UniqueIds, encode_offset_id
from tanist.protocol.properties import decode_properties, encode_properties
from tanist.store import MessageStore, StoreSettings
from tanist.store.config_table import ConfigTable
from tanist.store.disk import Disk
from tests.support.messages import append_all
from tests.support.rocketmq import Received

SETTINGS = StoreSettings(
    mapped_file_size_commit_log=256 * 1024,
    mapped_file_size_consume_queue=20 * 150,
    max_hash_slot_num=500,
    max_index_num=2000,
)
_SIZE_KEYS = ("mappedFileSizeCommitLog", "mappedFileSizeConsumeQueue", "maxHashSlotNum", "maxIndexNum")
_ALL_SETTINGS: dict[str, Any] = msgspec.to_builtins(SETTINGS)
BROKER_SIZES: dict[str, object] = {key: _ALL_SETTINGS[key] for key in _SIZE_KEYS}

_BORN_HOSTS = (pack_host("10.1.2.3", 40112), pack_host("2001:db8::7", 40113))
_ZLIB = int(SysFlag.COMPRESSED | Compression.ZLIB)
_OLD_ZLIB = int(SysFlag.COMPRESSED)
# In turn: plain twice, compressed in both ways to say so, committed, and only prepared.
_SYS_FLAGS = (0, 0, _ZLIB, _OLD_ZLIB, int(SysFlag.COMMIT), int(SysFlag.PREPARED))


class UnevenClock:
    """A clock of the last hour that stands still for some messages and jumps at others."""

    def __init__(self) -> None:
        self.time_ms = time.time_ns() // 1_000_000 - 3_600_000
        self._count = 0

    def now_ms(self) -> int:
        self._count += 1
        if self._count % 7 == 0:
            self.time_ms += 5
        if self._count % 500 == 0:
            self.time_ms += 20_000
        return self.time_ms

    def monotonic_s(self) -> float:
        return self.time_ms / 1000


@dataclass(frozen=True)
class Kept:
    """One message that the store has taken."""

    message: Message
    body: bytes
    appended: Appended
    store_host: bytes

    @property
    def place(self) -> tuple[str, int, int]:
        return self.message.topic, self.message.queue_id, self.appended.queue_offset

    @property
    def properties(self) -> dict[str, str]:
        return decode_properties(self.message.properties)

    @property
    def offset_id(self) -> str:
        return encode_offset_id(self.store_host, self.appended.log_offset)

    @property
    def is_visible(self) -> bool:
        """Whether consumers see it: what is only prepared is hidden from them."""
        return not self.message.sys_flag & SysFlag.PREPARED

    def as_received(self, broker_name: str) -> Received:
        """The message as a consumer sees it, whose flag no longer says that the body is compressed."""
        message, appended = self.message, self.appended
        born_v6 = SysFlag.BORN_HOST_V6 if len(message.born_host) == PACKED_V6_BYTES else 0
        store_v6 = SysFlag.STORE_HOST_V6 if len(self.store_host) == PACKED_V6_BYTES else 0
        return Received(
            topic=message.topic,
            broker_name=broker_name,
            queue_id=message.queue_id,
            queue_offset=appended.queue_offset,
            log_offset=appended.log_offset,
            stored_bytes=appended.size_bytes,
            sys_flag=message.sys_flag & ~int(SysFlag.COMPRESSED) | born_v6 | store_v6,
            flag=message.flag,
            born_timestamp=message.born_timestamp_ms,
            born_host_hex=message.born_host.hex(),
            store_timestamp=appended.store_timestamp_ms,
            reconsume_times=message.reconsume_times,
            prepared_transaction_offset=message.prepared_transaction_offset,
            message_id=self.properties[UNIQ_KEY],
            offset_message_id=self.offset_id,
            body_base64=base64.b64encode(self.body).decode(),
            properties=self.properties,
        )


class Keeper:
    """A store of Tanist, with a list of what was given to it."""

    def __init__(self, root: Path, *, port: int = 10911) -> None:
        self.clock = UnevenClock()
        self.kept: list[Kept] = []
        self._numbers = itertools.count()
        self._root = root
        self._topics: dict[str, TopicConfig] = {}
        zone = datetime.now().astimezone().tzinfo
        assert zone is not None
        self._ids = UniqueIds(address=bytes((10, 1, 2, 3)), pid=4711, discriminator=1, zone=zone)
        self.open(pack_host("127.0.0.1", port))

    def open(self, store_host: bytes) -> None:
        self._store_host = store_host
        self.store = MessageStore.open(self._root, SETTINGS, store_host=store_host, clock=self.clock)

    def append(self, topic: str, queue_id: int) -> Kept:
        """Give the store one message; each differs from the one before in everything it can."""
        message, body = self._next_message(topic, queue_id)
        return self._note(message, body, self.store.append(message))

    def append_many(self, topic: str, queue_id: int, count: int) -> None:
        made = [self._next_message(topic, queue_id) for _ in range(count)]
        appended = append_all(self.store, (message for message, _ in made))
        for (message, body), place in zip(made, appended, strict=True):
            self._note(message, body, place)

    def forget_from(self, log_offset: int) -> list[Kept]:
        """Cut the store, and return what was cut."""
        self.store.truncate_to(log_offset)
        cut = [kept for kept in self.kept if kept.appended.log_offset >= log_offset]
        del self.kept[len(self.kept) - len(cut) :]
        return cut

    def save_topics(self) -> None:
        """Write ``topics.json``: without it a broker does not know what it holds."""
        ConfigTable(Disk(), self._root, TopicConfigTable).save(TopicConfigTable(topics=self._topics))

    def visible(self) -> list[Kept]:
        """What consumers see, queue by queue in offset order."""
        return sorted((kept for kept in self.kept if kept.is_visible), key=lambda kept: kept.place)

    def _next_message(self, topic: str, queue_id: int) -> tuple[Message, bytes]:
        number = next(self._numbers)
        sys_flag = _SYS_FLAGS[number % len(_SYS_FLAGS)]
        body = f"body {number} ".encode() * (1 + number % 40)
        properties = {UNIQ_KEY: self._ids.next_id(self.clock.time_ms)}
        if number % 3:
            properties[KEYS] = f"key-{number} pair-{number // 2}"
            properties[TAGS] = f"tag-{number % 5}"
        message = Message(
            topic=topic,
            queue_id=queue_id,
            body=compress_body(body, sys_flag) if sys_flag & SysFlag.COMPRESSED else body,
            properties=encode_properties(properties),
            flag=number,
            sys_flag=sys_flag,
            born_timestamp_ms=self.clock.time_ms - 10,
            born_host=_BORN_HOSTS[number % len(_BORN_HOSTS)],
            reconsume_times=number % 4,
            prepared_transaction_offset=number if sys_flag & SysFlag.ROLLBACK else 0,
        )
        return message, body

    def _note(self, message: Message, body: bytes, appended: Appended) -> Kept:
        kept = Kept(message, body, appended, self._store_host)
        self.kept.append(kept)
        queue_count = message.queue_id + 1
        known = self._topics.get(message.topic)
        if known is None or known.read_queue_count < queue_count:
            self._topics[message.topic] = TopicConfig(
                topic_name=message.topic, read_queue_count=queue_count, write_queue_count=queue_count
            )
        return kept
