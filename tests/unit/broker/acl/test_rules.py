"""What the access rules say to requests."""

import ipaddress

import pytest

from tanist.broker.acl.needs import Needs
from tanist.broker.acl.plain_acl import parse_plain_acl
from tanist.broker.acl.rules import AccessRules, join_rules, make_rules
from tanist.broker.settings import BrokerSettings
from tanist.errors import ProtocolError
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.message_id import encode_offset_id
from tests.support.acl import KEY, PLAIN_ACL, SECRET, signed

C = RequestCode
TOPICS = {0: "Read", 1: "Written", 2: "Both", 3: "%RETRY%DeniedGroup"}
NEEDS = Needs(BrokerSettings(msg_trace_topic_name="OurTraces"), TOPICS.get)
REPLIES = "DefaultCluster_REPLY_TOPIC"
HEARTBEAT = (
    '{"clientID":"c","producerDataSet":[{"groupName":"P"}],"consumerDataSet":[{"groupName":"%s",'
    '"consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING","consumeFromWhere":'
    '"CONSUME_FROM_LAST_OFFSET","subscriptionDataSet":[{"topic":"%s","subString":"*"},'
    '{"topic":"%%RETRY%%G","subString":"*"}]}]}'
)


def rules_of(text: str = PLAIN_ACL) -> AccessRules:
    found = parse_plain_acl(text.encode())
    assert found is not None
    return make_rules(found)


def account(**fields: str) -> str:
    lines = "".join(f"\n    {key}: {value}" for key, value in fields.items())
    return f"accounts:\n  - accessKey: {KEY}\n    secretKey: {SECRET}{lines}\n"


def refusal(
    request: Command, *, address: str = "10.0.0.1", rules: AccessRules | None = None, needs: Needs = NEEDS
) -> str | None:
    return (rules or rules_of()).refusal(request, ipaddress.ip_address(address).packed, needs)


def pull(topic: str, group: str) -> dict[str, str]:
    return {"topic": topic, "consumerGroup": group}


def sent_back(group: str, log_offset: int) -> dict[str, str]:
    return {"group": group, "offset": str(log_offset), "delayLevel": "0"}


def direct(group: str, log_offset: int) -> dict[str, str]:
    return {"consumerGroup": group, "msgId": encode_offset_id(bytes(8), log_offset)}


def ended(log_offset: int) -> dict[str, str]:
    return {
        "producerGroup": "P",
        "tranStateTableOffset": "0",
        "commitLogOffset": str(log_offset),
        "commitOrRollback": "8",
        "msgId": "",
    }


@pytest.mark.parametrize("code", [C.SEND_MESSAGE_V2, C.HEART_BEAT, C.UPDATE_AND_CREATE_TOPIC, 9999])
def test_an_address_on_the_list_of_all_needs_nothing(code: int) -> None:
    assert refusal(Command.request(code, body=b"no heartbeat"), address="10.10.103.7") is None
    assert refusal(Command.request(code, body=b"no heartbeat"), address="10.10.104.7") == "no access key"


def test_an_address_on_the_list_of_an_account_needs_its_key_alone() -> None:
    unsigned = Command.request(C.UPDATE_AND_CREATE_TOPIC, ext={"AccessKey": "operator-key"})
    assert refusal(unsigned, address="192.168.1.9") is None
    assert refusal(unsigned, address="192.168.2.9") == "wrong signature"
    of_another = Command.request(C.UPDATE_AND_CREATE_TOPIC, ext={"AccessKey": KEY})
    assert refusal(of_another, address="192.168.1.9") == "wrong signature"


@pytest.mark.parametrize("address", ["10.10.103.7", "192.168.1.7"])
def test_no_address_is_trusted_to_decide_about_a_reset(address: str) -> None:
    code, ext = C.DECIDE_RESET, {"orderId": "o1"}
    assert refusal(Command.request(code, ext=ext), address=address) == "no access key"
    named = Command.request(code, ext={**ext, "AccessKey": "operator-key"})
    assert refusal(named, address=address) == "wrong signature"
    assert refusal(signed(code, ext), address=address) == f"request code {code} needs an admin's account"
    assert refusal(signed(code, ext, access_key="operator-key"), address=address) is None


