"""Orders of ``tanist admin`` that brokers of RocketMQ alone take: what each is sent, and what is told."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import pytest

from tanist.cli.exit_codes import Exit
from tanist.protocol.codes import RequestCode, ResponseCode
from tests.support.played_fleet import CLUSTER, NAME_SERVER, PlayedFleet

MASTER, SLAVE = "10.0.0.1:10911", "10.0.0.2:10911"
_USER = {"username": "al", "userType": "Super", "userStatus": "enable"}
_RULE = {
    "subject": "User:al",
    "policies": [
        {
            "policyType": "CUSTOM",
            "entries": [
                {
                    "resource": "Topic:orders",
                    "actions": ["Pub", "Sub"],
                    "sourceIps": ["10.0.0.0/8"],
                    "decision": "Allow",
                }
            ],
        }
    ],
}
_RULE_WORDS = ("-s", "User:al", "-r", "Topic:orders", "-a", "Pub,Sub", "-d", "Allow", "-i", "10.0.0.0/8")


class Sent(NamedTuple):
    """A command line, and the request that it makes of a broker."""

    words: tuple[str, ...]
    code: RequestCode
    ext: Mapping[str, str]
    body: object = None


def named(given: object) -> str | None:
    """The name of the command, for the test's."""
    return given.words[0] if isinstance(given, Sent) else None


@pytest.fixture
def pair() -> PlayedFleet:
    return PlayedFleet({"broker-a": {0: MASTER, 1: SLAVE}})


