"""Messages that ``tanist admin`` finds at brokers that are played, also when who stored them is dead."""

import msgspec
import pytest

from tanist.cli.exit_codes import Exit
from tanist.model.host import pack_host
from tanist.model.message import Message
from tanist.model.topics import retry_topic
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.running import ConsumeDirectlyResult
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.nameserver import GetRouteRequest
from tanist.protocol.message_id import encode_offset_id
from tanist.protocol.properties import encode_properties
from tanist.protocol.record import encode_record
from tests.support.played_fleet import PlayedFleet

MASTER, SLAVE = "10.0.0.1:10911", "10.0.0.2:10911"
PLACE = pack_host("10.0.0.1", 10911)
OFFSET_ID = encode_offset_id(PLACE, 4096)


def _record(**properties: str) -> bytes:
    return encode_record(
        Message(topic="Orders", queue_id=0, body=b"paid", properties=encode_properties(properties)),
        queue_offset=7,
        log_offset=4096,
        store_timestamp_ms=1_700_000_000_000,
        store_host=PLACE,
    )


@pytest.fixture
def pair() -> PlayedFleet:
    fleet = PlayedFleet({"broker-a": {0: MASTER, 1: SLAVE}})
    fleet.answers = {
        RequestCode.VIEW_MESSAGE_BY_ID: lambda _, command: command.reply(body=_record()),
        RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: lambda _, command: command.reply(body=b'{"groupList":[]}'),
    }
    return fleet


def _consumes(fleet: PlayedFleet, result: str) -> None:
    body = encode_body(ConsumeDirectlyResult(consume_result=result))
    fleet.answers[RequestCode.CONSUME_MESSAGE_DIRECTLY] = lambda _, command: command.reply(body=body)


@pytest.mark.parametrize(
    ("result", "code"),
    [
        ("CR_SUCCESS", Exit.DONE),
        ("CR_COMMIT", Exit.DONE),
        ("CR_LATER", Exit.FAILED),
        ("CR_THROW_EXCEPTION", 1),
    ],
)
def test_a_slave_hands_a_message_on_whose_master_is_dead_and_what_the_client_did_is_told(
    result: str, code: int, pair: PlayedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.dead = {MASTER}
    _consumes(pair, result)
    words = ("queryMsgById", "-i", OFFSET_ID, "-t", "Orders", "-g", "Billing", "-d", "c@1")
    shown = pair.runs(monkeypatch, *words)
    assert shown.exit_code == code, shown.exception
    assert result in shown.output
    assert pair.who_got(RequestCode.VIEW_MESSAGE_BY_ID) == [MASTER, SLAVE]
    assert pair.who_got(RequestCode.CONSUME_MESSAGE_DIRECTLY) == [MASTER, SLAVE]


def test_a_message_is_shown_by_a_slave_while_its_master_is_dead(
    pair: PlayedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.dead = {MASTER}
    shown = pair.runs(monkeypatch, "queryMsgById", "-i", OFFSET_ID, "-t", "Orders", "--json")
    assert shown.exit_code == Exit.DONE, shown.exception
    (found,) = msgspec.json.decode(shown.output)
    assert (found["message"]["brokerName"], found["message"]["body"], found["tracks"]) == (
        "broker-a",
        "paid",
        [],
    )


@pytest.mark.parametrize("charset", ["nosuchcharset", "hex", "idna"])
def test_what_is_no_character_set_is_a_usage_error(
    charset: str, pair: PlayedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in (("queryMsgById", "-i", OFFSET_ID, "-f"), ("printMsg", "-c")):
        assert pair.runs(monkeypatch, *words, charset, "-t", "Orders").exit_code == Exit.USAGE
    assert not pair.asked


def test_a_key_is_asked_of_a_slave_while_its_master_is_dead_and_another_of_its_hash_is_left_out(
    pair: PlayedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.dead = {MASTER}
    records = b"".join(_record(KEYS=key) for key in ("o-17", "o-71", "o-1 o-17"))
    pair.answers[RequestCode.QUERY_MESSAGE] = lambda _, command: command.reply(body=records)
    shown = pair.runs(monkeypatch, "queryMsgByKey", "-t", "Orders", "-k", "o-17", "--json")
    assert shown.exit_code == Exit.DONE, shown.exception
    assert len(msgspec.json.decode(shown.output)) == 2


def test_a_group_that_no_broker_keeps_retries_of_is_unknown_and_one_without_members_not_online(
    pair: PlayedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def route(_address: str, command: Command) -> Command:
        if command.header(GetRouteRequest).topic == retry_topic("Pulling"):
            return command.reply(ResponseCode.TOPIC_NOT_EXIST, remark="no route")
        return pair.route(command)

    pair.answers |= {
        RequestCode.GET_ROUTEINFO_BY_TOPIC: route,
        RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: lambda _, command: command.reply(
            body=b'{"groupList":["Billing","Pulling"]}'
        ),
        RequestCode.GET_CONSUMER_CONNECTION_LIST: lambda _, command: command.reply(
            ResponseCode.CONSUMER_NOT_ONLINE, remark="nobody"
        ),
        RequestCode.QUERY_CONSUMER_OFFSET: lambda _, command: command.reply(
            ResponseCode.QUERY_NOT_FOUND, remark="none"
        ),
    }
    shown = pair.runs(monkeypatch, "queryMsgById", "-i", OFFSET_ID, "-t", "Orders", "--json")
    assert shown.exit_code == Exit.DONE, shown.exception
    tracks = msgspec.json.decode(shown.output)[0]["tracks"]
    found = {each["consumerGroup"]: each["trackType"] for each in tracks}
    assert found == {"Billing": "NOT_ONLINE", "Pulling": "UNKNOWN"}
