import pytest

from tanist.broker.settings import BrokerRole, BrokerSettings
from tanist.config import parse_settings
from tanist.errors import ConfigError


def parsed(**raw: str) -> BrokerSettings:
    settings, unknown = parse_settings(raw, BrokerSettings, source="broker.conf")
    assert not unknown
    return settings


def test_an_empty_file_gives_a_master_that_only_this_machine_reaches() -> None:
    settings = parsed()
    assert settings.broker_role is BrokerRole.ASYNC_MASTER
    assert settings.bind_address == "127.0.0.1"
    assert settings.address == "127.0.0.1:10911"
    assert settings.broker_name
    assert settings.is_readable
    assert settings.is_writable
    assert settings.name_servers == ()


@pytest.mark.parametrize("limit_ms", [0, 500, 60_000])
def test_the_watchdog_waits_half_a_second_at_least_or_is_off(limit_ms: int) -> None:
    assert parsed(brokerWatchdogMills=str(limit_ms)).broker_watchdog_mills == limit_ms


def test_the_system_may_choose_the_port() -> None:
    assert parsed(listenPort="0").listen_port == 0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("brokerRole", "MASTER"),
        ("brokerId", "1"),
        ("brokerId", "-1"),
        ("listenPort", "1"),
        ("listenPort", "2"),
        ("listenPort", "65535"),
        ("listenPort", "-1"),
        ("brokerWatchdogMills", "-1"),
        ("brokerWatchdogMills", "499"),
        ("brokerName", ""),
        ("brokerClusterName", ""),
        ("storePathRootDir", ""),
        ("brokerIP1", "localhost"),
        ("bindAddress", "everywhere"),
        ("brokerPermission", "8"),
        ("brokerPermission", "-1"),
        ("defaultTopicQueueNums", "0"),
        ("shortPollingTimeMills", "0"),
        ("registerNameServerPeriod", "0"),
        ("flushConsumerOffsetInterval", "0"),
        ("flushConsumerOffsetInterval", "600001"),
        ("flushDelayOffsetInterval", "600001"),
        ("timerFlushIntervalMs", "600001"),
        ("maxTopicCount", "99999999999"),
        ("transactionTimeOut", "0"),
        ("transactionCheckInterval", "0"),
        ("transactionCheckMax", "0"),
        ("transactionOpMsgMaxSize", "0"),
        ("transactionOpBatchInterval", "0"),
        ("rejectTransactionMessage", "maybe"),
        ("maxTransferBytesOnMessageInMemory", "0"),
        ("maxTransferCountOnMessageInMemory", "0"),
        ("longPollingEnable", "yes"),
        ("coordinator", "10.0.0.5:9878"),
        ("coordinator", "sqlite:///var/lib/tanist/registry.db"),
        ("msgTraceTopicName", ""),
        ("msgTraceTopicName", "no/slash"),
    ],
)
def test_a_wrong_value_is_refused_by_its_key_and_value(key: str, value: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        parsed(**{key: value})
    assert (refusal.value.key, str(refusal.value.value)) == (key, value)
    assert str(refusal.value).startswith("broker.conf: ")


@pytest.mark.parametrize("role", ["ASYNC_MASTER", "SYNC_MASTER"])
def test_a_master_has_the_id_0(role: str) -> None:
    assert not parsed(brokerRole=role).is_slave
    with pytest.raises(ConfigError, match=rf"brokerId=2 is not allowed; use 0 with brokerRole={role}"):
        parsed(brokerRole=role, brokerId="2")


def test_a_slave_has_any_other_id() -> None:
    assert parsed(brokerRole="SLAVE", brokerId="2").is_slave
    for broker_id in ("0", "-1"):
        with pytest.raises(ConfigError, match="use 1 or more with brokerRole=SLAVE"):
            parsed(brokerRole="SLAVE", brokerId=broker_id)


@pytest.mark.parametrize("address", ["a", "a:", ":9876", "a:0", "a:65536", "a:b", "a:٣", "b:9876,c"])
def test_a_name_server_is_a_host_and_a_port(address: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        parsed(namesrvAddr=f"127.0.0.1:9876;{address}")
    assert (refusal.value.key, refusal.value.value) == ("namesrvAddr", address)


def test_name_servers_are_separated_by_semicolons() -> None:
    settings = parsed(namesrvAddr=" a:9876 ;; 10.0.0.1:9877;")
    assert settings.name_servers == ("a:9876", "10.0.0.1:9877")


def test_an_ipv6_address_is_told_in_brackets() -> None:
    assert parsed(brokerIP1="::1", listenPort="11911").address == "[::1]:11911"


@pytest.mark.parametrize(
    ("permission", "is_readable", "is_writable"), [("6", True, True), ("4", True, False), ("2", False, True)]
)
def test_the_permission_bits_are_reading_and_writing(
    permission: str, *, is_readable: bool, is_writable: bool
) -> None:
    settings = parsed(brokerPermission=permission)
    assert (settings.is_readable, settings.is_writable) == (is_readable, is_writable)


@pytest.mark.parametrize(("asked_ms", "period_s"), [(1, 10), (10_000, 10), (30_000, 30), (900_000, 60)])
def test_the_period_of_registration_is_held_to_what_a_name_server_needs(
    asked_ms: int, period_s: float
) -> None:
    assert BrokerSettings(register_name_server_period=asked_ms).register_period_s == period_s
