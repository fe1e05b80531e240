"""How a broker ends and begins again: in seconds, with everything kept, whoever is attached to it."""

import contextlib
import socket
import threading
import time
from pathlib import Path

import msgspec
import pytest

from tanist.model.host import pack_host
from tanist.model.message import Message
from tanist.protocol import Command, RequestCode, ResponseCode, encode_command
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.client import HeartbeatData, ProducerData
from tanist.protocol.headers.common import QueueOffsetResponse, TopicQueueRequest
from tanist.store import MessageStore, StoreSettings
from tests.support.requests import NO_NAME_SERVER, TOPIC, pull_request, send_request
from tests.support.tanist_cluster import BrokerProcess
from tests.support.wire import Wire

C = RequestCode
R = ResponseCode
STOP_S = 5.0
START_S = 2.0
GIB = 1 << 30
BODY_BYTES = 16 << 10
PARKED_A_CONNECTION = 20


class _Producer:
    """Sends without waiting for answers, a hundred at a time, until the broker is gone."""

    def __init__(self, address: str, queue_id: int) -> None:
        self.acked_count = 0
        self._address = address
        self._queue_id = queue_id
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        with contextlib.suppress(OSError), Wire(self._address) as wire:
            frame = encode_command(send_request(b"x" * 1000, queue_id=self._queue_id))
            while True:
                wire.send(frame * 100)
                for _ in range(100):
                    answer = wire.receive()
                    if answer is None:
                        return
                    self.acked_count += answer.code == R.SUCCESS


def max_offset(wire: Wire, queue_id: int) -> int:
    answer = wire.ask(Command.request(C.GET_MAX_OFFSET, TopicQueueRequest(topic=TOPIC, queue_id=queue_id)))
    assert answer.code == R.SUCCESS
    return answer.header(QueueOffsetResponse).queue_offset


@pytest.mark.takes(13)
def test_it_stops_within_five_seconds_with_everybody_attached(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, NO_NAME_SERVER) as broker, contextlib.ExitStack() as attached:
        producers = [_Producer(broker.address, queue_id) for queue_id in range(3)]
        consumers = [attached.enter_context(Wire(broker.address)) for _ in range(50)]
        for number, consumer in enumerate(consumers):
            heartbeat = HeartbeatData(
                client_id=f"client-{number}", producer_data_set=[ProducerData(group_name="P")]
            )
            assert consumer.ask(Command.request(C.HEART_BEAT, body=encode_body(heartbeat))).code == R.SUCCESS
            # They wait where nobody sends to.
            pull = encode_command(pull_request(queue_id=3, suspend_ms=60_000))
            consumer.send(pull * PARKED_A_CONNECTION)
            max_offset(consumer, 0)  # Its answer shows that the pulls are parked.
        half = attached.enter_context(Wire(broker.address))
        half.send(encode_command(send_request(b"half"))[:-1])
        deaf = attached.enter_context(socket.create_connection(broker.address.split(":")))  # pyright: ignore[reportArgumentType]
        deaf.sendall(encode_command(Command.request(C.GET_ALL_TOPIC_CONFIG)) * 2000)

        start_s = time.monotonic()
        broker.stop()
        took_s = time.monotonic() - start_s
        print(f"stopped in {took_s:.2f} s")
        assert took_s < STOP_S
        for producer in producers:
            producer.thread.join()
        for consumer in consumers:
            for _ in range(PARKED_A_CONNECTION):
                answer = consumer.receive()
                assert answer is not None
                assert answer.code == R.SYSTEM_BUSY
            assert consumer.receive() is None
        assert broker.process.exit_code == 0
        assert "Traceback" not in broker.process.output()

        broker.restart()
        assert "was_closed=True" in broker.process.output()
        with Wire(broker.address) as wire:
            for queue_id, producer in enumerate(producers):
                assert producer.acked_count <= max_offset(wire, queue_id)


def make_log(root: Path) -> int:
    """Write a GiB of messages and close the store as a broker does; how many messages there are."""
    message = Message(
        topic=TOPIC,
        queue_id=0,
        body=bytes(BODY_BYTES),
        properties=b"",
        born_timestamp_ms=1,
        born_host=pack_host("127.0.0.1", 1),
    )
    count = 0
    with MessageStore.open(root, StoreSettings()) as store:
        while store.log.log_end < GIB:
            for queue_id in range(4):
                store.append(msgspec.structs.replace(message, queue_id=queue_id))
            count += 1
            if count % 1000 == 0:
                store.dispatch()
    return count


@pytest.mark.takes(13)
def test_it_starts_within_two_seconds_on_a_gib_of_log_after_a_clean_stop(tmp_path: Path) -> None:
    count = make_log(tmp_path / "store")
    defaults = StoreSettings()
    times_s: list[float] = []
    with BrokerProcess(
        tmp_path,
        NO_NAME_SERVER,
        mappedFileSizeCommitLog=defaults.mapped_file_size_commit_log,
        mappedFileSizeConsumeQueue=defaults.mapped_file_size_consume_queue,
        maxHashSlotNum=defaults.max_hash_slot_num,
        maxIndexNum=defaults.max_index_num,
    ) as broker:
        for _ in range(3):
            with Wire(broker.address) as wire:
                assert max_offset(wire, 0) == count
            broker.stop()
            start_s = time.monotonic()
            broker.restart()
            times_s.append(time.monotonic() - start_s)
            assert "was_closed=True" in broker.process.output()
    print("started in", ", ".join(f"{took_s:.2f} s" for took_s in times_s))
    # Others may keep the machine busy now and then.
    assert min(times_s) < START_S
