import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tanist.backoff import Backoff
from tanist.client.session import heartbeats
from tanist.client.session.heartbeats import Heartbeats
from tanist.client.session.routes import RouteTable
from tanist.client.session.tasks import OwnedTasks
from tanist.errors import ConnectFailed, ConnectionLost
from tanist.model.groups import ConsumeFromWhere, ConsumeType, MessageModel
from tanist.model.route import BrokerData, TopicRouteData
from tanist.protocol.bodies.client import ConsumerData, HeartbeatData, ProducerData
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.client import UnregisterClientRequest
from tanist.protocol.response_errors import NotReadable
from tests.support.conditions import turns, until

CONSUMER = ConsumerData(
    group_name="g",
    consume_type=ConsumeType.PASSIVELY,
    message_model=MessageModel.CLUSTERING,
    consume_from_where=ConsumeFromWhere.LAST_OFFSET,
)


class Bench:
    """Heartbeats to brokers without sockets."""

    def __init__(self) -> None:
        self.table = RouteTable()
        self.route({0: "m:1", 1: "s:1"})
        self.tasks = OwnedTasks()
        self.data = HeartbeatData(client_id="c", producer_data_set=[ProducerData(group_name="g")])
        self.told: list[tuple[str, Command]] = []
        self.down: set[str] = set()
        self.hanging_up: set[str] = set()
        self.not_read: set[str] = set()
        self.hung_up: list[str] = []
        wire: Any = self
        self.heartbeats = Heartbeats(wire, self.table, self.tasks, describe=lambda: self.data, period_s=3600)

    def route(self, addresses: dict[int, str]) -> None:
        broker = BrokerData(cluster="C", broker_name="a", broker_addrs=addresses)
        self.table.put("T", TopicRouteData(broker_datas=[broker]))

    async def ask(self, address: str, command: Command, *, timeout_s: float = 3.0) -> Command:
        self.told.append((address, command))
        if address in self.down:
            raise ConnectFailed(address, "refused")
        if address in self.hanging_up:
            self.heartbeats.forget(address)
            raise ConnectionLost(address, "the peer closed it")
        if address in self.not_read:
            raise NotReadable(f"{address} is not readable", reader_address=None)
        return command.reply()

    def hang_up(self, address: str, reason: str) -> None:
        self.hung_up.append(address)

    def addresses(self, code: RequestCode) -> list[str]:
        return [address for address, command in self.told if command.code == code]


