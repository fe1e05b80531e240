"""Delayed messages of a broker that is killed: each comes, and comes once."""

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.protocol import Command, RequestCode
from tanist.protocol.bodies.sync import DelayOffsetTable
from tanist.protocol.java_json import decode_java_json
from tests.integration.test_broker import ok, read_all, send_request, wait_until
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess
from tests.support.wire import Wire

COUNT = 400
# Nothing is written down by itself, so after a kill only the log tells what was delivered.
SETTINGS: dict[str, object] = {
    "messageDelayLevel": "2s 1h",
    "flushDelayOffsetInterval": 600_000,
    "timerFlushIntervalMs": 600_000,
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with (
        NameServerProcess(tmp_path / "ns") as names,
        BrokerProcess(tmp_path / "broker", names.address, name="broker-a", **SETTINGS) as process,
    ):
        yield process
        assert "Traceback" not in process.process.output()


def send_delayed(wire: Wire, count: int = COUNT) -> set[bytes]:
    """Send messages that are due at about the same time, half of them with a level, half with a timer."""
    due_ms = int(time.time() * 1000) + 2_000
    sent: set[bytes] = set()
    for number in range(count):
        delay = "DELAY\x011\x02" if number % 2 else f"TIMER_DELIVER_MS\x01{due_ms}\x02"
        body = b"number-%d" % number
        ok(wire.ask(send_request(body, properties=f"UNIQ_KEY\x01{number:032}\x02{delay}")))
        sent.add(body)
    return sent


@pytest.mark.takes(13)
def test_no_message_is_lost_or_comes_twice_when_the_broker_is_killed_amid_delivery(
    broker: BrokerProcess,
) -> None:
    with Wire(broker.address) as wire:
        sent = send_delayed(wire)
        assert read_all(wire) == []
        wait_until(lambda: len(read_all(wire)) > 0, timeout_s=60)
        broker.kill()
    broker.restart()
    with Wire(broker.address) as wire:
        wait_until(lambda: set(read_all(wire)) == sent, timeout_s=60)
    broker.kill()
    broker.restart()
    with Wire(broker.address) as wire:
        # A message that comes after all others shows that nothing else was still to come.
        ok(wire.ask(send_request(b"last", properties="UNIQ_KEY\x01last\x02DELAY\x011\x02")))
        ok(wire.ask(send_request(b"last", properties="UNIQ_KEY\x01last\x02TIMER_DELAY_MS\x012000\x02")))
        wait_until(lambda: read_all(wire).count(b"last") == 2, timeout_s=60)
        assert Counter(read_all(wire)) == Counter(sent) + Counter({b"last": 2})


@pytest.mark.takes(10)
def test_what_waits_survives_a_stop_and_progress_is_saved(broker: BrokerProcess, tmp_path: Path) -> None:
    with Wire(broker.address) as wire:
        sent = send_delayed(wire, 20)
        ok(wire.ask(send_request(b"in an hour", properties="UNIQ_KEY\x01x\x02DELAY\x012\x02")))
        ok(wire.ask(send_request(b"in an hour", properties="UNIQ_KEY\x01y\x02TIMER_DELAY_SEC\x013600\x02")))
    broker.stop()
    broker.restart()
    with Wire(broker.address) as wire:
        wait_until(lambda: set(read_all(wire)) == sent, timeout_s=60)
        answer = ok(wire.ask(Command.request(RequestCode.GET_ALL_DELAY_OFFSET)))
        assert decode_java_json(answer.body, DelayOffsetTable).offset_table == {1: 10, 2: 0}
    broker.stop()
    saved = (tmp_path / "broker" / "store" / "config" / "delayOffset.json").read_bytes()
    assert decode_java_json(saved, DelayOffsetTable).offset_table == {1: 10, 2: 0}
    broker.restart()
    with Wire(broker.address) as wire:
        assert Counter(read_all(wire)) == Counter(sent)
