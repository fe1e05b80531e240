"""Other Python clients of RocketMQ in a process of their own, told what to do as ours are.

Run by whichever Python has them, so this file imports nothing of the project:

    python bench/other_client_steps.py rocketmq-python-client|rocketmq-client-python
"""

import itertools
import json
import random
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

_READ_LIMIT_S = 60.0


class Client(Protocol):
    """What is asked of a client. Names of options are those of ``Load.java``."""

    def start(self, options: dict[str, Any]) -> None: ...

    def send(self, topic: str, body: bytes) -> None: ...

    def send_many(self, topic: str, body: bytes, in_flight: int, end_s: float) -> int:
        """Keep so many on their way until it is time; how many were sent."""
        ...

    def read(self, options: dict[str, Any], on_message: Callable[[], None]) -> Callable[[], object]:
        """Begin to read; what is returned ends it."""
        ...


class GrpcClient:
    """rocketmq-python-client, which talks gRPC to a proxy."""

    def start(self, options: dict[str, Any]) -> None:
        self._rocketmq = import_module("rocketmq")
        endpoint = self._rocketmq.ClientConfiguration(options["nameServer"], self._rocketmq.Credentials())
        self._producer = self._rocketmq.Producer(endpoint, ("Bench",))
        self._producer.startup()

    def send(self, topic: str, body: bytes) -> None:
        self._producer.send(self._message(topic, body))

    def send_many(self, topic: str, body: bytes, in_flight: int, end_s: float) -> int:
        room = threading.Semaphore(in_flight)
        sent: list[Any] = []

        def on_sent(_future: object) -> None:
            room.release()

        while time.perf_counter() < end_s:
            room.acquire()
            future = self._producer.send_async(self._message(topic, body))
            future.add_done_callback(on_sent)
            sent.append(future)
        return sum(future.result() is not None for future in sent)

    def read(self, options: dict[str, Any], on_message: Callable[[], None]) -> Callable[[], object]:
        raise NotImplementedError(
            "it reads by POP, where a new group begins behind the backlog, and which Tanist does not serve"
        )

    def _message(self, topic: str, body: bytes) -> Any:
        message = self._rocketmq.Message()
        message.topic = topic
        message.body = body
        return message


class CppClient:
    """rocketmq-client-python, a binding of the C++ client."""

    def start(self, options: dict[str, Any]) -> None:
        self._client = import_module("rocketmq.client")
        self._producer = self._client.Producer(options["group"])
        self._producer.set_name_server_address(options["nameServer"])
        self._producer.start()

    def send(self, topic: str, body: bytes) -> None:
        message = self._client.Message(topic)
        message.set_body(body)
        self._producer.send_sync(message)

    def send_many(self, topic: str, body: bytes, in_flight: int, end_s: float) -> int:
        raise NotImplementedError("it has no sends that are answered later")

    def read(self, options: dict[str, Any], on_message: Callable[[], None]) -> Callable[[], object]:
        status = self._client.ConsumeStatus.CONSUME_SUCCESS

        def consume(_message: object) -> Any:
            on_message()
            return status

        consumer = self._client.PushConsumer(options["group"])
        consumer.set_name_server_address(options["nameServer"])
        consumer.subscribe(options["topic"], consume)
        consumer.start()
        return consumer.shutdown


_CLIENTS: dict[str, Callable[[], Client]] = {
    "rocketmq-python-client": GrpcClient,
    "rocketmq-client-python": CppClient,
}


def _send(client: Client, options: dict[str, Any]) -> dict[str, float]:
    topic: str = options["topic"]
    body = random.Random(1).randbytes(options["bodyBytes"])
    began_s, cpu_s = time.perf_counter(), time.process_time()
    end_s = began_s + options["durationMs"] / 1000
    if options["inFlight"]:
        count = client.send_many(topic, body, options["inFlight"], end_s)
    else:
        count = 0
        while time.perf_counter() < end_s:
            client.send(topic, body)
            count += 1
    return _load(count, began_s, cpu_s)


def _read(client: Client, options: dict[str, Any]) -> dict[str, float]:
    counts = itertools.count(1)
    began: list[float] = []
    loads: list[dict[str, float]] = []
    done = threading.Event()

    def on_message() -> None:
        count = next(counts)
        if count == 1:
            began.extend((time.perf_counter(), time.process_time()))
        elif count == options["count"]:
            loads.append(_load(count, *began))
            done.set()

    end = client.read(options, on_message)
    try:
        if not done.wait(_READ_LIMIT_S):
            raise TimeoutError(f"{next(counts) - 1} of {options['count']} messages came")
    finally:
        end()
    return loads[0]


def _load(count: int, began_s: float, cpu_s: float) -> dict[str, float]:
    rate = count / (time.perf_counter() - began_s)
    return {"count": count, "rate": rate, "cpuSeconds": time.process_time() - cpu_s}


def _do(client: Client, options: dict[str, Any]) -> dict[str, float] | None:
    match options["do"]:
        case "producer":
            return client.start(options)
        case "load":
            return _send(client, options)
        case _:
            return _read(client, options)


def main(name: str) -> None:
    client = _CLIENTS[name]()
    for line in sys.stdin:
        try:
            answer: dict[str, Any] = {"result": _do(client, json.loads(line))}
        except Exception as error:
            answer = {"error": type(error).__name__, "message": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
