"""What a slave does not do that a master does, with the same store and the same messages in it."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tanist.model.groups import ConsumeFromWhere, ConsumeType, MessageModel
from tanist.model.message import SysFlag
from tanist.protocol import Command, RequestCode, ResponseCode, encode_command
from tanist.protocol.bodies import decode_java_json, encode_body
from tanist.protocol.bodies.client import ConsumerData, HeartbeatData, ProducerData
from tanist.protocol.bodies.replication import HAClientView, HARuntimeInfo
from tanist.protocol.bodies.sync import SubscriptionGroupTable, TopicConfigTable
from tanist.protocol.headers.pull import PullSysFlag
from tanist.protocol.properties import encode_properties
from tanist.testing import EmbeddedBroker
from tests.support.requests import GROUP, TOPIC, pull_request, send_request
from tests.support.site import wait_until
from tests.support.wire import Wire

C, R = RequestCode, ResponseCode
PRODUCERS = "producers"
QUESTIONS = {"transactionTimeOut": "1", "transactionCheckInterval": "200", "transactionCheckMax": "10000"}
SLAVE = {"brokerRole": "SLAVE", "brokerId": "1"}


@contextmanager
def broker_on(store: Path, settings: dict[str, str] | None = None) -> Generator[Wire]:
    given = {"messageDelayLevel": "1s 2s", **QUESTIONS, **(settings or {})}
    with EmbeddedBroker(store=store, settings=given) as broker, Wire(broker.address) as wire:
        yield wire


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """What a master has left: a message, one that waits, and half a transaction."""
    half = encode_properties({"TRAN_MSG": "true", "PGROUP": PRODUCERS, "UNIQ_KEY": "half"}).decode()
    with broker_on(tmp_path / "store") as wire:
        ok(wire, send_request(b"plain"))
        ok(wire, pull_request())
        ok(wire, send_request(b"delayed", properties="UNIQ_KEY\x01delayed\x02DELAY\x011\x02"))
        ok(
            wire,
            send_request(
                b"half",
                properties=half,
                sys_flag=int(SysFlag.PREPARED),
                born_timestamp_ms=time.time_ns() // 1_000_000,
            ),
        )
    return tmp_path / "store"


def ok(wire: Wire, request: Command) -> Command:
    answer = wire.ask(request)
    assert answer.code == R.SUCCESS, answer.remark
    return answer


def beat(wire: Wire) -> None:
    heartbeat = HeartbeatData(client_id="one", producer_data_set=[ProducerData(group_name=PRODUCERS)])
    ok(wire, Command.request(C.HEART_BEAT, body=encode_body(heartbeat)))


def consume_as(wire: Wire, group: str) -> None:
    consumer = ConsumerData(
        group_name=group,
        consume_type=ConsumeType.PASSIVELY,
        message_model=MessageModel.CLUSTERING,
        consume_from_where=ConsumeFromWhere.FIRST_OFFSET,
    )
    heartbeat = HeartbeatData(client_id="one", consumer_data_set=[consumer])
    wire.send(encode_command(Command.request(C.HEART_BEAT, body=encode_body(heartbeat))))
    # The members of the group are told first that there is one more.
    while (answer := wire.receive()) is not None and not answer.is_response:
        assert answer.code == C.NOTIFY_CONSUMER_IDS_CHANGED


def ha_status(wire: Wire) -> HARuntimeInfo:
    return decode_java_json(ok(wire, Command.request(C.GET_BROKER_HA_STATUS)).body, HARuntimeInfo)


def client(wire: Wire) -> HAClientView:
    return ha_status(wire).client


def log_end(wire: Wire) -> int:
    status = ha_status(wire)
    return status.log_end if status.is_master else status.client.log_end


@pytest.mark.behaviour("S1-3", "S1-4", "S1-31")
def test_a_slave_delivers_nothing_and_asks_about_no_transaction_and_a_master_does(store: Path) -> None:
    with broker_on(store, SLAVE) as wire:
        beat(wire)
        before, due_s = log_end(wire), time.time() + 1
        wait_until(lambda: time.time() > due_s)
        # A question would come before the answer; a delivery would have made the log longer.
        assert log_end(wire) == before
    with broker_on(store) as wire:
        beat(wire)
        question = wire.receive()
        assert question is not None
        assert question.code == C.CHECK_TRANSACTION_STATE
    with broker_on(store) as wire:
        assert log_end(wire) > before


def test_a_slave_serves_what_it_holds_and_takes_nothing(store: Path) -> None:
    with broker_on(store, SLAVE) as wire:
        assert b"plain" in bytes(ok(wire, pull_request()).body)
        before = log_end(wire)
        for request, code in (
            (send_request(b"new"), R.SERVICE_NOT_AVAILABLE),
            (Command.request(C.UPDATE_AND_CREATE_TOPIC), R.SYSTEM_ERROR),
            (Command.request(C.DELETE_SUBSCRIPTIONGROUP), R.SYSTEM_ERROR),
            (Command.request(C.CONSUMER_SEND_MSG_BACK), R.SYSTEM_ERROR),
            (Command.request(C.END_TRANSACTION), R.SLAVE_NOT_AVAILABLE),
        ):
            answer = wire.ask(request)
            assert (answer.code, "slave" in (answer.remark or "")) == (code, True)
        assert log_end(wire) == before


def test_a_slave_makes_no_groups_and_topics_of_its_own(store: Path) -> None:
    with broker_on(store, SLAVE) as wire:
        consume_as(wire, "Newcomers")
        groups = ok(wire, Command.request(C.GET_ALL_SUBSCRIPTIONGROUP_CONFIG))
        topics = ok(wire, Command.request(C.GET_ALL_TOPIC_CONFIG))
    assert "Newcomers" not in decode_java_json(groups.body, SubscriptionGroupTable).groups
    assert "%RETRY%Newcomers" not in decode_java_json(topics.body, TopicConfigTable).topics


def test_a_new_slave_has_no_tables_of_its_own_and_a_master_has(tmp_path: Path) -> None:
    """Also not when its settings ask for a system topic more."""
    for settings, is_master in ((SLAVE, False), (dict[str, str](), True)):
        with broker_on(tmp_path / "store", settings) as wire:
            ok(wire, Command.request(C.UPDATE_BROKER_CONFIG, body=b"autoCreateTopicEnable=true\n"))
            assert (wire.ask(Command.request(C.GET_ALL_TOPIC_CONFIG)).code == R.SUCCESS) is is_master
            groups = ok(wire, Command.request(C.GET_ALL_SUBSCRIPTIONGROUP_CONFIG))
            assert bool(decode_java_json(groups.body, SubscriptionGroupTable).groups) is is_master


def test_a_slave_does_not_store_the_offset_that_a_pull_brings(store: Path) -> None:
    for settings, is_stored in ((SLAVE, False), (dict[str, str](), True)):
        with broker_on(store, settings) as wire:
            pull = pull_request()
            pull.ext["sysFlag"] = str(int(PullSysFlag.COMMIT_OFFSET | PullSysFlag.SUBSCRIPTION))
            pull.ext["commitOffset"] = "1"
            ok(wire, pull)
            offsets = bytes(ok(wire, Command.request(C.GET_ALL_CONSUMER_OFFSET)).body)
            assert (f"{TOPIC}@{GROUP}".encode() in offsets) is is_stored


def test_a_slave_that_is_told_an_impossible_address_says_so_and_serves_on(store: Path) -> None:
    with broker_on(store, {**SLAVE, "haMasterAddress": "no..name:10912"}) as wire:
        wait_until(lambda: "can not connect" in (client(wire).reason or ""))
        assert b"plain" in bytes(ok(wire, pull_request()).body)
