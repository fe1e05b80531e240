"""Orders of ``tanist admin`` to brokers that are played: who gets them, and what is told of them."""

from collections.abc import Mapping

import msgspec
import pytest

from tanist.admin.accounts import RULES, USERS, Kind
from tanist.cli.exit_codes import Exit
from tanist.model.groups import SubscriptionGroupConfig
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.sync import SubscriptionGroupTable
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.nameserver import (
    AddWritePermResponse,
    GetKVConfigResponse,
    PutKVConfigRequest,
    WipeWritePermResponse,
)
from tests.support.played_fleet import CLUSTER, NAME_SERVER, PlayedFleet

MASTER, SLAVE = "10.0.0.1:10911", "10.0.0.2:10911"


@pytest.fixture
def pair() -> PlayedFleet:
    return PlayedFleet({"broker-a": {0: MASTER, 1: SLAVE}})


def test_a_topic_of_a_pair_is_deleted_by_its_master(
    pair: PlayedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = pair.runs(monkeypatch, "deleteTopic", "-c", CLUSTER, "-t", "Orders")
    assert result.exit_code == Exit.DONE, result.output
    assert pair.who_got(RequestCode.DELETE_TOPIC_IN_BROKER) == [MASTER]
    assert pair.who_got(RequestCode.DELETE_TOPIC_IN_NAMESRV) == [NAME_SERVER]


@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("order", ["wipeWritePerm", "addWritePerm"])
def test_a_broker_that_no_route_leads_to_is_not_told_to_be_kept_or_let_in(
    order: str, count: int, pair: PlayedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.answers = {
        RequestCode.WIPE_WRITE_PERM_OF_BROKER: lambda _, command: command.reply(
            header=WipeWritePermResponse(wiped_topic_count=count)
        ),
        RequestCode.ADD_WRITE_PERM_OF_BROKER: lambda _, command: command.reply(
            header=AddWritePermResponse(added_topic_count=count)
        ),
    }
    result = pair.runs(monkeypatch, order, "-b", "broker-x")
    assert result.exit_code == (Exit.DONE if count else Exit.NOT_FOUND)
    assert ("no route leads to a broker broker-x" in result.output) == (count == 0)


def _has_group(_address: str, command: Command) -> Command:
    groups = {"Billing": SubscriptionGroupConfig(group_name="Billing")}
    return command.reply(body=encode_body(SubscriptionGroupTable(groups=groups)))


def test_a_group_that_no_broker_has_is_not_told_to_be_deleted(
    pair: PlayedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.answers = {RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: _has_group}
    assert pair.runs(monkeypatch, "deleteSubGroup", "-c", CLUSTER, "-g", "Billing").exit_code == Exit.DONE
    missed = pair.runs(monkeypatch, "deleteSubGroup", "-c", CLUSTER, "-g", "Bilking")
    assert "has a group Bilking" in str(missed.exception)
    assert pair.who_got(RequestCode.DELETE_SUBSCRIPTIONGROUP) == [MASTER, MASTER]


def test_retries_that_stay_are_told_with_the_group_that_is_deleted(
    pair: PlayedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.answers = {
        RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: _has_group,
        RequestCode.DELETE_TOPIC_IN_BROKER: lambda _, command: command.reply(
            ResponseCode.SYSTEM_ERROR, remark="the disk is gone"
        ),
    }
    result = pair.runs(monkeypatch, "deleteSubGroup", "-c", CLUSTER, "-g", "Billing")
    assert result.exit_code == Exit.PARTLY
    assert result.output.count("the disk is gone") == 2


def test_an_order_to_a_cluster_without_a_master_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    result = PlayedFleet({"broker-a": {1: SLAVE}}).runs(
        monkeypatch, "deleteTopic", "-c", CLUSTER, "-t", "Orders"
    )
    assert "has no master" in str(result.exception)


def _accounts(name: str, *, held: Mapping[str, list[str]]) -> PlayedFleet:
    """Brokers with these users or subjects; those that lack one answer with nothing, as RocketMQ's do."""

    def listed(address: str, command: Command) -> Command:
        return command.reply(body=msgspec.json.encode([{name: each} for each in held[address]]))

    def got(address: str, command: Command) -> Command:
        wanted = command.ext[name]
        body = msgspec.json.encode({name: wanted}) if wanted in held[address] else b""
        return command.reply(body=body)

    fleet = PlayedFleet({})
    fleet.answers = {
        RequestCode.AUTH_LIST_USER: listed,
        RequestCode.AUTH_LIST_ACL: listed,
        RequestCode.AUTH_GET_USER: got,
        RequestCode.AUTH_GET_ACL: got,
    }
    return fleet


@pytest.mark.parametrize(("order", "option", "kind"), [("copyUser", "-u", USERS), ("copyAcl", "-s", RULES)])
def test_what_is_copied_is_created_or_changed_and_what_is_misspelt_is_told(
    order: str, option: str, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = _accounts(kind.name, held={MASTER: ["al", "bo"], SLAVE: ["bo"]})
    words = (order, "-f", MASTER, "-t", SLAVE)
    assert fleet.runs(monkeypatch, *words).exit_code == Exit.DONE
    changes = (kind.create_code, kind.update_code)
    sent = [(command.code, command.ext[kind.name]) for _, command in fleet.asked if command.code in changes]
    assert sent == [(kind.create_code, "al"), (kind.update_code, "bo")]
    missed = fleet.runs(monkeypatch, *words, option, "all")
    assert missed.exit_code == Exit.NOT_FOUND
    assert f"has no {kind.name} all" in missed.output
    assert fleet.runs(monkeypatch, *words, option, "al,all").exit_code == Exit.PARTLY


def test_the_order_of_one_broker_leaves_that_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = PlayedFleet({"broker-a": {0: MASTER}, "broker-b": {0: SLAVE}})
    kept: list[str] = []

    def put(_address: str, command: Command) -> Command:
        kept.append(command.header(PutKVConfigRequest).value)
        return command.reply()

    def get(_address: str, command: Command) -> Command:
        if not kept:
            return command.reply(ResponseCode.QUERY_NOT_FOUND, remark="no such key")
        return command.reply(header=GetKVConfigResponse(value=kept[-1]))

    fleet.answers = {RequestCode.PUT_KV_CONFIG: put, RequestCode.GET_KV_CONFIG: get}
    words = ("updateTopic", "-t", "Orders", "-o", "true", "-w", "4")
    for whom in (("-b", MASTER), ("-b", SLAVE), ("-c", CLUSTER)):
        assert fleet.runs(monkeypatch, *words, *whom).exit_code == Exit.DONE
    assert kept == ["broker-a:4", "broker-a:4;broker-b:4", "broker-a:4;broker-b:4"]


@pytest.mark.parametrize("whom", [(), ("-c", CLUSTER)])
@pytest.mark.parametrize(
    ("order", "code"),
    [
        ("cleanExpiredCQ", RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE),
        ("cleanUnusedTopic", RequestCode.CLEAN_UNUSED_TOPIC),
        ("deleteExpiredCommitLog", RequestCode.DELETE_EXPIRED_COMMITLOG),
    ],
)
def test_slaves_clean_up_too_unless_they_follow_their_master_in_it(
    order: str, code: RequestCode, whom: tuple[str, ...], pair: PlayedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pair.runs(monkeypatch, order, *whom).exit_code == Exit.DONE
    assert pair.who_got(code) == [MASTER, SLAVE]
