import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tanist.client.errors import ClientClosed, NoRoute
from tanist.client.session.nameservers import NameServers
from tanist.client.session.route_keeper import RouteKeeper
from tanist.client.session.tasks import OwnedTasks
from tanist.client.settings import make_settings
from tanist.errors import ConnectFailed
from tanist.model.route import BrokerData, QueueData, TopicRouteData
from tanist.protocol.bodies.base import encode_body
from tanist.protocol.codes import ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.nameserver import GetRouteRequest
from tanist.protocol.response_errors import TopicNotFound
from tests.support.conditions import turns, until


class FakeServers:
    """Name servers without sockets: what each answers, and whom was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.brokers = {"a": "a:1"}
        self.topics: list[str] = []
        self.timeouts_s: list[float] = []
        self.down: set[str] = set()
        self.code = int(ResponseCode.SUCCESS)
        self.gate = asyncio.Event()
        self.gate.set()

    async def request(self, address: str, command: Command, *, timeout_s: float) -> Command:
        self.asked.append(address)
        self.topics.append(command.header(GetRouteRequest).topic)
        self.timeouts_s.append(timeout_s)
        await self.gate.wait()
        if address in self.down:
            raise ConnectFailed(address, "refused")
        return command.reply(self.code, body=encode_body(self.route()), remark="as told")

    def route(self) -> TopicRouteData:
        return TopicRouteData(
            queue_datas=[
                QueueData(broker_name=name, read_queue_count=1, write_queue_count=1, perm=6)
                for name in self.brokers
            ],
            broker_datas=[
                BrokerData(cluster="C", broker_name=name, broker_addrs={0: master})
                for name, master in self.brokers.items()
            ],
        )


class Bench:
    """A keeper with its fake name servers."""

    def __init__(self) -> None:
        self.servers = FakeServers()
        self.tasks = OwnedTasks()
        settings = make_settings(namesrv="n1:1;n2:1", credentials=None, tls=None, timeout_s=3, instance=None)
        remoting: Any = self.servers
        self.keeper = RouteKeeper(NameServers(settings, remoting), self.tasks, poll_s=3600)


def play(scenario: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    async def with_bench() -> None:
        bench = Bench()
        try:
            await scenario(bench)
        finally:
            await bench.tasks.close()

    asyncio.run(with_bench())


def test_all_who_ask_at_once_share_one_answer() -> None:
    async def scenario(bench: Bench) -> None:
        bench.servers.gate.clear()
        asking = [asyncio.ensure_future(bench.keeper.find("T")) for _ in range(5)]
        await turns()
        asking[0].cancel()
        bench.servers.gate.set()
        routes = await asyncio.gather(*asking[1:])
        assert len(bench.servers.asked) == 1
        assert all(route is routes[0] for route in routes)

    play(scenario)


def test_a_known_route_is_not_asked_for_again() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.keeper.find("T")
        await bench.keeper.find("T")
        assert len(bench.servers.asked) == 1

    play(scenario)


def test_a_name_server_that_fails_is_asked_last_from_then_on() -> None:
    async def scenario(bench: Bench) -> None:
        bench.servers.down = {"n1:1"}
        await bench.keeper.ask("T")
        await bench.keeper.ask("T")
        await bench.keeper.ask("T")
        assert bench.servers.asked[-2:] == ["n2:1", "n2:1"]

    play(scenario)


def test_an_error_names_every_name_server_that_was_asked() -> None:
    async def scenario(bench: Bench) -> None:
        bench.servers.down = {"n1:1", "n2:1"}
        with pytest.raises(NoRoute, match=r"n1:1.*n2:1|n2:1.*n1:1"):
            await bench.keeper.find("T")

    play(scenario)


def test_an_unknown_topic_is_told_as_such() -> None:
    async def scenario(bench: Bench) -> None:
        bench.servers.code = ResponseCode.TOPIC_NOT_EXIST
        with pytest.raises(TopicNotFound):
            await bench.keeper.find("T")
        assert len(bench.servers.asked) == 1

    play(scenario)


def test_a_suspect_route_is_asked_for_again_and_a_change_is_told() -> None:
    async def scenario(bench: Bench) -> None:
        changed: list[str] = []
        bench.keeper.on_change(changed.append)
        bench.keeper.start()
        await bench.keeper.find("T")
        bench.servers.brokers = {"a": "a:2"}
        bench.keeper.suspect()
        await until(lambda: bench.keeper.table.master_of("a") == "a:2")
        assert changed == ["T", "T"]

    play(scenario)


def test_a_broker_that_went_missing_is_found_soon_after_it_is_back() -> None:
    async def scenario(bench: Bench) -> None:
        bench.servers.brokers = {"a": "a:1", "b": "b:1"}
        bench.keeper.start()
        await bench.keeper.find("T")
        bench.servers.brokers = {"a": "a:1"}
        bench.keeper.suspect()
        await until(lambda: bench.keeper.table.master_of("b") is None)
        bench.servers.brokers = {"a": "a:1", "b": "b:1"}
        # Nobody suspects anything any more, and the next poll would be in an hour.
        await until(lambda: bench.keeper.table.master_of("b") == "b:1")

    play(scenario)


def test_the_old_route_stays_when_no_name_server_answers() -> None:
    async def scenario(bench: Bench) -> None:
        bench.keeper.start()
        await bench.keeper.find("T")
        bench.servers.down = {"n1:1", "n2:1"}
        bench.keeper.suspect()
        await until(lambda: len(bench.servers.asked) >= 3)
        await turns()
        assert bench.keeper.table.master_of("a") == "a:1"

    play(scenario)


def test_who_waits_for_a_route_when_the_client_is_closed_is_told_so() -> None:
    async def scenario(bench: Bench) -> None:
        bench.servers.gate.clear()
        asking = asyncio.ensure_future(bench.keeper.find("T"))
        await turns()
        await bench.tasks.close()
        with pytest.raises(ClientClosed):
            await asking

    play(scenario)


def test_a_name_server_that_does_not_answer_leaves_time_for_the_next_one() -> None:
    async def scenario(bench: Bench) -> None:
        bench.servers.down = {"n1:1", "n2:1"}
        with pytest.raises(NoRoute):
            await bench.keeper.find("T")
        assert len(bench.servers.timeouts_s) == 2
        assert sum(bench.servers.timeouts_s) <= 3

    play(scenario)


def test_routes_are_asked_for_again_soon_if_no_name_server_answered() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.keeper.find("T")
        await bench.keeper.find("U")
        bench.keeper.start()
        bench.servers.down = {"n1:1", "n2:1"}
        bench.keeper.suspect()
        await until(lambda: len(bench.servers.asked) >= 2 + 2 * 2)
        # The second topic is not asked for while nobody answers.
        assert bench.servers.topics[2:6] == ["T"] * 4
        bench.servers.down.clear()
        bench.servers.brokers = {"a": "b:1"}
        await until(lambda: bench.keeper.table.master_of("a") == "b:1")
        count = len(bench.servers.asked)
        await turns(200)
        assert len(bench.servers.asked) <= count + 1

    play(scenario)


def test_a_master_that_is_sought_is_found_by_the_route_of_one_topic() -> None:
    async def scenario(bench: Bench) -> None:
        moved: list[str] = []
        bench.keeper.on_master(moved.append)
        for topic in ("T", "U", "V"):
            await bench.keeper.find(topic)
        asked_before = len(bench.servers.topics)
        for _ in range(100):
            bench.keeper.seek_master("a")
        await until(lambda: len(bench.servers.topics) > asked_before + 1)
        bench.servers.brokers = {"a": "a:2"}
        assert await bench.keeper.changed(10)
        assert bench.keeper.table.master_of("a") == "a:2"
        assert len(set(bench.servers.topics[asked_before:])) == 1
        assert len(bench.servers.topics) - asked_before < 10
        assert moved == ["a", "a"]

    play(scenario)


def test_the_other_routes_are_asked_for_when_a_master_was_found() -> None:
    async def scenario(bench: Bench) -> None:
        bench.keeper.start()
        await bench.keeper.find("T")
        await bench.keeper.find("U")
        bench.servers.topics.clear()
        bench.servers.brokers = {"a": "a:2"}
        bench.keeper.seek_master("a")
        await until(lambda: set(bench.servers.topics) == {"T", "U"})

    play(scenario)


def test_only_the_loss_of_a_master_has_one_sought_and_its_return_ends_that() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.keeper.find("T")
        bench.keeper.lost("elsewhere:1")
        await turns()
        assert len(bench.servers.topics) == 1
        bench.keeper.lost("a:1")
        await until(lambda: len(bench.servers.topics) == 2)
        bench.keeper.reached("a:1")
        await until(lambda: not bench.keeper._searches)
        assert len(bench.servers.topics) == 2

    play(scenario)


def test_who_waits_for_a_change_waits_no_longer_than_that() -> None:
    async def scenario(bench: Bench) -> None:
        assert not await bench.keeper.changed(0.001)
        waiting = asyncio.ensure_future(bench.keeper.changed(10))
        await turns()
        bench.keeper.wake()
        assert await waiting

    play(scenario)


def test_routes_that_stay_suspect_are_asked_for_once_a_second() -> None:
    async def scenario(bench: Bench) -> None:
        bench.keeper.start()
        await bench.keeper.find("T")
        bench.keeper.suspect()
        await until(lambda: len(bench.servers.topics) == 2)
        first_s = asyncio.get_running_loop().time()
        while len(bench.servers.topics) < 3:
            bench.keeper.suspect()
            await asyncio.sleep(0.01)
        assert asyncio.get_running_loop().time() - first_s > 0.9

    play(scenario)
