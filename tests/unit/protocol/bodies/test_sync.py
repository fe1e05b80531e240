"""Tables a slave copies from its master."""

import pytest

from tanist.errors import RemoteProtocolError
from tanist.model.data_version import DataVersion
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.sync import (
    ConsumerOffsetTable,
    DelayOffsetTable,
    TimerCheckPoint,
    decode_timer_check_point,
    encode_timer_check_point,
)

POINT = TimerCheckPoint(1, 2, 3, 4, DataVersion(state_version=5, counter=7, timestamp_ms=6))


def test_a_timer_check_point_is_seven_numbers() -> None:
    data = encode_timer_check_point(POINT)
    assert data == b"".join(number.to_bytes(8) for number in range(1, 8))
    assert decode_timer_check_point(memoryview(data)) == POINT


@pytest.mark.parametrize("size_bytes", [0, 55, 57])
def test_a_timer_check_point_of_another_size_is_refused(size_bytes: int) -> None:
    with pytest.raises(RemoteProtocolError, match="56 bytes"):
        decode_timer_check_point(bytes(size_bytes))


def test_offsets_of_rocketmq_4_come_without_a_version() -> None:
    table = decode_java_json(b'{"offsetTable":{"T@G":{0:5,1:7}}}', ConsumerOffsetTable)
    assert table.offset_table == {"T@G": {0: 5, 1: 7}}
    assert table.data_version == DataVersion()


def test_delay_offsets_are_keyed_by_level() -> None:
    assert decode_java_json(b'{"offsetTable":{1:5,18:7}}', DelayOffsetTable).offset_table == {1: 5, 18: 7}


def test_an_offset_over_64_bits_is_refused() -> None:
    with pytest.raises(RemoteProtocolError):
        decode_java_json(b'{"offsetTable":{1:9223372036854775808}}', DelayOffsetTable)
