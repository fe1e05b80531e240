"""The broker that other people's tests use, inside this process."""

import asyncio
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tanist.errors import ConfigError, ConnectFailed, StoreLocked
from tanist.model.route import TopicRouteData
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.headers.nameserver import GetRouteRequest
from tanist.protocol.headers.send import SendMessageResponse
from tanist.protocol.message_id import decode_offset_id
from tanist.protocol.record import decode_record
from tanist.remoting import RemotingClient, TlsSettings
from tanist.testing import EmbeddedBroker, embedded
from tests.support.remoting import Run, in_time, on_both_loops
from tests.support.requests import TOPIC as T
from tests.support.requests import pull_request, send_request
from tests.support.rocketmq.cluster import free_broker_port
from tests.support.tls import certificate, key
from tests.support.wire import Wire

C, R = RequestCode, ResponseCode
SMALL_STORE_BYTES = 12 << 20


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where folders are made that nobody asked for: at the end of every test there is none."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture(autouse=True)
def no_thread_is_left(temporary: Path) -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive()


def listening() -> set[str]:
    """Where this process listens."""
    connections = psutil.Process().net_connections(kind="tcp")
    return {"{}:{}".format(*one.laddr) for one in connections if one.status == psutil.CONN_LISTEN}


async def ask(address: str, request: Command, *, tls: TlsSettings | None = None) -> Command:
    client = RemotingClient(tls=tls)
    try:
        return await client.request(address, request, timeout_s=10)
    finally:
        await client.close()


async def route(broker: EmbeddedBroker, topic: str, *, tls: TlsSettings | None = None) -> TopicRouteData:
    request = Command.request(C.GET_ROUTEINFO_BY_TOPIC, GetRouteRequest(topic=topic))
    answer = await ask(broker.namesrv, request, tls=tls)
    assert answer.code == R.SUCCESS, answer.remark
    return decode_java_json(answer.body, TopicRouteData)


async def first_body(broker: EmbeddedBroker) -> bytes:
    answer = await ask(broker.address, pull_request())
    assert answer.code == R.SUCCESS, answer.remark
    return bytes(decode_record(memoryview(answer.body)).body)


async def send(broker: EmbeddedBroker, body: bytes) -> SendMessageResponse:
    answer = await ask(broker.address, send_request(body))
    assert answer.code == R.SUCCESS, answer.remark
    return answer.header(SendMessageResponse)


@on_both_loops
def test_what_is_sent_is_pulled(run: Run) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker() as broker:
            await send(broker, b"hello")
            assert await first_body(broker) == b"hello"

    run(scenario())


def test_topics_have_their_routes_when_the_block_begins() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics={T: 3}) as broker:
            found = await route(broker, T)
            assert found.broker_datas[0].broker_addrs == {0: broker.address}
            assert found.broker_datas[0].broker_name == broker.broker_name == "embedded"
            (queues,) = found.queue_datas
            assert (queues.read_queue_count, queues.write_queue_count, queues.perm) == (3, 3, 6)

    asyncio.run(scenario())


def test_topics_without_a_number_have_four_queues() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics=["One", "Two"]) as broker:
            for topic in ("One", "Two"):
                assert (await route(broker, topic)).queue_datas[0].write_queue_count == 4

    asyncio.run(scenario())


def test_the_ids_of_messages_carry_the_port_that_the_system_chose() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker() as broker:
            sent = await send(broker, b"hello")
            port = int.from_bytes(decode_offset_id(sent.msg_id).store_host[-4:])
            assert broker.address == f"127.0.0.1:{port}"

    asyncio.run(scenario())


def test_a_port_that_the_system_chose_has_no_second_one_below_it() -> None:
    before = listening()
    with EmbeddedBroker() as broker:
        others = listening() - before - {broker.address, broker.namesrv}
        # The one for slaves, wherever it is.
        assert len(others) == 1
        host, _, port = broker.address.rpartition(":")
        assert others.isdisjoint({f"{host}:{int(port) - 2}"})
    assert listening() <= before


def test_several_serve_at_once_and_know_nothing_of_each_other() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(topics=[T]) as one, EmbeddedBroker(topics=[T]) as two:
            assert len({one.address, one.namesrv, two.address, two.namesrv}) == 4
            await send(one, b"one")
            await send(two, b"two")
            assert [await first_body(one), await first_body(two)] == [b"one", b"two"]
            assert len((await route(one, T)).broker_datas) == 1

    asyncio.run(scenario())


def test_a_store_of_ones_own_stays_and_the_next_broker_goes_on_with_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedBroker(store=tmp_path / "store", topics={T: 2}) as broker:
            await send(broker, b"hello")
        # A topic that is there stays as it is.
        async with EmbeddedBroker(store=tmp_path / "store", topics={T: 5}) as broker:
            assert await first_body(broker) == b"hello"
            assert (await route(broker, T)).queue_datas[0].write_queue_count == 2

    asyncio.run(scenario())


