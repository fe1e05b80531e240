import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest

from tanist.broker.controlled.controllers import Controllers
from tanist.broker.controlled.heartbeats import SESSION_VARIABLE, BeatAnswer, Heartbeats, session_id
from tanist.protocol.codes import RequestCode
from tanist.protocol.headers.controller import BrokerHeartbeatRequest
from tanist.supervisor.forked import SESSION_ID
from tests.support.played_controllers import PlayedControllers
from tests.support.virtual_time import VirtualClock, run_virtually, virtually_until

THREE = ("c1:9878", "c2:9878", "c3:9878")
BEAT = RequestCode.BROKER_HEARTBEAT
INTERVAL_S = 0.5


class _Beating:
    def __init__(self) -> None:
        self.played = PlayedControllers(*THREE)
        self.answers: list[BeatAnswer] = []
        self.heartbeats = Heartbeats(
            self.played.client,
            Controllers(self.played.client, THREE),
            lambda: BrokerHeartbeatRequest(cluster_name="c", broker_addr="a:1", broker_name="b", broker_id=1),
            self.answers.append,
            interval_s=INTERVAL_S,
            timeout_s=3,
            clock=VirtualClock(),
        )

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        task = asyncio.get_running_loop().create_task(self.heartbeats.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    def gaps_s(self, address: str) -> list[float]:
        times = self.played.times_of(BEAT, address)
        return [later - earlier for earlier, later in pairwise(times)]


def test_every_controller_gets_one_in_each_interval() -> None:
    async def scenario() -> None:
        beating = _Beating()
        async with beating.running():
            await asyncio.sleep(5.1)
        for address in THREE:
            assert beating.gaps_s(address) == pytest.approx([INTERVAL_S] * 10)

    run_virtually(scenario())


def test_one_that_is_stuck_delays_no_other_and_has_one_request_open() -> None:
    async def scenario() -> None:
        beating = _Beating()
        beating.played.stuck.add("c1:9878")
        async with beating.running():
            await asyncio.sleep(20.1)
        assert beating.played.most_open["c1:9878"] == 1
        assert len(beating.played.times_of(BEAT, "c1:9878")) == 21
        assert beating.gaps_s("c2:9878") == pytest.approx([INTERVAL_S] * 40)

    run_virtually(scenario())


def test_a_connection_without_answers_is_given_up_when_the_timeout_is_over() -> None:
    async def scenario() -> None:
        beating = _Beating()
        beating.played.stuck.add("c1:9878")
        async with beating.running():
            await asyncio.sleep(2.9)
            assert beating.played.given_up == []
            await asyncio.sleep(0.2)
            assert beating.played.given_up == ["c1:9878"]
            beating.played.stuck.clear()
            await asyncio.sleep(10)
            assert beating.played.given_up == ["c1:9878"]

    run_virtually(scenario())


def test_a_lease_counts_from_when_its_heartbeat_was_sent() -> None:
    async def scenario() -> None:
        beating = _Beating()
        beating.played.choose(1)
        async with beating.running():
            await virtually_until(lambda: len(beating.answers) == 3)
        sent_s = beating.played.times_of(BEAT)[0]
        assert {(answer.address, answer.lease_epoch) for answer in beating.answers} == {
            ("c1:9878", 1),
            ("c2:9878", None),
            ("c3:9878", None),
        }
        assert all(answer.sent_s == sent_s for answer in beating.answers)
        assert asyncio.get_running_loop().time() > sent_s

    run_virtually(scenario())


def test_one_can_be_sent_now_and_wishes_do_not_flood_anybody() -> None:
    async def scenario() -> None:
        beating = _Beating()
        async with beating.running():
            await asyncio.sleep(0.2)
            beating.heartbeats.soon("c2:9878")
            await asyncio.sleep(0.01)
            assert [len(beating.played.times_of(BEAT, address)) for address in THREE] == [1, 2, 1]
            for _ in range(1_000):
                beating.heartbeats.soon()
                await asyncio.sleep(0.001)
        assert all(len(beating.played.times_of(BEAT, address)) <= 13 for address in THREE)

    run_virtually(scenario())


def test_it_is_known_when_somebody_has_answered() -> None:
    async def scenario() -> None:
        beating = _Beating()
        beating.played.down.update(THREE)
        async with beating.running():
            answered = asyncio.ensure_future(beating.heartbeats.wait_answered())
            await asyncio.sleep(2)
            assert not answered.done()
            beating.played.down.remove("c3:9878")
            await asyncio.wait_for(answered, 1)

    run_virtually(scenario())


def test_a_controller_that_is_away_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        beating = _Beating()
        beating.played.down.add("c3:9878")
        async with beating.running():
            await asyncio.sleep(5)
            beating.played.down.clear()
            await asyncio.sleep(1)

    caplog.set_level("INFO")
    run_virtually(scenario())
    assert [record.getMessage().split(" address")[0] for record in caplog.records] == [
        "controller takes no heartbeat",
        "controller takes heartbeats again",
    ]


def test_who_starts_the_broker_may_choose_its_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SESSION_VARIABLE, "chosen")
    assert session_id() == "chosen"
    assert SESSION_VARIABLE == SESSION_ID
    monkeypatch.delenv(SESSION_VARIABLE)
    assert len(session_id()) == 32
    assert session_id() != session_id()
