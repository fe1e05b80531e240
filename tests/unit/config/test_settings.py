"""Typed settings from text: what is taken, what is refused, and what a refusal says."""

import logging
from enum import Enum
from typing import Annotated

import msgspec
import pytest

from tanist.config import Secret, parse_settings, warn_unsupported
from tanist.errors import ConfigError
from tanist.store import FlushMode, StoreSettings


class Role(Enum):
    ASYNC_MASTER = "ASYNC_MASTER"
    SLAVE = "SLAVE"


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    listen_port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 10911
    max_wait_ms: Annotated[int, msgspec.Meta(ge=1)] = 100
    broker_id: int = 0
    broker_role: Role = Role.ASYNC_MASTER
    broker_ip1: str = msgspec.field(default="127.0.0.1", name="brokerIP1")
    slave_read_enable: bool = False
    ha_secret: Secret = ""

    def __post_init__(self) -> None:
        if 0 < len(self.ha_secret) < 8:
            raise ConfigError("haSecret", self.ha_secret, "8 characters or more")


def parse(**raw: str) -> ServerSettings:
    return parse_settings(raw, ServerSettings, source="broker.conf")[0]


def refusal(**raw: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        parse(**raw)
    return caught.value


def test_a_key_that_is_not_there_has_its_default() -> None:
    assert parse() == ServerSettings()


def test_values_are_read_as_their_fields_types() -> None:
    settings = parse(
        listenPort="10", brokerId="-1", brokerRole="SLAVE", brokerIP1="10.0.0.7", slaveReadEnable="true"
    )
    assert settings == ServerSettings(
        listen_port=10, broker_id=-1, broker_role=Role.SLAVE, broker_ip1="10.0.0.7", slave_read_enable=True
    )


def test_one_file_fills_several_structs_and_the_rest_is_named() -> None:
    raw = {
        "listenPort": "10",
        "flushDiskType": "SYNC_FLUSH",
        "mappedFileSizeCommitLog": "8192",
        "cleanFileForciblyEnable": "FALSE",
        "useTLS": "true",
        "enableLmq": "false",
    }
    server, store, unknown = parse_settings(raw, ServerSettings, StoreSettings, source="broker.conf")
    assert server == ServerSettings(listen_port=10)
    assert store == StoreSettings(
        flush_disk_type=FlushMode.SYNC_FLUSH,
        mapped_file_size_commit_log=8192,
        clean_file_forcibly_enable=False,
    )
    assert unknown == {"useTLS", "enableLmq"}


@pytest.mark.parametrize("value", [" 10911", "10911 ", "\t10911\x01", "+10911", "010911"])
def test_a_number_may_have_blanks_around_it_a_sign_and_zeros(value: str) -> None:
    assert parse(listenPort=value).listen_port == 10911


@pytest.mark.parametrize(("value", "meant"), [("true", True), ("TRUE", True), ("False", False)])
def test_a_boolean_is_true_or_false_in_any_case(value: str, meant: bool) -> None:
    assert parse(slaveReadEnable=value).slave_read_enable is meant


@pytest.mark.parametrize("value", ["yes", "1", "0", "on", "", "truely"])
def test_no_other_word_is_a_boolean(value: str) -> None:
    error = refusal(slaveReadEnable=value)
    assert str(error) == f"broker.conf: slaveReadEnable={value!r} is not allowed; use true or false"


@pytest.mark.parametrize(
    "value", ["", "x", "1.0", "1e3", "0x10", "1_000", "1 000", "10m", "--1", "\u0661", "9" * 5000]
)
def test_what_is_no_whole_number_is_refused(value: str) -> None:
    assert refusal(brokerId=value).allowed == "a whole number"


@pytest.mark.parametrize("value", ["-1", "65536"])
def test_a_number_out_of_its_bounds_is_refused_with_the_bounds(value: str) -> None:
    error = refusal(listenPort=value)
    assert (error.key, error.value) == ("listenPort", value)
    assert error.allowed == "a whole number from 0 to 65535"


def test_a_number_with_one_bound_names_that_one() -> None:
    assert refusal(maxWaitMs="0").allowed == "a whole number from 1"


@pytest.mark.parametrize("value", ["slave", "MASTER", ""])
def test_a_word_that_is_no_choice_is_refused_with_the_choices(value: str) -> None:
    error = refusal(brokerRole=value)
    assert str(error) == (f"broker.conf: brokerRole={value!r} is not allowed; use one of ASYNC_MASTER, SLAVE")


def test_a_structs_own_refusal_names_the_file() -> None:
    with pytest.raises(ConfigError, match=r"^broker\.conf: maxIndexNum=1 is not allowed; use 2 to"):
        parse_settings({"maxIndexNum": "1"}, StoreSettings, source="broker.conf")


def test_a_refusal_does_not_show_a_secret() -> None:
    error = refusal(haSecret="hunter2")
    assert str(error) == "broker.conf: haSecret='******' is not allowed; use 8 characters or more"
    assert error.__cause__ is None


def test_the_stand_in_of_a_secret_is_no_secret() -> None:
    assert refusal(haSecret="******").allowed == "the secret itself, for which this only stands"


def test_all_keys_without_effect_stand_in_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    warn_unsupported(logging.getLogger("tanist"), {"useTLS", "enableLmq"}, source="broker.conf")
    assert caplog.messages == ["settings without effect here file=broker.conf keys=enableLmq,useTLS"]


def test_there_is_no_warning_if_every_key_is_known(caplog: pytest.LogCaptureFixture) -> None:
    warn_unsupported(logging.getLogger("tanist"), frozenset(), source="broker.conf")
    assert caplog.messages == []
