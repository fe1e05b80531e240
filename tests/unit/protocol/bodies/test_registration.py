"""Registrations of brokers."""

import struct
import zlib

import pytest

from tanist.errors import RemoteProtocolError
from tanist.model.data_version import DataVersion
from tanist.model.topics import TopicConfig, TopicFilterType
from tanist.protocol.bodies import registration
from tanist.protocol.bodies.registration import (
    RegisterBrokerBody,
    decode_registration,
    encode_registration,
    registration_crc,
)
from tanist.protocol.bodies.sync import TopicConfigTable
from tanist.protocol.codes import Version

BODY = RegisterBrokerBody(
    topic_configs=TopicConfigTable(
        data_version=DataVersion(state_version=2, counter=17, timestamp_ms=1000),
        topics={
            "A": TopicConfig(topic_name="A", read_queue_count=4, perm=4),
            "B": TopicConfig(
                topic_name="B",
                topic_filter_type=TopicFilterType.MULTI_TAG,
                attributes={"message.type": "a b"},
            ),
        },
        mappings={"S": {"topic": "S", "epoch": 3}},
    ),
    filter_servers=["f:1"],
)


def blocks(*parts: bytes | int) -> bytes:
    return b"".join(
        struct.pack(">i", part) if isinstance(part, int) else struct.pack(">i", len(part)) + part
        for part in parts
    )


def refuse(inflated: bytes, version: int = Version.V5_3_3) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_registration(zlib.compress(inflated), is_compressed=True, version=version)


@pytest.mark.parametrize("is_compressed", [False, True])
def test_a_registration_reads_back(is_compressed: bool) -> None:
    data = encode_registration(BODY, is_compressed=is_compressed, version=Version.V5_3_3)
    assert decode_registration(data, is_compressed=is_compressed, version=Version.V5_3_3) == BODY


def test_a_compressed_one_is_laid_out_in_blocks() -> None:
    data = encode_registration(BODY, is_compressed=True, version=Version.V4_9_8)
    assert zlib.decompress(data) == blocks(
        b'{"counter":17,"stateVersion":2,"timestamp":1000}',
        2,
        b"A 4 16 4 SINGLE_TAG",
        b'B 16 16 6 MULTI_TAG {"message.type":"a b"}',
        b'["f:1"]',
    )


def test_mappings_are_only_for_version_5() -> None:
    old = encode_registration(BODY, is_compressed=True, version=Version.V4_9_8)
    read = decode_registration(old, is_compressed=True, version=Version.V4_9_8)
    assert read.topic_configs.mappings is None
    with pytest.raises(RemoteProtocolError):
        decode_registration(old, is_compressed=True, version=Version.V5_0_0)


def test_a_compressed_body_is_recognised_though_the_header_denies_it() -> None:
    data = encode_registration(BODY, is_compressed=True, version=Version.V5_3_3)
    assert decode_registration(data, is_compressed=False, version=Version.V5_3_3) == BODY


def test_the_checksum_has_31_bits() -> None:
    assert registration_crc(b"oneway") == 0x661B3F9A
    assert registration_crc(b"hello") == zlib.crc32(b"hello") & 0x7FFFFFFF == 0x3610A686


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"A",
        b"A 4 4 6",
        b"A x 4 6 SINGLE_TAG",
        b"A 4 4 6 NO_TAG",
        b"A 9999999999 4 6 SINGLE_TAG",
        b"\xff",
    ],
)
def test_a_topic_that_cannot_be_read_is_refused(line: bytes) -> None:
    refuse(blocks(b"{}", 1, line, b"[]", 0))


@pytest.mark.parametrize(
    "inflated",
    [
        b"",
        blocks(b"{}"),
        blocks(b"{}", -1, b"[]", 0),
        blocks(b"{}", 2**31 - 1, b"[]", 0),
        blocks(b"{}", 0, b"[]"),
        blocks(b"{}", 0, b"[]", 1),
        blocks(-5),
        blocks(2**31 - 1),
        blocks(b"[]", 0, b"[]", 0),
        blocks(b"{}", 0, b"{}", 0),
    ],
)
def test_blocks_that_lie_are_refused(inflated: bytes) -> None:
    refuse(inflated)


def test_what_is_no_zlib_stream_is_refused() -> None:
    whole = encode_registration(BODY, is_compressed=True, version=Version.V5_3_3)
    for data in (b"", b"x", b"x" * 100, whole[:-1]):
        with pytest.raises(RemoteProtocolError):
            decode_registration(data, is_compressed=True, version=Version.V5_3_3)


def test_a_bomb_is_not_inflated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registration, "MAX_INFLATED_BYTES", 1000)
    refuse(bytes(1_000_000))
