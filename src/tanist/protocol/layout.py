"""Messages as the log and its indexes get them: records, queue entries, and the hashes of their keys.

All three are known when a message is appended, so nothing has to be read back from the log to index
it. ``_native`` does the same in C where it could be built. It knows the plain case only and leaves
the others, wrong input included, to what stands here.
"""

from typing import NamedTuple

import msgspec

from tanist.errors import RemoteProtocolError
from tanist.model.message import Message, is_keyed, is_queued
from tanist.protocol.batch import decode_batch
from tanist.protocol.compiled import native
from tanist.protocol.key_index import Keyed, key_hash
from tanist.protocol.properties import join_properties
from tanist.protocol.queue_entry import encode_entry
from tanist.protocol.record import MAX_BODY_BYTES, encode_record
from tanist.protocol.tags import find_tag, index_keys, tags_code


class LaidOut(NamedTuple):
    """One message or several of one queue, ready to be written."""

    records: bytes
    entries: bytes
    """What the consume queue keeps; empty for a message that enters no queue."""
    keyed: list[Keyed]


def lay_out(
    message: Message, *, queue_offset: int, log_offset: int, store_timestamp_ms: int, store_host: bytes
) -> LaidOut:
    """One message."""
    if native is not None:
        laid = native.lay_out(message, queue_offset, log_offset, store_timestamp_ms, store_host)
        if laid is not None:
            return LaidOut(*laid)
    record = encode_record(
        message,
        queue_offset=queue_offset,
        log_offset=log_offset,
        store_timestamp_ms=store_timestamp_ms,
        store_host=store_host,
    )
    topic, properties, keyed = message.topic, message.properties, list[Keyed]()
    if is_keyed(message.sys_flag):
        keyed = [(key_hash(topic, key), log_offset, store_timestamp_ms) for key in index_keys(properties)]
    entry = b""
    if is_queued(message.sys_flag):
        entry = encode_entry(log_offset, len(record), tags_code(find_tag(properties)))
    return LaidOut(record, entry, keyed)


def lay_out_batch(
    batch: Message,
    *,
    queue_offset: int,
    log_offset: int,
    store_timestamp_ms: int,
    store_host: bytes,
    max_bytes: int = MAX_BODY_BYTES,
) -> LaidOut:
    """The messages that ``batch`` has in its body, one behind the other.

    Each has its own properties and then the batch's, and everything else from the batch. So a short batch
    can make long records: ``max_bytes`` bounds them.
    """
    if native is not None:
        laid = native.lay_out_batch(
            batch, queue_offset, log_offset, store_timestamp_ms, store_host, max_bytes
        )
        if laid is not None:
            return LaidOut(*laid)
    records: list[bytes] = []
    entries = bytearray()
    keyed: list[Keyed] = []
    end = log_offset + max_bytes
    for number, item in enumerate(decode_batch(batch.body)):
        properties = join_properties(bytes(item.properties), batch.properties)
        laid = lay_out(
            msgspec.structs.replace(batch, body=item.body, flag=item.flag, properties=properties),
            queue_offset=queue_offset + number,
            log_offset=log_offset,
            store_timestamp_ms=store_timestamp_ms,
            store_host=store_host,
        )
        records.append(laid.records)
        entries += laid.entries
        keyed += laid.keyed
        log_offset += len(laid.records)
        if log_offset > end:
            raise RemoteProtocolError(f"the messages of a batch take more than {max_bytes} bytes; send fewer")
    return LaidOut(b"".join(records), bytes(entries), keyed)
