import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from tanist.broker import registration as registration_module
from tanist.broker import settings as settings_module
from tanist.broker.registration import MasterPlace, Registration
from tanist.broker.settings import BrokerRole, BrokerSettings
from tanist.broker.slave_consume.permitted import Permitted
from tanist.broker.state import BrokerState
from tanist.errors import ConnectFailed
from tanist.ha.follower import Follower, FollowerStatus
from tanist.model.topics import WRITE, TopicConfig
from tanist.nameserver.route_table import RouteTable
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.registration import RegisterBrokerBody, registration_crc
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.nameserver import (
    BrokerIdentityRequest,
    RegisterBrokerRequest,
    RegisterBrokerResponse,
)
from tanist.remoting import RemotingClient
from tests.support.broker_tables import SETTINGS, open_state
from tests.support.conditions import turns, until
from tests.support.read_rights import MASTER_IS_READ, OTHER_IS_READ, SLAVE_IS_READ, GivenRight

TWO = msgspec.structs.replace(SETTINGS, namesrv_addr="ns1:9876;ns2:9876", listen_port=11911)


class _Asked:
    """Keeps what name servers are asked, and answers as it is told."""

    def __init__(self, answer: Callable[[str, Command], Command] | None = None) -> None:
        self.requests: list[tuple[str, Command]] = []
        self.closed: list[str] = []
        self._answer = answer or _accept

    async def request(self, address: str, command: Command, *, timeout_s: float) -> Command:
        assert 0 < timeout_s <= 3
        self.requests.append((address, command))
        await asyncio.sleep(0)
        return self._answer(address, command)

    def give_up(self, address: str, reason: str) -> None:
        self.closed.append(address)

    @property
    def client(self) -> RemotingClient:
        return cast("RemotingClient", self)


def _accept(_server: str, request: Command) -> Command:
    return request.reply()


def test_every_name_server_is_told_who_and_where_the_broker_is_and_its_topics(tmp_path: Path) -> None:
    state, asked = open_state(tmp_path, TWO), _Asked()
    asyncio.run(Registration(state, asked.client).register())

    assert [server for server, _ in asked.requests] == ["ns1:9876", "ns2:9876"]
    for _, request in asked.requests:
        assert request.code == RequestCode.REGISTER_BROKER
        header = request.header(RegisterBrokerRequest)
        assert (header.broker_name, header.broker_id, header.cluster_name) == (
            *("broker-a", 0),
            "DefaultCluster",
        )
        assert (header.broker_addr, header.ha_server_addr) == ("127.0.0.1:11911", "127.0.0.1:11912")
        assert header.body_crc32 == registration_crc(request.body)
        body = decode_java_json(request.body, RegisterBrokerBody)
        assert body.topic_configs.topics == state.topics.table.topics
        assert body.topic_configs.data_version == state.topics.data_version


def test_every_name_server_is_told_goodbye(tmp_path: Path) -> None:
    asked = _Asked()
    asyncio.run(Registration(open_state(tmp_path, TWO), asked.client).unregister())
    assert [request.code for _, request in asked.requests] == [RequestCode.UNREGISTER_BROKER] * 2
    header = asked.requests[0][1].header(BrokerIdentityRequest)
    assert (header.broker_name, header.broker_addr) == ("broker-a", "127.0.0.1:11911")


def test_a_name_server_that_fails_or_refuses_is_one_warning_and_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(server: str, request: Command) -> Command:
        if server == "ns1:9876":
            raise ConnectFailed(server, "refused")
        return request.reply(ResponseCode.SYSTEM_ERROR, remark="who are you")

    async def scenario() -> None:
        registration = Registration(open_state(tmp_path, TWO), asked.client)
        await registration.register()
        await registration.register()

    asked = _Asked(answer)
    asyncio.run(scenario())
    assert len(asked.requests) == 4
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2
    assert "ns1:9876" in caplog.text
    assert "who are you" in caplog.text


