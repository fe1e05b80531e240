import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.broker.handlers.config import routes
from tanist.broker.state import BrokerState
from tanist.model.data_version import DataVersion
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.config_text import decode_config
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.sync import GetBrokerConfigResponse
from tanist.store.config_table import ConfigTable
from tests.support.broker_tables import SETTINGS, Asker, open_state


@pytest.fixture
def state(tmp_path: Path) -> Iterator[BrokerState]:
    state = open_state(tmp_path)
    state.config.on_change(state.use_config)
    with state.store:
        yield state


@pytest.fixture
def broker(state: BrokerState) -> Asker:
    return Asker(routes(state))


def _update(broker: Asker, text: str) -> Command:
    return broker.ask(RequestCode.UPDATE_BROKER_CONFIG, body=text.encode())


def test_every_setting_is_told_with_its_version(state: BrokerState, broker: Asker) -> None:
    _update(broker, "brokerPermission=4\n")
    answer = broker.ask(RequestCode.GET_BROKER_CONFIG)
    told = decode_config(answer.body)
    assert told["brokerName"] == SETTINGS.broker_name
    assert told["fileReservedTime"] == "72"
    assert told["brokerPermission"] == "4"
    version = decode_java_json(answer.header(GetBrokerConfigResponse).version.encode(), DataVersion)
    assert version == state.config.data_version
    assert version.counter == 1


def test_a_change_takes_effect_in_the_tables_and_the_store(state: BrokerState, broker: Asker) -> None:
    answer = _update(broker, "fileReservedTime=1\nautoCreateSubscriptionGroup=false\nlongPollingEnable=false")
    assert answer.code == ResponseCode.SUCCESS
    assert state.store.settings.file_reserved_time == 1
    assert not state.settings.long_polling_enable
    assert state.groups.ensure("New") is None
    _update(broker, "autoCreateSubscriptionGroup=true")
    assert state.groups.ensure("New") is not None


def test_topics_come_by_themselves_once_that_is_allowed(tmp_path: Path) -> None:
    settings = type(SETTINGS)(broker_name="broker-a", auto_create_topic_enable=False)
    state = open_state(tmp_path, settings)
    state.config.on_change(state.use_config)
    broker = Asker(routes(state))
    with state.store:

        def is_created(topic: str) -> bool:
            return state.topics.create_for_send(topic, default_topic="TBW102", queue_count=4) is not None

        assert not is_created("One")
        _update(broker, "autoCreateTopicEnable=true")
        assert is_created("Two")
        _update(broker, "autoCreateTopicEnable=false")
        assert not is_created("Three")


def test_another_permission_makes_the_topics_newer_so_that_name_servers_take_them(
    state: BrokerState, broker: Asker
) -> None:
    told: list[None] = []
    state.topics.on_change(lambda: told.append(None))
    before = state.topics.data_version
    _update(broker, "longPollingEnable=false")
    assert (state.topics.data_version, told) == (before, [])
    _update(broker, "brokerPermission=4")
    assert state.topics.data_version > before
    assert told == [None]


def test_no_change_is_no_new_version(state: BrokerState, broker: Asker) -> None:
    assert _update(broker, "").code == ResponseCode.SUCCESS
    assert state.config.data_version.counter == 0


def test_a_refusal_names_the_key(broker: Asker, caplog: pytest.LogCaptureFixture) -> None:
    answer = _update(broker, "listenPort=1\n")
    assert answer.code == ResponseCode.NO_PERMISSION
    assert "listenPort" in (answer.remark or "")
    assert "listenPort" in caplog.text


def test_name_servers_are_told_by_the_same_request_again_if_the_topics_could_not_be_saved(
    state: BrokerState, broker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left")

    before = state.topics.data_version
    with monkeypatch.context() as patched:
        patched.setattr(ConfigTable, "save", fail)
        answer = _update(broker, "brokerPermission=4\nfileReservedTime=1")
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "no space left" in (answer.remark or "")
    assert state.store.settings.file_reserved_time == 1
    assert state.topics.data_version == before
    assert _update(broker, "brokerPermission=4\nfileReservedTime=1").code == ResponseCode.SUCCESS
    assert state.topics.data_version > before
    told = state.topics.data_version
    assert _update(broker, "brokerPermission=4").code == ResponseCode.SUCCESS
    assert state.topics.data_version == told


def test_no_update_makes_a_long_line(broker: Asker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    _update(broker, "k" * 100_000 + "=1")
    _update(broker, "deleteWhen=" + "04;" * 1_000)
    assert len(caplog.messages) == 2
    assert max(map(len, caplog.messages)) < 600
