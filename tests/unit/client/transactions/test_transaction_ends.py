"""What ends a transaction on the wire, and what a broker's question is read as."""

import pytest

from tanist.client.message import Receipt, SendStatus
from tanist.client.transactions.transaction_ends import Outcome, answer_to, end_of, read_question
from tanist.errors import RemoteProtocolError
from tanist.model.host import pack_host
from tanist.model.message import SysFlag
from tanist.model.offsets import QueueOffset
from tanist.model.route import MessageQueue
from tanist.protocol import Command, RequestCode
from tanist.protocol.compression import Compression, compress_body
from tanist.protocol.message_id import encode_offset_id
from tests.support.questions import question, record_of

HOST = pack_host("10.0.0.7", 10911)
RECEIPT = Receipt(
    message_id="7F0000010001",
    offset_id=encode_offset_id(HOST, 4096),
    queue=MessageQueue(topic="Orders", broker_name="broker-a", queue_id=3),
    queue_offset=QueueOffset(17),
    status=SendStatus.OK,
    transaction_id="7F0000010001",
)


@pytest.mark.parametrize(
    ("outcome", "wire_code"), [(Outcome.COMMIT, "8"), (Outcome.ROLLBACK, "12"), (Outcome.UNKNOWN, "0")]
)
def test_an_end_names_both_places_of_the_half_and_the_outcome(outcome: Outcome, wire_code: str) -> None:
    end = end_of(RECEIPT, outcome, group="P")
    assert end.code == RequestCode.END_TRANSACTION
    assert end.ext == {
        "producerGroup": "P",
        "tranStateTableOffset": "17",
        "commitLogOffset": "4096",
        "commitOrRollback": wire_code,
        "msgId": "7F0000010001",
        "fromTransactionCheck": "false",
        "transactionId": "7F0000010001",
        "topic": "Orders",
        "bname": "broker-a",
    }


def test_the_message_id_is_the_transaction_id_where_a_broker_gives_none() -> None:
    old = Receipt(
        message_id="7F0000010002",
        offset_id=RECEIPT.offset_id,
        queue=RECEIPT.queue,
        queue_offset=RECEIPT.queue_offset,
    )
    assert end_of(old, Outcome.COMMIT, group="P").ext["transactionId"] == "7F0000010002"


def test_a_receipt_without_a_place_in_the_log_ends_nothing() -> None:
    nowhere = Receipt(message_id="a", offset_id="0", queue=RECEIPT.queue, queue_offset=QueueOffset(0))
    with pytest.raises(RemoteProtocolError, match="is not hex"):
        end_of(nowhere, Outcome.COMMIT, group="P")


def test_a_question_carries_the_message_as_its_producer_sent_it() -> None:
    asked = read_question(question(body=b"paid", properties={"TAGS": "A", "own": "yes"}))
    message = asked.message
    assert (message.topic, message.body, message.tags, message.properties["own"]) == (
        "Orders",
        b"paid",
        "A",
        "yes",
    )
    assert (asked.group, asked.transaction_id) == ("P", "unique-1")
    assert message.queue == MessageQueue(topic="Orders", broker_name="broker-a", queue_id=3)


def test_a_compressed_message_is_asked_about_in_the_clear() -> None:
    flag = int(SysFlag.COMPRESSED) | Compression.ZLIB
    asked = read_question(question(body=compress_body(b"large " * 1000, flag), sys_flag=flag))
    assert asked.message.body == b"large " * 1000


@pytest.mark.parametrize("outcome", Outcome)
def test_an_answer_gives_back_the_places_that_the_broker_named(outcome: Outcome) -> None:
    answer = answer_to(read_question(question(queue_offset=5, log_offset=8192)), outcome)
    assert answer.code == RequestCode.END_TRANSACTION
    assert answer.ext == {
        "producerGroup": "P",
        "tranStateTableOffset": "5",
        "commitLogOffset": "8192",
        "commitOrRollback": str(outcome.value),
        "msgId": "unique-1",
        "fromTransactionCheck": "true",
        "transactionId": "unique-1",
        "topic": "RMQ_SYS_TRANS_HALF_TOPIC",
        "bname": "broker-a",
    }


def test_a_question_that_names_no_group_is_none() -> None:
    with pytest.raises(RemoteProtocolError, match="names no group"):
        read_question(question(group=None))


def test_a_question_of_an_old_broker_says_neither_broker_nor_topic() -> None:
    ext = {"tranStateTableOffset": "1", "commitLogOffset": "2", "transactionId": "unique-1"}
    old = Command.request(RequestCode.CHECK_TRANSACTION_STATE, ext=ext, body=record_of())
    answer = answer_to(read_question(old), Outcome.ROLLBACK)
    assert answer.ext["msgId"] == "unique-1"
    assert answer.ext.keys().isdisjoint({"topic", "bname"})


def test_what_holds_no_record_is_no_question() -> None:
    bad = question()
    bad.body = b"\0" * 20
    with pytest.raises(RemoteProtocolError):
        read_question(bad)
