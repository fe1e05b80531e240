"""Transactions of a broker as a process, and what a kill at the worst moment takes and does not take."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tanist.model.message import SysFlag
from tanist.protocol import Command, RequestCode, ResponseCode, encode_command
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.client import HeartbeatData, ProducerData
from tanist.protocol.headers.pull import PullMessageRequest
from tanist.protocol.headers.send import SendMessageRequestV2, SendMessageResponse
from tanist.protocol.headers.transaction import CheckTransactionStateRequest, EndTransactionRequest
from tanist.protocol.message_id import decode_offset_id
from tanist.protocol.properties import encode_properties
from tanist.protocol.record import decode_record
from tests.support.tanist_cluster import BrokerProcess
from tests.support.wire import Wire

C, R = RequestCode, ResponseCode
T, GROUP = "Orders", "producers"
COMMIT, ROLLBACK = SysFlag.COMMIT, SysFlag.ROLLBACK
SETTINGS: dict[str, Any] = {
    "transactionTimeOut": 500,
    "transactionCheckInterval": 500,
    # No note of what is done with is written before the kill.
    "transactionOpBatchInterval": 600_000,
}
NOBODY = "127.0.0.1:1"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path, NOBODY, **SETTINGS) as process:
        yield process
    assert "Traceback" not in process.process.output()


class Producer(Wire):
    """A producer of transactions on one connection, which says exactly what the test wants."""

    def prepare(self, body: bytes) -> tuple[int, int]:
        """Send a half; where it lies in the half queue and in the log."""
        unique_id = f"id-{body.decode()}"
        header = SendMessageRequestV2(
            producer_group=GROUP,
            topic=T,
            default_topic="TBW102",
            default_topic_queue_count=1,
            queue_id=0,
            sys_flag=int(SysFlag.PREPARED),
            born_timestamp_ms=time.time_ns() // 1_000_000,
            flag=0,
            properties=encode_properties(
                {"TRAN_MSG": "true", "PGROUP": GROUP, "UNIQ_KEY": unique_id}
            ).decode(),
        )
        answer = self.ask(Command.request(C.SEND_MESSAGE_V2, header, body=body))
        assert answer.code == R.SUCCESS, answer.remark
        sent = answer.header(SendMessageResponse)
        return sent.queue_offset, decode_offset_id(sent.msg_id).log_offset

    def end(self, half: tuple[int, int], outcome: SysFlag = COMMIT) -> int:
        """End a transaction and wait for the answer; its code."""
        return self.ask(self._ending(half, outcome)).code

    def end_one_way(self, half: tuple[int, int], outcome: SysFlag = COMMIT) -> None:
        request = self._ending(half, outcome)
        request.flag |= 2
        self.send(encode_command(request))

    def beat(self) -> None:
        heartbeat = HeartbeatData(client_id="one", producer_data_set=[ProducerData(group_name=GROUP)])
        assert self.ask(Command.request(C.HEART_BEAT, body=encode_body(heartbeat))).code == R.SUCCESS

    def next_question(self) -> tuple[bytes, tuple[int, int]]:
        """The body that the broker asks about next, and where its half lies now."""
        command = self.receive()
        assert command is not None
        assert (command.code, command.is_one_way) == (C.CHECK_TRANSACTION_STATE, True)
        asked = command.header(CheckTransactionStateRequest)
        body = bytes(decode_record(memoryview(command.body)).body)
        return body, (asked.half_queue_offset, asked.half_log_offset)

    def _ending(self, half: tuple[int, int], outcome: SysFlag) -> Command:
        queue_offset, log_offset = half
        header = EndTransactionRequest(
            producer_group=GROUP,
            half_queue_offset=queue_offset,  # pyright: ignore[reportArgumentType]
            half_log_offset=log_offset,  # pyright: ignore[reportArgumentType]
            outcome=int(outcome),
            msg_id="any",
            is_from_check=False,
        )
        return Command.request(C.END_TRANSACTION, header)


def visible(broker: BrokerProcess) -> list[bytes]:
    header = PullMessageRequest(
        consumer_group="G",
        topic=T,
        queue_id=0,
        queue_offset=0,  # pyright: ignore[reportArgumentType]
        max_message_count=32,
        sys_flag=4,
        consumer_offset=0,  # pyright: ignore[reportArgumentType]
        suspend_timeout_ms=0,
        subscription="*",
        sub_version=0,
    )
    with Wire(broker.address) as wire:
        data = memoryview(wire.ask(Command.request(C.PULL_MESSAGE, header)).body)
    found: list[bytes] = []
    while data:
        record = decode_record(data)
        found.append(bytes(record.body))
        data = data[record.size_bytes :]
    return found


def test_a_half_survives_a_kill_and_is_committed_then(broker: BrokerProcess) -> None:
    with Producer(broker.address) as producer:
        halves = [producer.prepare(b"%d" % number) for number in range(3)]
        assert visible(broker) == []
    broker.kill()
    broker.restart()
    with Producer(broker.address) as producer:
        assert visible(broker) == []
        assert producer.end(halves[1]) == R.SUCCESS
        assert producer.end(halves[0], ROLLBACK) == R.SUCCESS
        assert visible(broker) == [b"1"]
        producer.beat()
        body, half = producer.next_question()
        assert body == b"2"
        producer.end_one_way(half)
        producer.beat()
    assert visible(broker) == [b"1", b"2"]


def test_a_commit_that_was_not_noted_before_the_kill_counts_once(broker: BrokerProcess) -> None:
    with Producer(broker.address) as producer:
        first, second = producer.prepare(b"first"), producer.prepare(b"second")
        assert producer.end(first) == R.SUCCESS
        assert producer.end(first) == R.SYSTEM_ERROR
        assert producer.end(second) == R.SUCCESS
    broker.kill()
    broker.restart()
    with Producer(broker.address) as producer:
        # As a producer does whose first attempt was not answered.
        assert producer.end(first) == R.SUCCESS
        assert producer.end(first) == R.SYSTEM_ERROR
        third = producer.prepare(b"third")
        producer.beat()
        # The second one is older and would have been asked for before.
        body, half = producer.next_question()
        assert body == b"third"
        assert half != third
        assert producer.end(half) == R.SUCCESS
    assert visible(broker) == [b"first", b"second", b"third"]


def test_a_kill_between_question_and_answer_loses_neither(broker: BrokerProcess) -> None:
    with Producer(broker.address) as producer:
        producer.beat()
        half = producer.prepare(b"order")
        _, copy = producer.next_question()
    broker.kill()
    broker.restart()
    with Producer(broker.address) as producer:
        assert producer.end(half) == R.SUCCESS
        assert producer.end(copy) == R.SYSTEM_ERROR
    assert visible(broker) == [b"order"]


def test_what_was_ended_before_a_clean_stop_is_noted(broker: BrokerProcess) -> None:
    with Producer(broker.address) as producer:
        rolled_back, still_open = producer.prepare(b"rolled back"), producer.prepare(b"open")
        assert producer.end(rolled_back, ROLLBACK) == R.SUCCESS
    broker.stop()
    broker.restart()
    with Producer(broker.address) as producer:
        assert producer.end(rolled_back) == R.SYSTEM_ERROR
        assert producer.end(still_open) == R.SUCCESS
    assert visible(broker) == [b"open"]
