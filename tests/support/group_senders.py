"""Producers by hand that find out who is master, and note every message that was acknowledged.

with GroupSenders([replica.address for replica in group.replicas]) as senders:
    senders.wait_for(100)
    group.master().kill()
    senders.wait_for(100)
assert not senders.lost(bodies_at(group.master().address))
"""

import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from tanist.client.received import decode_messages
from tanist.model.route import MessageQueue
from tanist.protocol import ResponseCode
from tanist.protocol.headers.pull import PullMessageResponse
from tests.support.requests import TOPIC, pull_request, send_request
from tests.support.wire import Wire

_SENDERS = 4
_TIMEOUT_S = 60.0
_ANSWER_S = 1.0
"""A master that says nothing for as long may be frozen; another one may be asked."""
_PAUSE_S = 0.005


@dataclass(frozen=True)
class Acknowledged:
    """One message that a broker said it has."""

    body: bytes
    address: str
    at_s: float
    """By ``time.monotonic``."""


class GroupSenders:
    """Some senders. They go on until the block ends, whoever is master."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=self._send, args=(number,), daemon=True) for number in range(_SENDERS)
        ]
        self.acknowledged: list[Acknowledged] = []

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, count: int, *, after_s: float | None = None) -> None:
        """Wait until so many messages are acknowledged after this moment, by default from now on."""
        start_s = time.monotonic() if after_s is None else after_s
        deadline_s = time.monotonic() + _TIMEOUT_S
        while sum(one.at_s > start_s for one in list(self.acknowledged)) < count:
            assert time.monotonic() < deadline_s, f"not {count} messages acknowledged in {_TIMEOUT_S:g} s"
            time.sleep(_PAUSE_S)

    def lost(self, held: Collection[bytes]) -> list[bytes]:
        """What was acknowledged, and is not held."""
        return [one.body for one in self.acknowledged if one.body not in held]

    def _send(self, sender: int) -> None:
        number = turn = 0
        while not self._is_over.is_set():
            turn += 1
            try:
                with Wire(self._addresses[turn % len(self._addresses)], timeout_s=_ANSWER_S) as wire:
                    number = self._send_on(wire, sender, number)
            except (OSError, AssertionError):
                self._is_over.wait(_PAUSE_S)

    def _send_on(self, wire: Wire, sender: int, number: int) -> int:
        """Send to one broker while it takes messages. What is not acknowledged is not sent again."""
        while not self._is_over.is_set():
            number += 1
            body = f"<{sender}-{number}-{time.monotonic_ns()}>".encode()
            answer = wire.ask(send_request(body))
            if answer.code != ResponseCode.SUCCESS:
                self._is_over.wait(_PAUSE_S)
                break
            self.acknowledged.append(Acknowledged(body, wire.peer_address, time.monotonic()))
        return number


def bodies_at(address: str, *, queue_id: int = 0, topic: str = TOPIC, start: int = 0) -> set[bytes]:
    """All messages of a queue that a broker shows, once it takes and shows one more."""
    last = b"last of %d" % time.monotonic_ns()
    held: set[bytes] = set()
    deadline_s = time.monotonic() + _TIMEOUT_S
    queue = MessageQueue(topic=topic, broker_name="", queue_id=queue_id)
    offset = start
    with Wire(address) as wire:
        while wire.ask(send_request(last, topic=topic, queue_id=queue_id)).code != ResponseCode.SUCCESS:
            assert time.monotonic() < deadline_s, f"{address} takes no message"
            time.sleep(_PAUSE_S)
        while last not in held:
            assert time.monotonic() < deadline_s, f"{address} does not show what it took"
            answer = wire.ask(pull_request(offset, topic=topic, queue_id=queue_id))
            if answer.code in (ResponseCode.SUCCESS, ResponseCode.PULL_OFFSET_MOVED):
                offset = answer.header(PullMessageResponse).next_begin_offset
            if answer.code == ResponseCode.SUCCESS:
                held |= {bytes(one.body) for one in decode_messages(memoryview(answer.body), queue)}
    return held
