import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from tanist.broker import registration as registration_module
from tanist.broker import settings as settings_module
from tanist.broker.registration import MasterPlace, Registration
from tanist.broker.settings import BrokerRole
from tanist.errors import ConnectFailed
from tanist.ha.follower import Follower, FollowerStatus
from tanist.model.topics import TopicConfig
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

TWO = msgspec.structs.replace(SETTINGS, namesrv_addr="ns1:9876;ns2:9876", listen_port=11911)


class _Asked:
    """Keeps what name servers are asked, and answers as it is told."""

    def __init__(self, answer: Callable[[str, Command], Command] | None = None) -> None:
        self.requests: list[tuple[str, Command]] = []
        self._answer = answer or _accept

    async def request(self, address: str, command: Command, *, timeout_s: float) -> Command:
        assert 0 < timeout_s <= 3
        self.requests.append((address, command))
        await asyncio.sleep(0)
        return self._answer(address, command)

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