def test_the_store_is_small(temporary: Path) -> None:
    timed = send_request(properties="TIMER_DELAY_SEC\x0160\x02")
    with EmbeddedBroker() as broker, Wire(broker.address) as wire:
        for request in (send_request(properties="KEYS\x01k\x02"), timed):
            assert wire.ask(request).code == R.SUCCESS
        files = [path for path in temporary.rglob("*") if path.is_file()]
        assert any(path.parent.name == "commitlog" for path in files)
        assert sum(path.stat().st_blocks * 512 for path in files) < SMALL_STORE_BYTES


def test_nobody_listens_when_the_block_is_over() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker() as broker:
            pass
        for address in (broker.address, broker.namesrv):
            with pytest.raises(ConnectFailed):
                await ask(address, pull_request())

    asyncio.run(scenario())


def test_a_client_that_is_still_connected_does_not_keep_it_from_ending() -> None:
    with EmbeddedBroker() as broker:
        wire = Wire(broker.address)
        assert wire.ask(send_request()).code == R.SUCCESS
    with wire:
        assert wire.receive() is None


def test_it_may_end_in_another_task_than_it_began_in() -> None:
    broker = EmbeddedBroker()
    with asyncio.Runner() as runner:
        runner.run(broker.__aenter__())
        runner.run(send(broker, b"hello"))
        runner.run(broker.__aexit__(None, None, None))


@pytest.mark.parametrize("turns", [1, 2, 5])
def test_one_that_is_cancelled_while_it_starts_leaves_nothing(turns: int) -> None:
    async def scenario() -> None:
        starting = asyncio.create_task(EmbeddedBroker().__aenter__())
        for _ in range(turns):
            await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await in_time(starting)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())


def test_an_interrupt_while_it_starts_in_its_thread_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_args: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(embedded, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        EmbeddedBroker().__enter__()


def test_a_block_that_fails_ends_the_broker_and_its_error_is_the_blocks_own() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(scenario())
    with pytest.raises(ZeroDivisionError), EmbeddedBroker():
        raise ZeroDivisionError


def test_tests_that_block_use_it_from_any_thread() -> None:
    seen: list[int] = []

    def use(address: str) -> None:
        with Wire(address) as wire:
            seen.append(wire.ask(send_request()).code)

    with EmbeddedBroker(topics=[T]) as broker:
        users = [threading.Thread(target=use, args=(broker.address,)) for _ in range(3)]
        for user in users:
            user.start()
        for user in users:
            user.join()
    assert seen == [R.SUCCESS] * 3


def test_a_port_of_ones_own_is_used_and_named_when_it_is_taken() -> None:
    port = free_broker_port()
    with EmbeddedBroker(port=port) as broker:
        assert broker.address == f"127.0.0.1:{port}"
        with pytest.raises(ConfigError, match=f"port={port} is not allowed; use free ports"):
            EmbeddedBroker(port=port).__enter__()

        async def scenario() -> None:
            await EmbeddedBroker(port=port).__aenter__()

        with pytest.raises(ConfigError, match=f"port={port} is not allowed; use free ports"):
            asyncio.run(scenario())


def test_a_store_that_another_uses_is_refused_and_left_alone(tmp_path: Path) -> None:
    with EmbeddedBroker(store=tmp_path / "store", topics=[T]):
        topics = tmp_path / "store" / "config" / "topics.json"
        before = topics.read_bytes()
        with pytest.raises(StoreLocked):
            EmbeddedBroker(store=tmp_path / "store", topics=["Other"]).__enter__()
        assert topics.read_bytes() == before


def test_settings_are_those_of_a_broker() -> None:
    with (
        EmbeddedBroker(settings={"brokerName": "b", "autoCreateTopicEnable": "false"}) as broker,
        Wire(broker.address) as wire,
    ):
        assert broker.broker_name == "b"
        assert wire.ask(send_request()).code == R.TOPIC_NOT_EXIST


def test_with_tls_the_name_server_speaks_it_too() -> None:
    settings = {
        "tlsMode": "enforcing",
        "tlsEnable": "true",
        "tlsServerCertPath": certificate("server"),
        "tlsServerKeyPath": key("server"),
        "tlsClientAuthServer": "true",
        "tlsClientTrustCertPath": certificate("ca"),
    }
    trusting = TlsSettings(
        tls_enable=True, tls_client_auth_server=True, tls_client_trust_cert_path=certificate("ca")
    )

    async def scenario() -> None:
        async with EmbeddedBroker(topics=[T], settings=settings) as broker:
            found = await route(broker, T, tls=trusting)
            assert found.broker_datas[0].broker_addrs == {0: broker.address}
            assert (await ask(broker.address, send_request(), tls=trusting)).code == R.SUCCESS

    asyncio.run(scenario())


def test_a_setting_without_effect_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with EmbeddedBroker(settings={"noSuchKey": "1"}):
        pass
    assert "file=EmbeddedBroker keys=noSuchKey" in caplog.text


def test_it_serves_once() -> None:
    broker = EmbeddedBroker()
    with broker, pytest.raises(RuntimeError, match="used before"):
        broker.__enter__()
    with pytest.raises(RuntimeError, match="used before"):
        asyncio.run(broker.__aenter__())


def test_before_its_block_it_has_no_address() -> None:
    broker = EmbeddedBroker()
    for read in (lambda: broker.namesrv, lambda: broker.address):
        with pytest.raises(RuntimeError, match="before its block begins"):
            read()