def test_only_the_signature_of_the_accounts_own_secret_counts() -> None:
    ext = {"b": "Both"}
    assert refusal(signed(C.SEND_MESSAGE_V2, ext, body=b"x")) is None
    assert refusal(signed(C.SEND_MESSAGE_V2, ext, secret="87654321")) == "wrong signature"
    assert refusal(signed(C.SEND_MESSAGE_V2, ext, access_key="nobody-key")) == "unknown access key"


def test_a_changed_field_or_body_breaks_the_signature() -> None:
    changed_field = signed(C.SEND_MESSAGE_V2, {"b": "Both"})
    changed_field.ext["b"] = "Written"
    changed_body = signed(C.SEND_MESSAGE_V2, {"b": "Both"}, body=b"one")
    changed_body.body = b"two"
    for request in (changed_field, changed_body):
        assert refusal(request) == "wrong signature"


@pytest.mark.parametrize("signature", ["", "é", "\ud800", "x" * 100_000])
def test_any_text_may_stand_where_the_signature_belongs(signature: str) -> None:
    request = signed(C.SEND_MESSAGE_V2, {"b": "Both"})
    request.ext["Signature"] = signature
    assert refusal(request) == "wrong signature"


@pytest.mark.parametrize(
    ("code", "ext", "lack"),
    [
        (C.SEND_MESSAGE, {"topic": "Written"}, None),
        (C.SEND_MESSAGE, {"topic": "Read"}, "it lacks PUB on topic Read"),
        (C.SEND_MESSAGE_V2, {"b": "Both"}, None),
        (C.SEND_MESSAGE_V2, {"b": "Denied"}, "it lacks PUB on topic Denied"),
        (C.SEND_MESSAGE_V2, {"b": "Unnamed"}, "it lacks PUB on topic Unnamed"),
        (C.SEND_BATCH_MESSAGE, {"b": "Read"}, "it lacks PUB on topic Read"),
        (C.SEND_MESSAGE_V2, {"b": "%RETRY%AnyGroup", "a": "CLIENT_INNER_PRODUCER"}, None),
        (C.SEND_MESSAGE_V2, {"b": "%RETRY%DeniedGroup"}, "it lacks SUB on group DeniedGroup"),
        (C.SEND_MESSAGE_V2, {"b": "OurTraces"}, None),
        (C.SEND_MESSAGE_V2, {"b": "RMQ_SYS_TRACE_TOPIC"}, "it lacks PUB on topic RMQ_SYS_TRACE_TOPIC"),
        (C.PULL_MESSAGE, pull("OurTraces", "G"), "it lacks SUB on topic OurTraces"),
        (C.SEND_REPLY_MESSAGE, {"topic": REPLIES}, None),
        (C.SEND_REPLY_MESSAGE, {"topic": "Read"}, "it lacks PUB on topic Read"),
        (C.SEND_REPLY_MESSAGE_V2, {"b": REPLIES}, None),
        (C.SEND_REPLY_MESSAGE_V2, {"b": "Read"}, "it lacks PUB on topic Read"),
        (C.SEND_MESSAGE_V2, {"b": REPLIES}, f"it lacks PUB on topic {REPLIES}"),
        (C.CONSUMER_SEND_MSG_BACK, sent_back("AnyGroup", 0), None),
        (C.CONSUMER_SEND_MSG_BACK, sent_back("DeniedGroup", 0), "it lacks SUB on group DeniedGroup"),
        (C.CONSUMER_SEND_MSG_BACK, sent_back("AnyGroup", 1), "it lacks SUB on topic Written"),
        (C.CONSUMER_SEND_MSG_BACK, sent_back("AnyGroup", 3), "it lacks SUB on group DeniedGroup"),
        (C.VIEW_MESSAGE_BY_ID, {"offset": "0"}, None),
        (C.VIEW_MESSAGE_BY_ID, {"offset": "1"}, "it lacks SUB on topic Written"),
        (C.VIEW_MESSAGE_BY_ID, {"offset": "99"}, None),
        (C.CONSUME_MESSAGE_DIRECTLY, direct("AnyGroup", 0), None),
        (C.CONSUME_MESSAGE_DIRECTLY, direct("AnyGroup", 1), "it lacks SUB on topic Written"),
        (C.CONSUME_MESSAGE_DIRECTLY, direct("DeniedGroup", 0), "it lacks SUB on group DeniedGroup"),
        (C.END_TRANSACTION, ended(2), None),
        (C.END_TRANSACTION, ended(0), "it lacks PUB on topic Read"),
        (C.QUERY_CONSUME_QUEUE, {"topic": "Read"}, None),
        (C.QUERY_CONSUME_QUEUE, {"topic": "Written"}, "it lacks SUB on topic Written"),
        (C.PULL_MESSAGE, pull("Read", "AnyGroup"), None),
        (C.PULL_MESSAGE, pull("Written", "AnyGroup"), "it lacks SUB on topic Written"),
        (C.PULL_MESSAGE, pull("Read", "DeniedGroup"), "it lacks SUB on group DeniedGroup"),
        (C.PULL_MESSAGE, pull("%RETRY%AnyGroup", "AnyGroup"), None),
        (C.PULL_MESSAGE, pull("%RETRY%DeniedGroup", "AnyGroup"), "it lacks SUB on group DeniedGroup"),
        (C.LITE_PULL_MESSAGE, pull("Written", "AnyGroup"), "it lacks SUB on topic Written"),
        (C.QUERY_MESSAGE, {"topic": "Written"}, "it lacks SUB on topic Written"),
        (C.UNREGISTER_CLIENT, {"clientID": "c", "producerGroup": "P"}, None),
        (C.UNREGISTER_CLIENT, {"consumerGroup": "DeniedGroup"}, "it lacks SUB on group DeniedGroup"),
        (C.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": "AnyGroup"}, None),
        (C.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": "DeniedGroup"}, "it lacks SUB on group DeniedGroup"),
        (C.UPDATE_CONSUMER_OFFSET, pull("Read", "AnyGroup"), None),
        (C.UPDATE_CONSUMER_OFFSET, pull("Denied", "AnyGroup"), "it lacks SUB on topic Denied"),
        (
            C.INVOKE_BROKER_TO_RESET_OFFSET,
            {"topic": "Read", "group": "DeniedGroup"},
            "it lacks SUB on group DeniedGroup",
        ),
        (C.APPLY_RESET, {"topic": "Denied", "group": "AnyGroup"}, "it lacks SUB on topic Denied"),
        (C.RESET_RECEIPT, {"topic": "Read", "group": "DeniedGroup"}, "it lacks SUB on group DeniedGroup"),
        (C.GET_RESET_ORDERS, {"group": "DeniedGroup"}, None),
        (C.GET_MAX_OFFSET, {"topic": "Denied"}, None),
        (C.UPDATE_AND_CREATE_TOPIC, {"topic": "Both"}, "request code 17 needs an admin's account"),
        (C.UPDATE_BROKER_CONFIG, {}, "request code 25 needs an admin's account"),
        (C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, "request code 200 needs an admin's account"),
        (C.DELETE_SUBSCRIPTIONGROUP, {}, "request code 207 needs an admin's account"),
        (C.DELETE_TOPIC_IN_BROKER, {}, "request code 215 needs an admin's account"),
        (C.REBUILD_SLAVE, {}, "request code 20001 needs an admin's account"),
        (C.END_SLAVE_CONSUME, {}, "request code 20006 needs an admin's account"),
        (C.DECIDE_RESET, {}, "request code 20009 needs an admin's account"),
        (C.GET_SLAVE_CONSUME_STATUS, {}, None),
    ],
)
def test_a_request_needs_what_it_is_about(code: int, ext: dict[str, str], lack: str | None) -> None:
    assert refusal(signed(code, ext)) == lack
    assert refusal(signed(code, ext, access_key="operator-key")) is None


@pytest.mark.parametrize(
    ("group", "topic", "lack"),
    [
        ("AnyGroup", "Read", None),
        ("AnyGroup", "Written", "it lacks SUB on topic Written"),
        ("DeniedGroup", "Read", "it lacks SUB on group DeniedGroup"),
    ],
)
def test_a_heartbeat_needs_its_groups_and_their_topics(group: str, topic: str, lack: str | None) -> None:
    request = signed(C.HEART_BEAT, body=(HEARTBEAT % (group, topic)).encode())
    assert refusal(request) == lack


@pytest.mark.parametrize("code", [C.LOCK_BATCH_MQ, C.UNLOCK_BATCH_MQ])
def test_locks_need_the_group_that_they_are_for(code: int) -> None:
    def locks_of(group: str) -> Command:
        return signed(code, body=f'{{"clientId":"c","consumerGroup":"{group}","mqSet":[]}}'.encode())

    assert refusal(locks_of("AnyGroup")) is None
    assert refusal(locks_of("DeniedGroup")) == "it lacks SUB on group DeniedGroup"


def test_a_heartbeat_is_read_only_once_its_signature_is_right() -> None:
    assert refusal(signed(C.HEART_BEAT, body=b"{", secret="87654321")) == "wrong signature"
    with pytest.raises(ProtocolError):
        refusal(signed(C.HEART_BEAT, body=b"{"))


def test_an_admin_with_permissions_of_its_own_has_only_those() -> None:
    rules = rules_of(account(admin="true", topicPerms="[Read=SUB]"))
    assert refusal(signed(C.UPDATE_AND_CREATE_TOPIC, {"topic": "Any"}), rules=rules) is None
    assert refusal(signed(C.SEND_MESSAGE, {"topic": "Any"}), rules=rules) == "it lacks PUB on topic Any"


@pytest.mark.parametrize(
    ("word", "may_send", "may_pull"),
    [
        *(("DENY", False, False), ("PUB", True, False), ("SUB", False, True)),
        *(("PUB|SUB", True, True), ("SUB|PUB", True, True), ("ANY", True, True)),
    ],
)
def test_every_word_for_a_permission(word: str, *, may_send: bool, may_pull: bool) -> None:
    for fields in ({"defaultTopicPerm": word}, {"topicPerms": f"[ 'T = {word}' ]"}):
        rules = rules_of(account(defaultGroupPerm="SUB", **fields))
        assert (refusal(signed(C.SEND_MESSAGE, {"topic": "T"}), rules=rules) is None) == may_send
        assert (refusal(signed(C.PULL_MESSAGE, pull("T", "G")), rules=rules) is None) == may_pull


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"defaultTopicPerm": "PUP"}, "'PUP' is no permission; use one of DENY, PUB"),
        ({"topicPerms": "[T]"}, "'T' is not NAME=PERMISSION"),
        ({"groupPerms": "[=SUB]"}, "'=SUB' is not NAME=PERMISSION"),
        ({"groupPerms": "[G=sub]"}, "'sub' is no permission"),
        ({"whiteRemoteAddress": "10.0.0"}, "'10.0.0' is no address"),
    ],
)
def test_an_account_that_makes_no_sense_is_named(fields: dict[str, str], reason: str) -> None:
    with pytest.raises(ValueError, match=f"account '{KEY}': .*{reason.replace('|', '.')}"):
        rules_of(account(**fields))


@pytest.mark.parametrize(("access_key", "secret"), [("sixsix", SECRET), (KEY, "sesame")])
def test_keys_as_short_as_six_characters_are_refused_and_not_shown(access_key: str, secret: str) -> None:
    with pytest.raises(ValueError, match="at least 7") as refused:
        rules_of(f"accounts: [{{accessKey: {access_key}, secretKey: {secret}}}]")
    assert "sesame" not in str(refused.value)


def test_of_several_accounts_with_one_key_the_first_counts() -> None:
    first, second = rules_of(account(defaultTopicPerm="PUB")), rules_of(account(defaultTopicPerm="SUB"))
    joined = join_rules([first, rules_of(), second])
    assert joined.repeated == {KEY}
    assert refusal(signed(C.SEND_MESSAGE, {"topic": "T"}), rules=joined) is None
    assert refusal(Command.request(C.SEND_MESSAGE), address="10.10.103.1", rules=joined) is None
    twice = f"accounts: [{', '.join(2 * ['{accessKey: somebody, secretKey: 12345678}'])}]"
    assert rules_of(twice).repeated == {"somebody"}


def test_no_account_shows_its_secret() -> None:
    assert SECRET not in repr(rules_of())
