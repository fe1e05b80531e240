"""The lean client of the benchmarks against a server that refuses, as peers of the race do now and then."""

import socket
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.lean_sends import LeanClient
from tanist.protocol import Command, encode_command
from tanist.protocol.codes import FLAG_RESPONSE
from tests.support.rocketmq.scenario import StepFailed

_REFUSED, _TAKEN = 2, 0
_LENGTH_BYTES = 4


def test_what_was_refused_is_counted_and_told(tmp_path: Path) -> None:
    with LeanClient(tmp_path) as client, _server(iter([_TAKEN, _REFUSED, _TAKEN])) as address:
        load = client.send(address, connections=1, most=3)
    assert (load.count, load.failures, load.first_failure) == (2, 1, "busy")


def test_sends_go_on_beyond_their_time_until_one_is_taken(tmp_path: Path) -> None:
    with LeanClient(tmp_path) as client, _server(iter([_REFUSED, _REFUSED, _TAKEN])) as address:
        load = client.send(address, connections=1, duration_ms=0)
    assert (load.count, load.failures) == (1, 2)


def test_at_a_rate_messages_leave_when_they_are_due_and_wait_for_no_answer_in_vain(tmp_path: Path) -> None:
    with LeanClient(tmp_path) as client, _server(iter([_TAKEN, _REFUSED, _TAKEN])) as address:
        load = client.send(address, connections=1, duration_ms=300, rate=10)
    assert (load.count, load.failures, load.first_failure) == (2, 1, "busy")
    assert load.ended_s - load.began_s >= 0.2, "the third was due after 200 ms"


def test_a_server_that_takes_nothing_is_quoted(tmp_path: Path) -> None:
    with (
        LeanClient(tmp_path) as client,
        _server(iter([_REFUSED, _REFUSED])) as address,
        pytest.raises(StepFailed, match="taken none of 2 messages: busy"),
    ):
        client.send(address, connections=1, most=2)


@contextmanager
def _server(codes: Iterator[int]) -> Generator[str]:
    """One that answers a request with each of these codes, on one connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_answer, args=(listener, codes))
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            thread.join()


def _answer(listener: socket.socket, codes: Iterator[int]) -> None:
    peer, _ = listener.accept()
    with peer, peer.makefile("rb") as reader:
        for code in codes:
            reader.read(int.from_bytes(reader.read(_LENGTH_BYTES), "big"))
            remark = None if code == _TAKEN else "busy"
            peer.sendall(encode_command(Command(code=code, flag=FLAG_RESPONSE, remark=remark)))
