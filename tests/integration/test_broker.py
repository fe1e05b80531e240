"""The broker as a process: messages go in and come out, and survive how it ends."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tanist.compiled import KEY as ENGINE_KEY
from tanist.model.route import TopicRouteData
from tanist.protocol import Command, HeaderEncoding, RequestCode, ResponseCode, encode_command
from tanist.protocol.batch import encode_batch
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.headers.common import QueueOffsetResponse, TopicQueueRequest
from tanist.protocol.headers.nameserver import GetRouteRequest
from tanist.protocol.headers.offsets import (
    ConsumerOffsetResponse,
    QueryConsumerOffsetRequest,
    UpdateConsumerOffsetRequest,
)
from tanist.protocol.headers.pull import PullMessageResponse
from tanist.protocol.headers.send import SendMessageResponse
from tanist.protocol.record import decode_record
from tanist.remoting import RemotingClient, TlsSettings
from tests.support.partners import require
from tests.support.requests import GROUP as G
from tests.support.requests import TOPIC as T
from tests.support.requests import pull_request, send_request
from tests.support.rocketmq.cluster import free_broker_port
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess
from tests.support.tls import certificate, key
from tests.support.wire import Wire

C = RequestCode
R = ResponseCode


@pytest.fixture(scope="module")
def name_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NameServerProcess]:
    with NameServerProcess(tmp_path_factory.mktemp("ns")) as server:
        yield server


@pytest.fixture(params=["c", "python"])
def broker(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name_server: NameServerProcess,
) -> Iterator[BrokerProcess]:
    """A broker of each twin: whatever C does, Python does too."""
    if request.param == "python":
        monkeypatch.setenv(ENGINE_KEY, "python")
    else:
        require("native")
    with BrokerProcess(tmp_path / "broker", name_server.address) as process:
        yield process
    assert "Traceback" not in process.process.output()


@pytest.fixture
def wire(broker: BrokerProcess) -> Iterator[Wire]:
    with Wire(broker.address) as connection:
        yield connection


def ok(answer: Command) -> Command:
    assert answer.code == R.SUCCESS, (answer.code, answer.remark)
    return answer


def bodies(answer: Command) -> list[bytes]:
    data, found = memoryview(answer.body), list[bytes]()
    while data:
        record = decode_record(data)
        found.append(bytes(record.body))
        data = data[record.size_bytes :]
    return found


def read_all(wire: Wire, topic: str = T, queue_id: int = 0) -> list[bytes]:
    found: list[bytes] = []
    while True:
        answer = wire.ask(pull_request(len(found), topic=topic, queue_id=queue_id))
        if answer.code != R.SUCCESS:
            assert answer.code == R.PULL_NOT_FOUND
            return found
        found += bodies(answer)
        assert answer.header(PullMessageResponse).next_begin_offset == len(found)


def route(name_server: NameServerProcess, topic: str) -> TopicRouteData | None:
    with Wire(name_server.address) as client:
        answer = client.ask(Command.request(C.GET_ROUTEINFO_BY_TOPIC, GetRouteRequest(topic=topic)))
    return decode_java_json(answer.body, TopicRouteData) if answer.code == R.SUCCESS else None


def wait_until(is_so: Callable[[], bool], *, timeout_s: float = 60) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.005)


@pytest.mark.parametrize("encoding", list(HeaderEncoding))
def test_what_is_sent_is_pulled(wire: Wire, encoding: HeaderEncoding) -> None:
    request = send_request(b"hello", properties="KEYS\x01k\x02")
    request.encoding = encoding
    answer = ok(wire.ask(request))
    assert answer.encoding is encoding
    assert answer.header(SendMessageResponse).queue_offset == 0
    pulled = pull_request()
    pulled.encoding = encoding
    answer = wire.ask(pulled)
    assert (answer.code, answer.encoding, bodies(answer)) == (R.SUCCESS, encoding, [b"hello"])


def test_a_batch_is_stored_as_its_messages(wire: Wire) -> None:
    batch = encode_batch([(0, f"item {number}".encode(), b"") for number in range(10)])
    answer = ok(wire.ask(send_request(batch, is_batch=True)))
    assert len(answer.header(SendMessageResponse).msg_id.split(",")) == 10
    assert read_all(wire) == [f"item {number}".encode() for number in range(10)]


def test_one_way_sends_are_stored_and_not_answered(wire: Wire) -> None:
    for number in range(5):
        wire.send(encode_command(send_request(f"message {number}".encode(), is_one_way=True)))
    ok(wire.ask(send_request(b"last")))
    assert read_all(wire) == [*(f"message {number}".encode() for number in range(5)), b"last"]


def test_a_new_topic_has_a_route_at_once(
    broker: BrokerProcess, wire: Wire, name_server: NameServerProcess
) -> None:
    assert route(name_server, "fresh") is None
    ok(wire.ask(send_request(topic="fresh")))
    wait_until(lambda: route(name_server, "fresh") is not None, timeout_s=2)
    found = route(name_server, "fresh")
    assert found is not None
    assert found.broker_datas[0].broker_addrs == {0: broker.address}
    assert (found.queue_datas[0].read_queue_count, found.queue_datas[0].perm) == (4, 6)


def test_a_parked_pull_is_answered_within_milliseconds_of_a_send(broker: BrokerProcess, wire: Wire) -> None:
    ok(wire.ask(send_request(b"first")))
    waited_s: list[float] = []
    with Wire(broker.address) as consumer:
        for offset in range(1, 21):
            consumer.send(encode_command(pull_request(offset, suspend_ms=15_000, opaque=offset)))
            # An answer on the same connection shows that the pull has been read and parked.
            ok(consumer.ask(Command.request(C.GET_MAX_OFFSET, TopicQueueRequest(topic=T, queue_id=0))))
            start_s = time.monotonic()
            wire.send(encode_command(send_request(b"next", is_one_way=True)))
            answer = consumer.receive()
            waited_s.append(time.monotonic() - start_s)
            assert answer is not None
            assert (answer.code, answer.opaque, bodies(answer)) == (R.SUCCESS, offset, [b"next"])
    # The machine may be busy for a while, but not each time.
    assert sorted(waited_s)[len(waited_s) // 2] < 0.05


def test_a_parked_pull_is_answered_at_its_deadline(wire: Wire) -> None:
    ok(wire.ask(send_request()))
    start_s = time.monotonic()
    wire.send(encode_command(pull_request(1, suspend_ms=300, opaque=77)))
    answer = wire.receive()
    elapsed_s = time.monotonic() - start_s
    assert answer is not None
    assert (answer.code, answer.opaque) == (R.PULL_NOT_FOUND, 77)
    assert answer.header(PullMessageResponse).next_begin_offset == 1
    assert 0.29 <= elapsed_s < 2


def test_the_second_port_takes_sends_and_no_pulls(broker: BrokerProcess) -> None:
    host, _, port = broker.address.rpartition(":")
    with Wire(f"{host}:{int(port) - 2}") as fast:
        ok(fast.ask(send_request()))
        assert fast.ask(pull_request()).code == R.REQUEST_CODE_NOT_SUPPORTED


def test_unknown_codes_and_bad_requests_are_answered_and_disturb_nobody(
    broker: BrokerProcess, wire: Wire
) -> None:
    assert wire.ask(Command.request(9999)).code == R.REQUEST_CODE_NOT_SUPPORTED
    assert wire.ask(Command.request(C.SEND_MESSAGE_V2, body=b"no header")).code == R.SYSTEM_ERROR
    assert wire.ask(Command.request(C.PULL_MESSAGE)).code == R.SYSTEM_ERROR
    assert wire.ask(Command.request(C.HEART_BEAT, body=b"{")).code == R.SYSTEM_ERROR
    assert wire.ask(send_request(b"no batch", is_batch=True)).code == R.MESSAGE_ILLEGAL
    with Wire(broker.address) as stranger:
        stranger.send(b"\x7f\xff\xff\xff" + b"?" * 100)
        assert stranger.receive() is None
    ok(wire.ask(send_request()))


def test_messages_offsets_and_topics_survive_a_restart(broker: BrokerProcess) -> None:
    sent = [f"message {number}".encode() for number in range(50)]
    with Wire(broker.address) as wire:
        for body in sent:
            ok(wire.ask(send_request(body, topic="kept", queue_id=3)))
        wire.ask(pull_request(topic="kept", queue_id=3))
        commit = UpdateConsumerOffsetRequest(
            consumer_group=G,
            topic="kept",
            queue_id=3,
            consumer_offset=42,  # pyright: ignore[reportArgumentType]
        )
        ok(wire.ask(Command.request(C.UPDATE_CONSUMER_OFFSET, commit)))
    broker.stop()
    broker.restart(autoCreateTopicEnable="false")

    with Wire(broker.address) as wire:
        assert read_all(wire, "kept", 3) == sent
        asked = QueryConsumerOffsetRequest(consumer_group=G, topic="kept", queue_id=3)
        answer = ok(wire.ask(Command.request(C.QUERY_CONSUMER_OFFSET, asked)))
        assert answer.header(ConsumerOffsetResponse).consumer_offset == 42
        answer = ok(wire.ask(send_request(b"more", topic="kept", queue_id=3)))
        assert answer.header(SendMessageResponse).queue_offset == 50


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_it_stops_cleanly_within_five_seconds_under_load(
    tmp_path: Path, name_server: NameServerProcess, flush: str
) -> None:
    with (
        BrokerProcess(tmp_path, name_server.address, flushDiskType=flush) as broker,
        Wire(broker.address) as consumer,
    ):
        producers = [_Producer(broker.address, queue_id) for queue_id in range(3)]
        wait_until(lambda: all(len(producer.acked) > 20 for producer in producers))
        # It waits in a queue to which nobody sends; the answer behind it shows that it was read.
        consumer.send(encode_command(pull_request(0, suspend_ms=60_000, queue_id=3)))
        ok(consumer.ask(Command.request(C.GET_MAX_OFFSET, TopicQueueRequest(topic=T, queue_id=3))))
        start_s = time.monotonic()
        broker.stop()
        assert time.monotonic() - start_s < 5
        for producer in producers:
            producer.join()
        answer = consumer.receive()
        assert answer is not None
        assert answer.code == R.SYSTEM_BUSY
        assert consumer.receive() is None
        assert broker.process.exit_code == 0
        assert "Traceback" not in broker.process.output()
        assert not (tmp_path / "store" / "abort").exists()
        assert route(name_server, T) is None

        broker.restart()
        with Wire(broker.address) as wire:
            for producer in producers:
                stored = read_all(wire, queue_id=producer.queue_id)
                assert stored[: len(producer.acked)] == producer.acked
                # A send that was refused because the broker stops was not stored; at most one is in doubt.
                assert len(stored) <= len(producer.acked) + 1
        assert "Traceback" not in broker.process.output()


def test_a_kill_loses_no_message_that_was_acknowledged_as_flushed(
    tmp_path: Path, name_server: NameServerProcess
) -> None:
    with BrokerProcess(tmp_path, name_server.address, flushDiskType="SYNC_FLUSH") as broker:
        for _ in range(3):
            producers = [_Producer(broker.address, queue_id) for queue_id in range(4)]
            wait_until(lambda: all(len(producer.acked) > 20 for producer in producers))  # noqa: B023
            broker.kill()
            for producer in producers:
                producer.join()
            broker.restart()
            with Wire(broker.address) as wire:
                for producer in producers:
                    stored = read_all(wire, queue_id=producer.queue_id)
                    assert [body for body in stored if body in set(producer.acked)] == producer.acked
        assert "Traceback" not in broker.process.output()


class _Producer:
    """Sends one message after another to its queue until the broker does not take them any more."""

    _numbers = iter(range(10**9))

    def __init__(self, address: str, queue_id: int) -> None:
        self.queue_id = queue_id
        self.acked: list[bytes] = []
        self._address = address
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def join(self) -> None:
        self._thread.join(10)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        try:
            with Wire(self._address) as wire:
                while True:
                    body = f"message {next(self._numbers)}".encode()
                    if wire.ask(send_request(body, queue_id=self.queue_id)).code != R.SUCCESS:
                        return
                    self.acked.append(body)
        except (OSError, AssertionError):
            return  # The broker is gone.


def test_a_name_server_that_is_away_does_not_keep_the_broker_from_work(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        nobody = f"127.0.0.1:{silent.getsockname()[1]}"
        with BrokerProcess(tmp_path, f"127.0.0.1:1;{nobody}") as broker, Wire(broker.address) as wire:
            ok(wire.ask(send_request()))
            start_s = time.monotonic()
            broker.stop()
            assert time.monotonic() - start_s < 5
            assert broker.process.exit_code == 0
            assert "Traceback" not in broker.process.output()


def test_ctrl_c_stops_it_too(broker: BrokerProcess) -> None:
    os.kill(broker.process.pid, signal.SIGINT)
    wait_until(lambda: not broker.process.is_running)
    assert broker.process.exit_code == 0


def tanist_broker(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from tanist.cli.main import main; main()", "broker", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def write(path: Path, **settings: object) -> Path:
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return path


def test_a_second_broker_on_the_same_store_is_refused_in_one_line(
    tmp_path: Path, broker: BrokerProcess
) -> None:
    store = tmp_path / "broker" / "store"
    config = write(tmp_path / "second.conf", storePathRootDir=store, listenPort=free_broker_port())
    refused = tanist_broker("-c", config)
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr
    assert [str(store) in line for line in refused.stderr.splitlines()] == [True]
    with Wire(broker.address) as wire:
        ok(wire.ask(send_request()))


@pytest.mark.parametrize("distance", [0, 2])
def test_a_port_that_is_taken_is_refused_in_one_line(
    tmp_path: Path, broker: BrokerProcess, distance: int
) -> None:
    port = int(broker.address.rpartition(":")[2]) + distance
    config = write(tmp_path / "taken.conf", storePathRootDir=tmp_path / "other", listenPort=port)
    refused = tanist_broker("-c", config)
    assert refused.returncode == 1
    (line,) = [line for line in refused.stderr.splitlines() if " INFO " not in line]
    assert f"listenPort={port}" in line
    assert not (tmp_path / "other" / "abort").exists()


def test_keys_without_effect_are_named_in_one_warning(tmp_path: Path, name_server: NameServerProcess) -> None:
    unknown: dict[str, Any] = {"transientStorePoolEnable": "true", "sendMessageThreadPoolNums": 16}
    with BrokerProcess(tmp_path, name_server.address, **unknown) as broker:
        broker.process.wait_for_output("keys=sendMessageThreadPoolNums,transientStorePoolEnable", timeout_s=5)
        with Wire(broker.address) as wire:
            answer = wire.ask(Command.request(C.GET_MIN_OFFSET, TopicQueueRequest(topic=T, queue_id=0)))
        assert answer.header(QueueOffsetResponse).queue_offset == 0


def test_a_broker_that_enforces_tls_serves_nobody_without_it(
    tmp_path: Path, name_server: NameServerProcess
) -> None:
    settings: dict[str, Any] = {
        "tlsMode": "enforcing",
        "tlsServerCertPath": certificate("server"),
        "tlsServerKeyPath": key("server"),
    }
    trusting = TlsSettings(
        tls_enable=True, tls_client_auth_server=True, tls_client_trust_cert_path=certificate("ca")
    )

    async def send_over_tls(address: str) -> Command:
        client = RemotingClient(tls=trusting)
        try:
            return await client.request(address, send_request(), timeout_s=5)
        finally:
            await client.close()

    with BrokerProcess(tmp_path, name_server.address, **settings) as broker:
        ok(asyncio.run(send_over_tls(broker.address)))
        with Wire(broker.address) as wire:
            wire.send(encode_command(send_request()))
            assert wire.receive() is None