def test_a_new_topic_is_told_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        state, asked = open_state(tmp_path, TWO), _Asked()
        registration = Registration(state, asked.client)
        state.topics.on_change(registration.topics_changed)
        run = asyncio.create_task(registration.run())
        await asyncio.sleep(0)
        assert asked.requests == []
        state.topics.put(TopicConfig(topic_name="new"))
        await until(lambda: len(asked.requests) == 2, timeout_s=2)
        body = decode_java_json(asked.requests[0][1].body, RegisterBrokerBody)
        assert "new" in body.topic_configs.topics
        run.cancel()
        await asyncio.wait([run])

    asyncio.run(scenario())


def test_a_topic_that_comes_while_the_last_is_told_is_told_too(tmp_path: Path) -> None:
    async def scenario() -> None:
        state, asked = open_state(tmp_path, TWO), _Asked()
        registration = Registration(state, asked.client)
        run = asyncio.create_task(registration.run())
        registration.topics_changed()
        await until(lambda: len(asked.requests) == 2)
        registration.topics_changed()
        registration.topics_changed()
        await until(lambda: len(asked.requests) == 4)
        await turns()
        assert len(asked.requests) == 4
        run.cancel()
        await asyncio.wait([run])

    asyncio.run(scenario())


def test_the_broker_registers_again_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_module, "_REGISTER_MS_RANGE", (1, 10))

    async def scenario() -> None:
        asked = _Asked()
        run = asyncio.create_task(Registration(open_state(tmp_path, TWO), asked.client).run())
        await until(lambda: len(asked.requests) >= 6)
        run.cancel()
        await asyncio.wait([run])

    asyncio.run(scenario())


def test_a_name_server_that_starts_after_the_broker_is_told_soon(tmp_path: Path) -> None:
    down = ["ns2:9876"]

    def answer(server: str, request: Command) -> Command:
        if server in down:
            raise ConnectFailed(server, "refused")
        return request.reply()

    async def scenario() -> None:
        asked = _Asked(answer)
        registration = Registration(open_state(tmp_path, TWO), asked.client)
        await registration.register()
        down.clear()
        run = asyncio.create_task(registration.run())
        await until(lambda: len(asked.requests) == 4)
        run.cancel()
        await asyncio.wait([run])

    asyncio.run(scenario())


def test_a_name_server_whose_connection_is_lost_is_told_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        asked = _Asked()
        registration = Registration(open_state(tmp_path, TWO), asked.client)
        run = asyncio.create_task(registration.run())
        await asyncio.sleep(0)
        registration.connection_lost()
        await until(lambda: len(asked.requests) == 2)
        run.cancel()
        await asyncio.wait([run])

    asyncio.run(scenario())


def test_without_a_name_server_nothing_is_told(tmp_path: Path) -> None:
    asked = _Asked()
    asyncio.run(Registration(open_state(tmp_path), asked.client).register())
    assert asked.requests == []


def test_no_topic_is_told_with_a_permission_that_the_broker_lacks(tmp_path: Path) -> None:
    state, asked = open_state(tmp_path, msgspec.structs.replace(TWO, broker_permission=4)), _Asked()
    state.topics.put(TopicConfig(topic_name="both", perm=6))
    state.topics.put(TopicConfig(topic_name="write-only", perm=2))
    asyncio.run(Registration(state, asked.client).register())
    told = decode_java_json(asked.requests[0][1].body, RegisterBrokerBody).topic_configs
    assert (told.topics["both"].perm, told.topics["write-only"].perm) == (4, 0)
    assert told.data_version == state.topics.data_version
    assert state.topics.table.topics["both"].perm == 6


SLAVE = msgspec.structs.replace(TWO, broker_role=BrokerRole.SLAVE, broker_id=1)


def _naming(addresses: dict[str, tuple[str, str]]) -> Callable[[str, Command], Command]:
    """Name servers that know these masters: broker address and HA address."""

    def answer(server: str, request: Command) -> Command:
        if server not in addresses:
            return request.reply(header=RegisterBrokerResponse())
        address, ha_address = addresses[server]
        return request.reply(header=RegisterBrokerResponse(master_addr=address, ha_server_addr=ha_address))

    return answer


