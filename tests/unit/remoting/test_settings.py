import msgspec
import pytest

from tanist.errors import ConfigError
from tanist.remoting.settings import ClientLimits, ServerLimits


def test_the_keys_and_their_defaults_are_rocketmqs() -> None:
    assert msgspec.to_builtins(ServerLimits()) == {
        "serverChannelMaxIdleTimeSeconds": 120,
        "serverAsyncSemaphoreValue": 64,
        "serverSocketBacklog": 1024,
        "serverSocketSndBufSize": 0,
        "serverSocketRcvBufSize": 0,
        "serverMaxConnections": 20_000,
        "serverFrameTimeoutMillis": 60_000,
        "serverWriteTimeoutMillis": 30_000,
        "serverMaxHeldBytes": 256 << 20,
        "writeBufferHighWaterMark": 0,
        "writeBufferLowWaterMark": 0,
    }
    assert msgspec.to_builtins(ClientLimits()) == {
        "clientChannelMaxIdleTimeSeconds": 120,
        "clientAsyncSemaphoreValue": 65_535,
        "connectTimeoutMillis": 3_000,
        "writeBufferHighWaterMark": 0,
        "writeBufferLowWaterMark": 0,
    }


def test_an_idle_time_of_zero_is_none() -> None:
    assert ServerLimits(server_channel_max_idle_time_seconds=0).connection.idle_s is None
    assert ClientLimits(client_channel_max_idle_time_seconds=7).connection.idle_s == 7


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ((0, 0), (1 << 20, 256 << 10)),
        ((1000, 0), (1000, 1000)),
        ((0, 2 << 20), (2 << 20, 2 << 20)),
        ((9, 3), (9, 3)),
    ],
)
def test_water_marks_of_zero_are_left_to_us(asked: tuple[int, int], given: tuple[int, int]) -> None:
    limits = ServerLimits(
        write_buffer_high_water_mark=asked[0], write_buffer_low_water_mark=asked[1]
    ).connection
    assert (limits.high_water_bytes, limits.low_water_bytes) == given


def test_a_wrong_value_names_its_key() -> None:
    with pytest.raises(ConfigError, match="serverMaxConnections=0 is not allowed; use 1 to"):
        ServerLimits(server_max_connections=0)
    with pytest.raises(ConfigError, match="connectTimeoutMillis"):
        ClientLimits(connect_timeout_millis=-1)
    with pytest.raises(ConfigError, match="writeBufferLowWaterMark=9"):
        ServerLimits(write_buffer_high_water_mark=3, write_buffer_low_water_mark=9)
