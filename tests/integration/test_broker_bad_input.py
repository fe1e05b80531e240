"""What strangers may send to a broker: each costs its sender an error or the connection, and one line."""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from tanist.chaos.hostile import BAD_FRAMES
from tanist.protocol import Command, RequestCode, ResponseCode, encode_command
from tanist.protocol.batch import encode_batch
from tanist.protocol.headers.common import TopicQueueRequest
from tests.support.requests import NO_NAME_SERVER, send_request
from tests.support.tanist_cluster import BrokerProcess
from tests.support.wire import Wire

C = RequestCode
R = ResponseCode


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker that is as well after the test as it was before."""
    with BrokerProcess(tmp_path, NO_NAME_SERVER) as process, Wire(process.address) as other:
        check_serves(other)
        before_bytes = rss_bytes(process)
        yield process
        check_serves(other)
        assert rss_bytes(process) - before_bytes < 64 << 20
        assert "Traceback" not in process.process.output()
        process.stop()
        assert process.process.exit_code == 0


def rss_bytes(broker: BrokerProcess) -> int:
    return psutil.Process(broker.process.pid).memory_info().rss


def check_serves(wire: Wire) -> None:
    assert wire.ask(send_request(b"still here")).code == R.SUCCESS
    answer = wire.ask(Command.request(C.GET_MIN_OFFSET, TopicQueueRequest(topic="TopicA", queue_id=0)))
    assert answer.code == R.SUCCESS


TOLD_COUNT = 15
"""So many get a line each. Of many more not all do, lest they fill the disk."""


def test_a_bad_frame_costs_its_connection_and_one_line(broker: BrokerProcess) -> None:
    for number, (what, data) in enumerate(BAD_FRAMES.items()):
        with Wire(broker.address) as stranger:
            stranger.send(data)
            assert stranger.receive() is None, what
            if number < TOLD_COUNT:
                broker.process.wait_for_output(
                    f"connection closed peer={stranger.local_address} cause=BAD_FRAME reason=", timeout_s=5
                )
    assert TOLD_COUNT <= broker.process.output().count("cause=BAD_FRAME") <= len(BAD_FRAMES)


class Case(NamedTuple):
    """A request, the code of its answer, and what the log says of it."""

    request: Command
    code: int
    reason: str


def body_of(code: int, body: bytes, answer: int, reason: str) -> Case:
    return Case(Command.request(code, body=body), answer, reason)


DEEP = b'{"a":' * 100_000
REFUSED = {
    "an unknown code": Case(Command.request(4711), 3, "request code 4711 is not supported"),
    "a code of another server": Case(
        Command.request(C.REGISTER_BROKER, body=zlib.compress(b"{}")), 3, "request code 103 is not supported"
    ),
    "a header without its field": Case(
        Command.request(C.GET_MAX_OFFSET, ext={"queueId": "0"}), 1, "mandatory field topic is missing"
    ),
    "a header with a word for a number": Case(
        Command.request(C.GET_MAX_OFFSET, ext={"topic": "T", "queueId": "first"}), 1, "field queueId='first'"
    ),
    "a batch that is none": Case(send_request(b"no batch", is_batch=True), 13, ""),
    "a batch that is cut short": Case(
        send_request(encode_batch([(0, b"one", b""), (0, b"two", b"")])[:-3], is_batch=True), 13, ""
    ),
    "a batch that says it is longer": Case(
        send_request(struct.pack(">i", 2**31 - 1) * 9, is_batch=True), 13, ""
    ),
    "a heartbeat that is no JSON": body_of(C.HEART_BEAT, b"\xff\xfe", 1, "HeartbeatData"),
    "a heartbeat that is no object": body_of(C.HEART_BEAT, b"[1, 2]", 1, "HeartbeatData"),
    "a heartbeat of deep JSON": body_of(C.HEART_BEAT, DEEP, 1, "HeartbeatData"),
    "a heartbeat without a body": body_of(C.HEART_BEAT, b"", 1, "HeartbeatData"),
    "locks that are a number": body_of(C.LOCK_BATCH_MQ, b"7", 1, "QueueLocks"),
    "locks whose queues are words": body_of(
        C.UNLOCK_BATCH_MQ, b'{"clientId":"c","consumerGroup":"G","mqSet":["q"]}', 1, "QueueLocks"
    ),
    "a group that is a list": body_of(
        C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, b"[]", 1, "SubscriptionGroupConfig"
    ),
    "a check of nothing": body_of(C.CHECK_CLIENT_CONFIG, b"{}", 1, "ClientConfigCheck"),
}


def test_a_request_that_is_not_what_its_code_says_is_refused_with_one_line(broker: BrokerProcess) -> None:
    with Wire(broker.address) as stranger:
        for what, case in REFUSED.items():
            answer = stranger.ask(case.request)
            assert (what, answer.code) == (what, case.code)
            line = f"request refused peer={stranger.local_address} code={case.request.code} reason="
            broker.process.wait_for_output(line, timeout_s=5)
            told = [told for told in broker.process.output().splitlines() if line in told]
            assert case.reason in told[-1]
    assert broker.process.output().count("request refused") == len(REFUSED)


def test_half_a_frame_then_silence_is_given_up_and_told(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, NO_NAME_SERVER, serverFrameTimeoutMillis=300) as broker:
        whole = encode_command(send_request(b"whole"))
        for half in (whole[:1], whole[:6], whole[:-1]):
            with Wire(broker.address) as silent, Wire(broker.address) as other:
                silent.send(whole + half)
                answer = silent.receive()
                assert answer is not None
                assert answer.code == R.SUCCESS
                assert silent.receive() is None
                broker.process.wait_for_output(
                    f"peer={silent.local_address} cause=HALF_FRAME reason=a frame is not whole", timeout_s=5
                )
                check_serves(other)


def test_a_flood_of_bad_requests_is_answered_in_full_and_logged_in_part(broker: BrokerProcess) -> None:
    with Wire(broker.address) as stranger:
        for _ in range(500):
            assert stranger.ask(Command.request(4711)).code == R.REQUEST_CODE_NOT_SUPPORTED
    assert 1 <= broker.process.output().count("request refused") <= 100


@pytest.mark.parametrize("distance", [0, 2], ids=["main port", "fast port"])
def test_codes_that_are_not_served_are_refused_at_once(broker: BrokerProcess, distance: int) -> None:
    """Stock clients go on with something else, see POP in docs/broker.md."""
    host, _, port = broker.address.rpartition(":")
    pop_codes = (*range(200050, 200057), 200151)
    other_codes = (370, 13, 22, 23, 27, 401, 513, 902, 903, 2001, 3001)
    with Wire(f"{host}:{int(port) - distance}") as wire:
        for code in (*pop_codes, *other_codes, C.QUERY_ASSIGNMENT):
            answer = wire.ask(Command.request(code, body=b"{}"))
            assert (code, answer.code) == (code, R.REQUEST_CODE_NOT_SUPPORTED)
            assert answer.remark
        if distance:
            assert wire.ask(Command.request(C.PULL_MESSAGE)).code == R.REQUEST_CODE_NOT_SUPPORTED
