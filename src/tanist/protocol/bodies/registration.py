"""The body of a broker's registration: its topics, plain or compressed.

Plain is JSON. Compressed is one zlib stream over

    int32 length, DataVersion as JSON
    int32 count, { int32 length, "name readQueues writeQueues perm filterType [attributes as JSON]" }
    int32 length, filter servers as a JSON array
    int32 count, { int32 length, queue mapping as JSON }      from protocol version 5.0.0 on
"""

import struct
import zlib
from typing import Any

import msgspec

from tanist.errors import RemoteProtocolError
from tanist.model.data_version import DataVersion
from tanist.model.topics import TopicConfig
from tanist.protocol.bodies.base import Body, encode_body
from tanist.protocol.bodies.sync import TopicConfigTable
from tanist.protocol.codes import Version
from tanist.protocol.java_json import decode_java_json

MAX_INFLATED_BYTES = 32 * 1024 * 1024
"""Some 300,000 topics. A stream that inflates to more is a bomb, or a broker that must send it plain."""

_CRC_MASK = 0x7FFFFFFF
_LENGTH = struct.Struct(">i")
_ZLIB_FIRST_BYTE = b"\x78"
_LINE_MEMBERS = ("topicName", "readQueueNums", "writeQueueNums", "perm", "topicFilterType")


class RegisterBrokerBody(Body, frozen=True, kw_only=True):
    """Everything a registration says beside its header."""

    topic_configs: TopicConfigTable = msgspec.field(
        name="topicConfigSerializeWrapper", default=TopicConfigTable()
    )
    filter_servers: list[str] = msgspec.field(name="filterServerList", default=[])


def registration_crc(body: bytes | memoryview) -> int:
    """The checksum that the header carries, over the body as it is sent."""
    return zlib.crc32(body) & _CRC_MASK


def encode_registration(body: RegisterBrokerBody, *, is_compressed: bool, version: int) -> bytes:
    """The body for a name server; ``version`` is the one in the same request's header."""
    if not is_compressed:
        return encode_body(body)
    topics = body.topic_configs.topics.values()
    blocks = [
        _block(encode_body(body.topic_configs.data_version)),
        _LENGTH.pack(len(topics)),
        *(_block(_topic_line(topic).encode()) for topic in topics),
        _block(encode_body(body.filter_servers)),
    ]
    if version >= Version.V5_0_0:
        mappings = (body.topic_configs.mappings or {}).values()
        blocks += (_LENGTH.pack(len(mappings)), *(_block(encode_body(mapping)) for mapping in mappings))
    return zlib.compress(b"".join(blocks))


def decode_registration(data: bytes | memoryview, *, is_compressed: bool, version: int) -> RegisterBrokerBody:
    """Read a broker's registration. ``is_compressed`` and ``version`` come from the request's header."""
    # RocketMQ 5 says "not compressed" whatever it sends. No JSON begins like a zlib stream.
    if not is_compressed and data[:1] != _ZLIB_FIRST_BYTE:
        return decode_java_json(data, RegisterBrokerBody)
    blocks = _Blocks(_inflate(data))
    data_version = decode_java_json(blocks.take(), DataVersion)
    topics = [_topic_of_line(blocks.take()) for _ in range(blocks.count())]
    filter_servers = decode_java_json(blocks.take(), list[str])
    mappings: list[dict[str, Any]] = []
    if version >= Version.V5_0_0:
        mappings = [decode_java_json(blocks.take(), dict[str, Any]) for _ in range(blocks.count())]
    return RegisterBrokerBody(
        topic_configs=TopicConfigTable(
            data_version=data_version,
            topics={topic.topic_name: topic for topic in topics},
            mappings={str(mapping.get("topic")): mapping for mapping in mappings} or None,
        ),
        filter_servers=filter_servers,
    )


class _Blocks:
    """The blocks of an inflated registration, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)
        self._position = 0

    def take(self) -> memoryview:
        """The next block, without its length."""
        start, size_bytes = self._position + _LENGTH.size, self._number()
        self._position = start + size_bytes
        if self._position > len(self._data):
            raise RemoteProtocolError(f"a registration's block of {size_bytes} bytes is cut short")
        return self._data[start : self._position]

    def count(self) -> int:
        """How many blocks follow. Each takes a length word, so no count is over what is left."""
        count = self._number()
        self._position += _LENGTH.size
        if count * _LENGTH.size > len(self._data) - self._position:
            raise RemoteProtocolError(f"a registration announces {count} blocks and has no room for them")
        return count

    def _number(self) -> int:
        if self._position + _LENGTH.size > len(self._data):
            raise RemoteProtocolError(f"a registration ends at byte {self._position}")
        (number,) = _LENGTH.unpack_from(self._data, self._position)
        if number < 0:
            raise RemoteProtocolError(f"a registration has a length of {number}")
        return number


def _inflate(data: bytes | memoryview) -> bytes:
    inflater = zlib.decompressobj()
    try:
        inflated = inflater.decompress(data, MAX_INFLATED_BYTES)
    except zlib.error as error:
        raise RemoteProtocolError(f"a registration that is no zlib stream: {error}") from error
    if not inflater.eof:
        raise RemoteProtocolError(
            f"a registration is cut short or inflates to over {MAX_INFLATED_BYTES} bytes"
        )
    return inflated


def _block(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data


def _topic_line(topic: TopicConfig) -> str:
    line = (
        f"{topic.topic_name} {topic.read_queue_count} {topic.write_queue_count} {topic.perm}"
        f" {topic.topic_filter_type}"
    )
    return f"{line} {encode_body(topic.attributes).decode()}" if topic.attributes else line


def _topic_of_line(line: memoryview) -> TopicConfig:
    try:
        values = bytes(line).decode().split(" ", len(_LINE_MEMBERS))
        if len(values) < len(_LINE_MEMBERS):
            raise RemoteProtocolError(f"a topic in a registration has {len(values)} of its members")
        members: dict[str, Any] = dict(zip(_LINE_MEMBERS, values, strict=False))
        if len(values) > len(_LINE_MEMBERS):
            members["attributes"] = decode_java_json(values[-1].encode(), dict[str, str])
        return msgspec.convert(members, TopicConfig, strict=False)
    except (UnicodeDecodeError, msgspec.ValidationError) as error:
        raise RemoteProtocolError(f"a topic in a registration cannot be read: {error}") from error