def test_a_slave_registers_with_its_own_id(tmp_path: Path) -> None:
    asked = _Asked()
    asyncio.run(Registration(open_state(tmp_path, SLAVE), asked.client).register())
    assert asked.requests[0][1].header(RegisterBrokerRequest).broker_id == 1


def test_the_first_name_server_that_knows_tells_a_slave_where_its_master_is(tmp_path: Path) -> None:
    known = {"ns2:9876": ("m:10911", "m:10912")}
    registration = Registration(open_state(tmp_path, SLAVE), _Asked(_naming(known)).client)
    told: list[MasterPlace] = []
    registration.on_master(told.append)

    async def scenario() -> None:
        await registration.register()
        await registration.register()
        assert told == [MasterPlace("m:10911", "m:10912")]
        known["ns1:9876"] = ("n:10911", "n:10912")
        await registration.register()
        assert told[1:] == [MasterPlace("n:10911", "n:10912")]
        known.clear()
        await registration.register()
        assert len(told) == 2

    asyncio.run(scenario())


@pytest.mark.parametrize(("address", "ha_address"), [("", ""), ("m:10911", ""), ("m", "m:1"), ("m:1", "m:0")])
def test_an_answer_that_names_no_place_is_passed_over(tmp_path: Path, address: str, ha_address: str) -> None:
    known = {"ns1:9876": (address, ha_address), "ns2:9876": ("m:10911", "m:10912")}
    registration = Registration(open_state(tmp_path, SLAVE), _Asked(_naming(known)).client)
    told: list[MasterPlace] = []
    registration.on_master(told.append)
    asyncio.run(registration.register())
    assert told == [MasterPlace("m:10911", "m:10912")]


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_slave_asks_again_soon_until_it_has_found_its_master(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_refused: bool
) -> None:
    monkeypatch.setattr(registration_module, "_FIRST_AGAIN_S", 0.001)

    async def scenario() -> None:
        state, asked = open_state(tmp_path, SLAVE), _Asked()
        follower = SimpleNamespace(is_transferring=False, status=FollowerStatus())
        state.replication.follower = cast("Follower", follower)
        registration = Registration(state, asked.client)
        await registration.register()
        run = asyncio.create_task(registration.run())
        await until(lambda: len(asked.requests) >= 6)
        follower.is_transferring, follower.status.is_refused = not is_refused, is_refused
        registration.master_lost()
        count = len(asked.requests)
        await until(lambda: len(asked.requests) >= count + 2)
        await turns()
        run.cancel()
        await asyncio.wait([run])
        assert registration._again_s() == state.settings.register_period_s  # pyright: ignore[reportPrivateUsage]

    asyncio.run(scenario())


def test_a_master_is_told_of_no_master(tmp_path: Path) -> None:
    known = {"ns1:9876": ("m:10911", "m:10912"), "ns2:9876": ("m:10911", "m:10912")}
    registration = Registration(open_state(tmp_path, TWO), _Asked(_naming(known)).client)
    told: list[MasterPlace] = []
    registration.on_master(told.append)
    asyncio.run(registration.register())
    assert told == []


def test_a_broker_that_withdraws_is_forgotten_under_the_id_it_was_known_by(tmp_path: Path) -> None:
    async def scenario() -> None:
        state, asked = open_state(tmp_path, TWO), _Asked()
        registration = Registration(state, asked.client)
        await registration.register()
        state.settings = msgspec.structs.replace(state.settings, broker_role=BrokerRole.SLAVE, broker_id=7)
        registration.withdraw()
        await registration.register()
        requests = [request for _, request in asked.requests[2:]]
        assert [request.code for request in requests] == [RequestCode.UNREGISTER_BROKER] * 2
        assert {request.header(BrokerIdentityRequest).broker_id for request in requests} == {0}
        await registration.register()
        assert len(asked.requests) == 4

    asyncio.run(scenario())


