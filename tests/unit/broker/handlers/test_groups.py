import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tanist.broker.handlers.groups import routes
from tanist.broker.state import BrokerState
from tanist.errors import RemoteProtocolError
from tanist.model.groups import SubscriptionGroupConfig
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.sync import SubscriptionGroupTable
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.common import GroupRequest
from tanist.protocol.headers.sync import GetGroupConfigPageRequest
from tests.support.broker_tables import Asker, open_state


@pytest.fixture
def state(tmp_path: Path) -> Iterator[BrokerState]:
    state = open_state(tmp_path)
    with state.store:
        yield state


@pytest.fixture
def broker(state: BrokerState) -> Asker:
    return Asker(routes(state))


def _update(broker: Asker, **members: Any) -> Command:
    body = msgspec.json.encode({"groupName": "Billing"} | members)
    return broker.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)


def _delete(broker: Asker, **fields: str) -> Command:
    return broker.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, ext={"groupName": "Billing"} | fields)


def test_a_group_is_created_and_changed_as_asked(state: BrokerState, broker: Asker) -> None:
    assert _update(broker, consumeBroadcastEnable=False, retryMaxTimes=3).code == ResponseCode.SUCCESS
    expected = SubscriptionGroupConfig(group_name="Billing", is_broadcast_enabled=False, retry_max_times=3)
    assert state.groups.find("Billing") == expected
    assert _update(broker, consumeEnable=False).code == ResponseCode.SUCCESS
    assert state.groups.find("Billing") == SubscriptionGroupConfig(
        group_name="Billing", is_consume_enabled=False
    )


@pytest.mark.parametrize("group", ["", "a b", "a/b", "g" * 121])
def test_a_bad_name_is_an_invalid_parameter(state: BrokerState, broker: Asker, group: str) -> None:
    assert _update(broker, groupName=group).code == ResponseCode.INVALID_PARAMETER
    assert state.groups.find(group) is None


@pytest.mark.parametrize("count", [-1, 65537])
def test_retry_queues_that_can_not_be_are_refused(broker: Asker, count: int) -> None:
    assert _update(broker, retryQueueNums=count).code == ResponseCode.INVALID_PARAMETER


def test_a_group_has_no_attributes_to_change(broker: Asker) -> None:
    answer = _update(broker, attributes={"+a": "b"})
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark is not None
    assert "unsupported key: +a" in answer.remark


def test_a_body_that_is_no_group_is_an_error_of_the_peer(broker: Asker) -> None:
    with pytest.raises(RemoteProtocolError):
        broker.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=b"xx")


def test_a_deleted_groups_offsets_stay_unless_they_are_to_go(state: BrokerState, broker: Asker) -> None:
    _update(broker)
    state.offsets.commit("Billing", "T", 0, 5)
    assert _delete(broker).code == ResponseCode.SUCCESS
    assert state.groups.find("Billing") is None
    assert state.offsets.find("Billing", "T", 0) == 5


@pytest.mark.parametrize("flag", ["cleanOffset", "removeOffset"])
def test_the_offsets_go_by_the_flag_of_either_release(state: BrokerState, broker: Asker, flag: str) -> None:
    state.offsets.commit("Billing", "T", 0, 5)
    assert _delete(broker, **{flag: "true"}).code == ResponseCode.SUCCESS
    assert state.offsets.find("Billing", "T", 0) is None


def test_who_asks_for_a_page_gets_all_groups_and_no_total(state: BrokerState, broker: Asker) -> None:
    page = GetGroupConfigPageRequest(group_seq=1, max_group_count=2, data_version="{}")
    for header in (None, page):
        answer = broker.ask(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, header)
        assert answer.code == ResponseCode.SUCCESS
        assert decode_java_json(answer.body, SubscriptionGroupTable) == state.groups.table
        assert answer.ext == {}


def test_a_groups_settings_are_told(state: BrokerState, broker: Asker) -> None:
    answer = broker.ask(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, GroupRequest(group="TOOLS_CONSUMER"))
    found = decode_java_json(answer.body, SubscriptionGroupConfig)
    assert found == state.groups.find("TOOLS_CONSUMER")


def test_asking_about_an_unknown_group_does_not_create_it(state: BrokerState, broker: Asker) -> None:
    answer = broker.ask(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, GroupRequest(group="Billing"))
    assert answer.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    assert state.groups.find("Billing") is None


def test_no_deletion_makes_a_long_line(broker: Asker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert _delete(broker, groupName="g" * 100_000).code == ResponseCode.SUCCESS
    (line,) = caplog.messages
    assert len(line) < 500


def test_many_groups_are_made_in_one_request_or_none(broker: Asker, state: BrokerState) -> None:
    def update(*configs: dict[str, object]) -> Command:
        body = json.dumps({"groupConfigList": configs}).encode()
        return broker.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, body=body)

    assert (
        update({"groupName": "One"}, {"groupName": "Two", "retryQueueNums": -1}).code != ResponseCode.SUCCESS
    )
    assert update().code == ResponseCode.INVALID_PARAMETER
    assert state.groups.find("One") is None
    assert update({"groupName": "One", "retryMaxTimes": 3}, {"groupName": "Two"}).code == ResponseCode.SUCCESS
    found = state.groups.find("One")
    assert found is not None
    assert found.retry_max_times == 3
    assert state.groups.find("Two") is not None