@pytest.mark.parametrize(
    "given",
    [
        Sent(
            ("createUser", "-u", "al", "-p", "pw", "-t", "Super"),
            RequestCode.AUTH_CREATE_USER,
            {"username": "al"},
            {"username": "al", "password": "pw", "userType": "Super"},
        ),
        Sent(
            ("updateUser", "-u", "al", "-s", "disable"),
            RequestCode.AUTH_UPDATE_USER,
            {"username": "al"},
            {"username": "al", "userStatus": "disable"},
        ),
        Sent(("deleteUser", "-u", "al"), RequestCode.AUTH_DELETE_USER, {"username": "al"}),
        Sent(("createAcl", *_RULE_WORDS), RequestCode.AUTH_CREATE_ACL, {"subject": "User:al"}, _RULE),
        Sent(("updateAcl", *_RULE_WORDS), RequestCode.AUTH_UPDATE_ACL, {"subject": "User:al"}, _RULE),
        Sent(
            ("deleteAcl", "-s", "User:al", "-r", "Topic:orders"),
            RequestCode.AUTH_DELETE_ACL,
            {"subject": "User:al", "resource": "Topic:orders"},
        ),
        Sent(
            ("updateAclConfig", "-a", "al", "-s", "secret12", "-m", "true", "-t", "orders=PUB|SUB"),
            RequestCode.UPDATE_AND_CREATE_ACL_CONFIG,
            {"accessKey": "al", "secretKey": "secret12", "admin": "true", "topicPerms": "orders=PUB|SUB"},
        ),
        Sent(("deleteAclConfig", "-a", "al"), RequestCode.DELETE_ACL_CONFIG, {"accessKey": "al"}),
        Sent(
            ("updateGlobalWhiteAddr", "-g", "10.0.0.*,10.1.1.1", "-p", "/etc/acl.yml"),
            RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
            {"globalWhiteAddrs": "10.0.0.*,10.1.1.1", "aclFileFullPath": "/etc/acl.yml"},
        ),
    ],
    ids=named,
)
def test_a_change_of_access_goes_to_masters_and_says_what_it_is(
    given: Sent, pair: PlayedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = pair.runs(monkeypatch, *given.words, "-c", CLUSTER, "--json")
    assert shown.exit_code == Exit.DONE, shown.output
    assert msgspec.json.decode(shown.stdout) == [{"brokerAddr": MASTER, "isDone": True}]
    ((address, sent),) = [(at, command) for at, command in pair.asked if command.code == given.code]
    assert (address, sent.ext) == (MASTER, given.ext)
    assert (msgspec.json.decode(bytes(sent.body)) if sent.body else None) == given.body


def test_a_password_that_is_a_dash_is_asked_for_and_not_on_the_command_line(
    pair: PlayedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = pair.runs(monkeypatch, "createUser", "-u", "al", "-p", "-", "-b", MASTER, typed="typed\n")
    assert shown.exit_code == Exit.DONE, shown.output
    assert msgspec.json.decode(bytes(pair.asked[-1][1].body))["password"] == "typed"
    assert "typed" not in shown.output


@pytest.mark.parametrize(
    ("given", "answer", "found"),
    [
        (Sent(("getUser", "-u", "al"), RequestCode.AUTH_GET_USER, {"username": "al"}), _USER, [_USER]),
        (Sent(("listUser", "-f", "a"), RequestCode.AUTH_LIST_USER, {"filter": "a"}), [_USER], [_USER]),
        (Sent(("listUser",), RequestCode.AUTH_LIST_USER, {}), None, []),
        (Sent(("getAcl", "-s", "User:al"), RequestCode.AUTH_GET_ACL, {"subject": "User:al"}), _RULE, [_RULE]),
        (
            Sent(
                ("listAcl", "-s", "al", "-r", "orders"),
                RequestCode.AUTH_LIST_ACL,
                {"subjectFilter": "al", "resourceFilter": "orders"},
            ),
            [_RULE],
            [_RULE],
        ),
    ],
)
def test_users_and_rules_are_shown_as_a_broker_tells_them(
    given: Sent,
    answer: object,
    found: list[object],
    pair: PlayedFleet,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = b"" if answer is None else msgspec.json.encode(answer)
    pair.answers = {given.code: lambda _, command: command.reply(body=body)}
    shown = pair.runs(monkeypatch, *given.words, "-b", MASTER, "--json")
    assert shown.exit_code == Exit.DONE, shown.output
    assert msgspec.json.decode(shown.stdout) == {MASTER: found}
    assert pair.asked[-1][1].ext == given.ext
    lines = pair.runs(monkeypatch, *given.words, "-b", MASTER).stdout.splitlines()
    assert [line.split(": ", 1)[0] for line in lines] == [MASTER] * len(found)


def test_the_version_of_access_rules_is_asked_of_slaves_too(
    pair: PlayedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.dead = {SLAVE}
    pair.answers = {
        RequestCode.GET_BROKER_CLUSTER_ACL_INFO: lambda _, command: command.reply(
            ext={"version": "3", "brokerName": "broker-a"}
        )
    }
    shown = pair.runs(monkeypatch, "clusterAclConfigVersion", "-c", CLUSTER, "--json")
    assert shown.exit_code == Exit.PARTLY
    assert msgspec.json.decode(shown.stdout) == {MASTER: {"version": "3", "brokerName": "broker-a"}}
    assert (
        f"{SLAVE}: cannot connect" in pair.runs(monkeypatch, "clusterAclConfigVersion", "-c", CLUSTER).output
    )


@pytest.mark.parametrize(
    "given",
    [
        Sent(
            ("updateColdDataFlowCtrGroupConfig", "-g", "billing", "-v", "4096"),
            RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG,
            {},
            b"billing=4096\n",
        ),
        Sent(
            ("removeColdDataFlowCtrGroupConfig", "-g", "billing"),
            RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG,
            {},
            b"billing",
        ),
        Sent(
            ("setCommitLogReadAheadMode", "-m", "1"),
            RequestCode.SET_COMMITLOG_READ_MODE,
            {"READ_AHEAD_MODE": "1"},
            b"",
        ),
    ],
    ids=named,
)
def test_what_a_broker_reads_from_old_files_is_said_to_slaves_too(
    given: Sent, pair: PlayedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = pair.runs(monkeypatch, *given.words, "-c", CLUSTER, "--json")
    assert shown.exit_code == Exit.DONE, shown.output
    assert [each["brokerAddr"] for each in msgspec.json.decode(shown.stdout)] == [MASTER, SLAVE]
    sent = [
        (at, command.ext, bytes(command.body)) for at, command in pair.asked if command.code == given.code
    ]
    assert sent == [(MASTER, given.ext, given.body), (SLAVE, given.ext, given.body)]


def test_what_is_held_back_of_old_files_is_shown_as_a_broker_writes_it(
    pair: PlayedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = '{"runtimeTable":{"billing":{"coldAcc":4096}}}'
    pair.answers = {
        RequestCode.GET_COLD_DATA_FLOW_CTR_INFO: lambda _, command: command.reply(body=told.encode())
    }
    shown = pair.runs(monkeypatch, "getColdDataFlowCtrInfo", "-c", CLUSTER, "--json")
    assert (shown.exit_code, msgspec.json.decode(shown.stdout)) == (Exit.DONE, {MASTER: told, SLAVE: told})
    pair.dead = {MASTER, SLAVE}
    gone = pair.runs(monkeypatch, "getColdDataFlowCtrInfo", "-b", MASTER)
    assert gone.exit_code == Exit.NO_ANSWER
    assert f"{MASTER}: cannot connect" in gone.output


def test_a_slave_is_told_what_its_master_has_flushed(
    pair: PlayedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = pair.runs(monkeypatch, "resetMasterFlushOffset", "-b", SLAVE, "-o", "4096", "--json")
    assert shown.exit_code == Exit.DONE, shown.output
    assert msgspec.json.decode(shown.stdout) == {"brokerAddr": SLAVE, "offset": 4096}
    ((address, sent),) = pair.asked
    assert (address, sent.code, sent.ext) == (
        SLAVE,
        RequestCode.RESET_MASTER_FLUSH_OFFSET,
        {"masterFlushOffset": "4096"},
    )


def test_a_group_is_told_to_get_a_topic_by_pop(pair: PlayedFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("setConsumeMode", "-c", CLUSTER, "-g", "billing", "-t", "orders", "-m", "POP", "-q", "4")
    shown = pair.runs(monkeypatch, *words, "--json")
    assert shown.exit_code == Exit.DONE, shown.output
    ((address, sent),) = [
        (at, command) for at, command in pair.asked if command.code == RequestCode.SET_MESSAGE_REQUEST_MODE
    ]
    assert address == MASTER
    assert msgspec.json.decode(bytes(sent.body)) == {
        "topic": "orders",
        "consumerGroup": "billing",
        "mode": "POP",
        "popShareQueueNum": 4,
    }


def test_a_broker_that_knows_no_such_order_is_told_with_a_code_of_its_own(
    pair: PlayedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.answers = {
        RequestCode.AUTH_CREATE_USER: lambda _, command: command.reply(
            ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark="rules are in plain_acl.yml"
        )
    }
    shown = pair.runs(monkeypatch, "createUser", "-u", "al", "-p", "pw", "-c", CLUSTER)
    assert shown.exit_code == Exit.NOT_SUPPORTED
    assert "rules are in plain_acl.yml" in shown.output
    assert NAME_SERVER in [address for address, _ in pair.asked]