def play(scenario: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    async def with_bench() -> None:
        bench = Bench()
        try:
            await scenario(bench)
        finally:
            await bench.tasks.close()

    asyncio.run(with_bench())


def test_a_producer_tells_masters_and_a_consumer_all_replicas() -> None:
    async def scenario(bench: Bench) -> None:
        assert await bench.heartbeats.beat()
        assert bench.addresses(RequestCode.HEART_BEAT) == ["m:1"]
        bench.told.clear()
        bench.data = HeartbeatData(client_id="c", consumer_data_set=[CONSUMER])
        assert await bench.heartbeats.beat()
        assert bench.addresses(RequestCode.HEART_BEAT) == ["m:1", "s:1"]

    play(scenario)


def test_a_broker_whose_connection_is_gone_is_told_at_once() -> None:
    async def scenario(bench: Bench) -> None:
        bench.heartbeats.start()
        await until(lambda: len(bench.told) == 1)
        await turns()
        assert len(bench.told) == 1
        bench.heartbeats.forget("m:1")
        await until(lambda: len(bench.told) == 2)

    play(scenario)


def test_a_broker_that_does_not_answer_is_told_again_soon_and_the_log_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(bench: Bench) -> None:
        bench.down = {"m:1"}
        bench.heartbeats.start()
        await until(lambda: len(bench.told) == 3)
        bench.down.clear()
        await until(lambda: len(bench.told) == 4)
        await turns()
        assert len(bench.told) == 4

    play(scenario)
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_a_broker_that_somebody_else_could_connect_to_again_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(bench: Bench) -> None:
        bench.down = {"m:1"}
        bench.heartbeats.start()
        await until(lambda: len(bench.told) == 1)
        await turns()
        bench.down.clear()
        bench.heartbeats.meet("m:1")
        await until(lambda: len(bench.told) == 2)
        bench.heartbeats.meet("m:1")
        await turns()
        assert not bench.heartbeats._is_due.is_set()

    # The pause after a failure is longer than the test waits.
    monkeypatch.setattr(heartbeats, "Backoff", lambda: Backoff(first_s=3600, most_s=3600))
    play(scenario)


def test_a_broker_that_hangs_up_after_every_heartbeat_is_told_now_and_then() -> None:
    async def scenario(bench: Bench) -> None:
        bench.heartbeats.start()
        for _ in range(200):
            await turns(1)
            bench.heartbeats.forget("m:1")
        assert len(bench.told) < 10

    play(scenario)


def test_a_broker_that_hangs_up_on_every_heartbeat_is_told_again_with_pauses() -> None:
    async def scenario(bench: Bench) -> None:
        bench.heartbeats.start()
        await until(lambda: len(bench.told) == 1)
        bench.hanging_up = {"m:1"}
        bench.heartbeats.forget("m:1")
        await until(lambda: len(bench.told) == 2)
        await turns(200)
        assert len(bench.told) < 10

    play(scenario)


def test_only_brokers_that_know_us_are_told_that_we_leave() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.heartbeats.leave(producer_group="g")
        assert bench.told == []
        await bench.heartbeats.beat()
        await bench.heartbeats.leave(producer_group="g")
        address, farewell = bench.told[-1]
        header = farewell.header(UnregisterClientRequest)
        assert address == "m:1"
        assert (header.client_id, header.producer_group, header.consumer_group) == ("c", "g", None)

    play(scenario)


@pytest.mark.behaviour("S3-12")
def test_a_connection_is_closed_on_which_a_consumer_is_not_let_in() -> None:
    async def scenario(bench: Bench) -> None:
        bench.data = HeartbeatData(client_id="c", consumer_data_set=[CONSUMER])
        bench.not_read = {"s:1"}
        refused: list[str] = []
        bench.heartbeats.on_refused = refused.append
        # A slave that is not read is nothing that would have to be told again soon.
        assert await bench.heartbeats.beat()
        assert bench.hung_up == refused == ["s:1"]
        bench.told.clear()
        assert await bench.heartbeats.beat()
        assert bench.addresses(RequestCode.HEART_BEAT) == ["m:1"]

    play(scenario)


def test_a_consumer_opens_although_nobody_is_read_now() -> None:
    async def scenario(bench: Bench) -> None:
        bench.data = HeartbeatData(client_id="c", consumer_data_set=[CONSUMER])
        bench.not_read = {"m:1", "s:1"}
        await bench.heartbeats.join()

    play(scenario)


def test_whoever_is_to_be_read_is_greeted_once_by_all_who_want_to_read_it() -> None:
    async def scenario(bench: Bench) -> None:
        bench.data = HeartbeatData(client_id="c", consumer_data_set=[CONSUMER])
        bench.not_read = {"s:1"}
        await bench.heartbeats.beat()
        bench.told.clear()
        bench.not_read.clear()
        await asyncio.gather(*(bench.heartbeats.greet("s:1") for _ in range(5)))
        await bench.heartbeats.greet("s:1")
        assert bench.addresses(RequestCode.HEART_BEAT) == ["s:1"]
        assert await bench.heartbeats.beat()
        assert bench.addresses(RequestCode.HEART_BEAT) == ["s:1", "m:1", "s:1"]

    play(scenario)


def test_one_that_was_not_read_is_told_again_after_a_period() -> None:
    async def scenario(bench: Bench) -> None:
        bench.data = HeartbeatData(client_id="c", consumer_data_set=[CONSUMER])
        bench.not_read = {"s:1"}
        bench.heartbeats._period_s = 0.1
        bench.heartbeats.start()
        await until(lambda: bench.addresses(RequestCode.HEART_BEAT).count("s:1") == 3)

    play(scenario)