def test_a_new_role_is_told_at_once_while_a_name_server_is_silent(tmp_path: Path) -> None:
    class _OneSilent(_Asked):
        async def request(self, address: str, command: Command, *, timeout_s: float) -> Command:
            answer = await super().request(address, command, timeout_s=timeout_s)
            if address == "ns1:9876":
                await asyncio.Event().wait()
            return answer

    async def scenario() -> None:
        state, asked = open_state(tmp_path, TWO), _OneSilent()
        registration = Registration(state, asked.client)
        run = asyncio.create_task(registration.run())
        registration.topics_changed()
        await until(lambda: len(asked.requests) == 2)
        state.settings = msgspec.structs.replace(state.settings, broker_id=7, broker_role=BrokerRole.SLAVE)
        registration.role_changed()
        await until(lambda: len(asked.requests) == 4)
        run.cancel()
        await asyncio.wait([run])
        ids = [request.header(RegisterBrokerRequest).broker_id for _, request in asked.requests]
        assert ids == [0, 0, 7, 7]

    asyncio.run(scenario())


def _shown(request: Command) -> tuple[int, int]:
    """Under which id, and what may be done with a topic that may be read and written."""
    told = decode_java_json(request.body, RegisterBrokerBody).topic_configs
    return request.header(RegisterBrokerRequest).broker_id, told.topics["both"].perm


def _state_of(root: Path, settings: BrokerSettings, right: GivenRight | None = None) -> BrokerState:
    """With a topic that may be read and written, which a slave has from its master."""
    state = open_state(root, settings)
    topics = {**state.topics.table.topics, "both": TopicConfig(topic_name="both", perm=6)}
    state.topics.table = msgspec.structs.replace(state.topics.table, topics=topics)
    state.read_right = right
    return state


def test_a_slave_that_is_read_is_shown_at_the_masters_place_and_then_at_its_own(tmp_path: Path) -> None:
    async def scenario() -> None:
        right = GivenRight(OTHER_IS_READ)
        state, asked = _state_of(tmp_path, SLAVE, right), _Asked()
        registration = Registration(state, asked.client)
        right.listeners.append(registration.on_permitted)
        for found in (OTHER_IS_READ, SLAVE_IS_READ, OTHER_IS_READ, SLAVE_IS_READ):
            right.give(found)
            await registration.register()
        requests = [request for server, request in asked.requests if server == "ns1:9876"]
        assert [_shown(request) for request in requests] == [(1, 0), (0, 4), (1, 0), (0, 4)]
        versions = [
            decode_java_json(request.body, RegisterBrokerBody).topic_configs.data_version
            for request in requests
        ]
        assert sorted({state.topics.data_version, *versions}) == [state.topics.data_version, *versions]
        # Other slaves do not take it for the one to follow.
        assert [request.header(RegisterBrokerRequest).ha_server_addr != "" for request in requests] == [
            *(True, False),
            *(True, False),
        ]
        # Nobody leaves by an id that may be another's by then.
        await registration.unregister()
        assert asked.closed == ["ns1:9876", "ns2:9876"]
        assert {request.code for _, request in asked.requests} == {RequestCode.REGISTER_BROKER}

    asyncio.run(scenario())


def test_a_master_that_may_do_nothing_is_not_shown_and_one_that_may_is_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        right = GivenRight(OTHER_IS_READ)
        asked = _Asked()
        registration = Registration(_state_of(tmp_path, TWO, right), asked.client)
        right.listeners.append(registration.on_permitted)
        right.give(OTHER_IS_READ)
        await registration.register()
        assert (asked.requests, asked.closed) == ([], [])
        for found, shown in ((MASTER_IS_READ, (0, 6)), (MASTER_IS_READ._replace(permission=WRITE), (0, 2))):
            right.give(found)
            await registration.register()
            assert _shown(asked.requests[-1][1]) == shown
        right.give(OTHER_IS_READ)
        await registration.register()
        await registration.register()
        assert asked.closed == ["ns1:9876", "ns2:9876"]
        assert len(asked.requests) == 4

    asyncio.run(scenario())


def test_a_master_that_stood_still_does_not_show_itself_before_it_has_noticed(tmp_path: Path) -> None:
    async def scenario() -> None:
        right = GivenRight(MASTER_IS_READ)
        asked = _Asked()
        registration = Registration(_state_of(tmp_path, TWO, right), asked.client)
        registration.show_as(0, 6)
        await registration.register()
        right.found = OTHER_IS_READ
        await registration.register()
        assert len(asked.requests) == 2
        assert asked.closed == ["ns1:9876", "ns2:9876"]

    asyncio.run(scenario())


