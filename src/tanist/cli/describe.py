"""Stores and messages as the command line shows them."""

from datetime import UTC, datetime

import msgspec

from tanist.model.host import unpack_host
from tanist.protocol.message_id import encode_offset_id
from tanist.protocol.properties import decode_properties
from tanist.protocol.record import Record
from tanist.store.reader import StoreReader
from tanist.store.recovery import scan, trusted_to

_SHOWN_BODY_BYTES = 60


class QueueView(msgspec.Struct, rename="camel"):
    """One queue: ``[min_offset, max_offset)``."""

    topic: str
    queue_id: int
    min_offset: int
    max_offset: int


class EpochView(msgspec.Struct, rename="camel"):
    """One epoch and where it began."""

    epoch: int
    start: int


class StoreView(msgspec.Struct, rename="camel"):
    """What a store holds."""

    was_closed: bool
    log_start: int
    log_end: int
    scanned_from: int
    end_reason: str
    segment_count: int
    segment_bytes: int
    truncate_to: int | None
    indexed_to: int | None
    flushed_to: int | None
    epochs: list[EpochView]
    queues: list[QueueView]


class MessageView(msgspec.Struct, rename="camel"):
    """One message."""

    topic: str
    queue_id: int
    queue_offset: int
    log_offset: int
    offset_message_id: str
    store_time: str
    born_host: str
    reconsume_times: int
    sys_flag: int
    properties: dict[str, str]
    body: bytes

    def one_line(self) -> str:
        shown = self.body[:_SHOWN_BODY_BYTES].decode("utf-8", "replace")
        more = f"… ({len(self.body)} bytes)" if len(self.body) > _SHOWN_BODY_BYTES else ""
        place = f"{self.topic}/{self.queue_id}@{self.queue_offset}"
        return f"{place} {self.store_time} {self.properties} {shown}{more}"


def describe_store(reader: StoreReader) -> StoreView:
    """Find the end of the log as opening it would, without changing anything."""
    start = trusted_to(reader.segments, reader.queues, reader.checkpoint, was_closed=reader.was_closed)
    found = scan(reader.segments, start, flushed_to=reader.flushed_to)
    return StoreView(
        was_closed=reader.was_closed,
        log_start=reader.segments.start,
        log_end=found.end if reader.truncate_to is None else min(found.end, reader.truncate_to),
        scanned_from=start,
        end_reason=found.reason,
        segment_count=len(reader.segments),
        segment_bytes=reader.segments.size_bytes,
        truncate_to=reader.truncate_to,
        indexed_to=reader.checkpoint.indexed_to,
        flushed_to=reader.checkpoint.flushed_to,
        epochs=[EpochView(epoch, start) for epoch, start in reader.epochs.epochs],
        queues=[
            QueueView(topic, queue_id, queue.min_offset, queue.max_offset)
            for (topic, queue_id), queue in sorted(reader.queues, key=lambda item: item[0])
        ],
    )


def describe_record(record: Record) -> MessageView:
    stored = datetime.fromtimestamp(record.store_timestamp_ms / 1000, UTC)
    return MessageView(
        topic=record.topic,
        queue_id=record.queue_id,
        queue_offset=record.queue_offset,
        log_offset=record.log_offset,
        offset_message_id=encode_offset_id(record.store_host, record.log_offset),
        store_time=stored.isoformat(timespec="milliseconds"),
        born_host="{}:{}".format(*unpack_host(record.born_host)),
        reconsume_times=record.reconsume_times,
        sys_flag=record.sys_flag,
        properties=decode_properties(record.properties),
        body=bytes(record.body),
    )
