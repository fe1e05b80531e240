"""The body of SEND_BATCH_MESSAGE: several messages for one queue, back to back.

    size magic body_crc flag body_length body properties_length properties

Producers leave magic and checksum 0 and nobody reads them. Each item becomes a record of its own.
"""

import struct
from collections.abc import Iterable

import msgspec

from tanist.errors import LocalProtocolError, RemoteProtocolError
from tanist.protocol.record import MAX_PROPERTIES_BYTES

MAX_BATCH_ITEMS = 1 << 16
"""An item costs us far more than the 22 bytes it may have on the wire."""

# size, magic, body_crc, flag, body_bytes
_ITEM_HEAD = struct.Struct(">iiiii")
_PROPERTIES_LENGTH = struct.Struct(">h")
MIN_ITEM_BYTES = _ITEM_HEAD.size + _PROPERTIES_LENGTH.size


class BatchItem(msgspec.Struct, gc=False, kw_only=True):
    """One message of a batch. ``body`` and ``properties`` are views of the request's body."""

    flag: int
    body: memoryview
    properties: memoryview


def decode_batch(data: bytes | memoryview, *, max_items: int = MAX_BATCH_ITEMS) -> list[BatchItem]:
    """All items. Raises RemoteProtocolError if lengths do not add up, or for no item, or too many."""
    view = memoryview(data)
    items: list[BatchItem] = []
    position = 0
    while position < len(view):
        if len(items) == max_items:
            raise RemoteProtocolError(f"a batch of more than {max_items} messages")
        item, position = _decode_item(view, position)
        items.append(item)
    if not items:
        raise RemoteProtocolError("a batch without messages")
    return items


def _decode_item(view: memoryview, position: int) -> tuple[BatchItem, int]:
    left = len(view) - position
    if left < MIN_ITEM_BYTES:
        raise RemoteProtocolError(f"{left} bytes are too few for a message of a batch")
    size, _magic, _crc, flag, body_bytes = _ITEM_HEAD.unpack_from(view, position)
    if not MIN_ITEM_BYTES <= size <= left:
        raise RemoteProtocolError(f"a batched message of {size} bytes does not fit into the {left} there are")
    if not 0 <= body_bytes <= size - MIN_ITEM_BYTES:
        raise RemoteProtocolError(
            f"a body of {body_bytes} bytes does not fit into a batched message of {size}"
        )
    body_start = position + _ITEM_HEAD.size
    body_end = body_start + body_bytes
    (properties_bytes,) = _PROPERTIES_LENGTH.unpack_from(view, body_end)
    properties_start = body_end + _PROPERTIES_LENGTH.size
    end = position + size
    if properties_start + properties_bytes != end:
        raise RemoteProtocolError(f"the fields do not add up to the batched message's {size} bytes")
    return BatchItem(flag=flag, body=view[body_start:body_end], properties=view[properties_start:end]), end


def encode_batch(items: Iterable[tuple[int, bytes, bytes]]) -> bytes:
    """Lay out a batch of (flag, body, properties)."""
    parts: list[bytes] = []
    for flag, body, properties in items:
        if len(properties) > MAX_PROPERTIES_BYTES:
            raise LocalProtocolError(
                f"properties of {len(properties)} bytes can not be sent; use at most {MAX_PROPERTIES_BYTES}"
            )
        size = MIN_ITEM_BYTES + len(body) + len(properties)
        parts += (_ITEM_HEAD.pack(size, 0, 0, flag, len(body)), body)
        parts += (_PROPERTIES_LENGTH.pack(len(properties)), properties)
    if not parts:
        raise LocalProtocolError("a batch has at least one message")
    return b"".join(parts)