def test_the_same_standing_again_is_no_news_to_name_servers(tmp_path: Path) -> None:
    async def scenario() -> None:
        asked = _Asked()
        registration = Registration(_state_of(tmp_path, SLAVE), asked.client)
        run = asyncio.create_task(registration.run())
        registration.show_as(0, 4)
        await until(lambda: len(asked.requests) == 2)
        registration.show_as(0, 4)
        await turns()
        run.cancel()
        await asyncio.wait([run])
        assert len(asked.requests) == 2

    asyncio.run(scenario())


def test_a_slave_at_the_masters_place_does_not_ask_again_soon_where_the_master_is(tmp_path: Path) -> None:
    state = _state_of(tmp_path, SLAVE)
    follower = SimpleNamespace(is_transferring=False, status=FollowerStatus())
    state.replication.follower = cast("Follower", follower)
    registration = Registration(state, _Asked().client)

    async def scenario() -> None:
        for broker_id, is_soon in ((1, True), (0, False)):
            registration.show_as(broker_id, 4)
            await registration.register()
            period_s = registration._again_s()  # pyright: ignore[reportPrivateUsage]
            assert (period_s < state.settings.register_period_s) == is_soon

    asyncio.run(scenario())


def test_the_route_follows_whoever_is_read(tmp_path: Path) -> None:
    """Master and slave, each with its own registration, at one name server's table."""
    table, number = RouteTable(), itertools.count()

    def answer(_server: str, request: Command) -> Command:
        header = request.header(RegisterBrokerRequest)
        body = decode_java_json(request.body, RegisterBrokerBody)
        response, _ = table.register(header, body, connection=header.broker_addr, now_s=next(number))
        return request.reply(header=response)

    class _Servers(_Asked):
        def __init__(self, address: str) -> None:
            super().__init__(answer)
            self._address = address

        def give_up(self, address: str, reason: str) -> None:
            table.on_connection_lost(self._address)

    def route() -> tuple[dict[int, str], int]:
        found = table.route("both")
        assert found is not None
        (group,), (queues,) = found.broker_datas, found.queue_datas
        return group.broker_addrs, queues.perm

    async def scenario() -> None:
        names = msgspec.structs.replace(TWO, namesrv_addr="ns1:9876")
        master_right, slave_right = GivenRight(MASTER_IS_READ), GivenRight(OTHER_IS_READ)
        master_state = _state_of(tmp_path / "m", names, master_right)
        slave_settings = msgspec.structs.replace(
            names, broker_role=BrokerRole.SLAVE, broker_id=1, listen_port=12911
        )
        slave_state = _state_of(tmp_path / "s", slave_settings, slave_right)
        # Its tables are the master's.
        slave_state.topics.table = master_state.topics.table
        here, there = master_state.settings.address, slave_settings.address
        master = Registration(master_state, _Servers(here).client)
        slave = Registration(slave_state, _Servers(there).client)

        async def permit(of_master: Permitted, of_slave: Permitted) -> None:
            master_right.found, slave_right.found = of_master, of_slave
            for registration, found in ((slave, of_slave), (master, of_master)):
                registration.on_permitted(found)
                await registration.register()

        await permit(MASTER_IS_READ, OTHER_IS_READ)
        assert route() == ({0: here, 1: there}, 6)
        # The master hangs, and the name server has not noticed yet.
        slave_right.found = SLAVE_IS_READ
        slave.on_permitted(SLAVE_IS_READ)
        await slave.register()
        assert route() == ({0: there}, 4)
        await permit(OTHER_IS_READ, SLAVE_IS_READ)
        assert route() == ({0: there}, 4)
        await permit(MASTER_IS_READ, OTHER_IS_READ)
        assert route() == ({0: here, 1: there}, 6)
        await permit(OTHER_IS_READ, SLAVE_IS_READ)
        assert route() == ({0: there}, 4)

    asyncio.run(scenario())
