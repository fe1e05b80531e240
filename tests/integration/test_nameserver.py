"""The name server as a process: frames go in, answers come out, and it ends when it is told to."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from tanist.model.route import TopicRouteData
from tanist.model.topics import TopicConfig
from tanist.protocol import Command, FrameDecoder, HeaderEncoding, RequestCode, ResponseCode, encode_command
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.config_text import decode_config
from tanist.protocol.bodies.registration import RegisterBrokerBody, encode_registration
from tanist.protocol.bodies.sync import TopicConfigTable
from tanist.protocol.codes import OUR_VERSION
from tanist.protocol.headers.nameserver import (
    BrokerIdentityRequest,
    GetRouteRequest,
    KVConfigRequest,
    NotifyMinBrokerIdRequest,
    PutKVConfigRequest,
    RegisterBrokerRequest,
)
from tests.support.nameserver import NameServerProcess
from tests.support.wire import Wire

C = RequestCode
MASTER = RegisterBrokerRequest(
    broker_name="a", broker_addr="127.0.0.1:1", cluster_name="c", ha_server_addr="127.0.0.1:2", broker_id=0
)
BODY = encode_registration(
    RegisterBrokerBody(topic_configs=TopicConfigTable(topics={"T": TopicConfig(topic_name="T")})),
    is_compressed=False,
    version=OUR_VERSION,
)


@pytest.fixture
def name_server(tmp_path: Path) -> Iterator[NameServerProcess]:
    with NameServerProcess(tmp_path / "ns", scanNotActiveBrokerInterval=50) as server:
        yield server


def register(wire: Wire, header: RegisterBrokerRequest = MASTER) -> Command:
    return wire.ask(Command.request(C.REGISTER_BROKER, header, body=BODY))


def route(address: str, topic: str = "T") -> TopicRouteData | None:
    """The route as a client sees it that has just connected."""
    with Wire(address) as client:
        answer = client.ask(Command.request(C.GET_ROUTEINFO_BY_TOPIC, GetRouteRequest(topic=topic)))
    if answer.code == ResponseCode.TOPIC_NOT_EXIST:
        return None
    assert answer.code == ResponseCode.SUCCESS
    return decode_java_json(answer.body, TopicRouteData)


def wait_until(is_so: Callable[[], bool], *, timeout_s: float = 60) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


@pytest.mark.parametrize("encoding", list(HeaderEncoding))
def test_a_broker_registers_and_a_client_finds_it(
    name_server: NameServerProcess, encoding: HeaderEncoding
) -> None:
    with Wire(name_server.address) as broker:
        request = Command.request(C.REGISTER_BROKER, MASTER, body=BODY, encoding=encoding)
        answer = broker.ask(request)
        assert (answer.code, answer.encoding) == (ResponseCode.SUCCESS, encoding)

        found = route(name_server.address)
        assert found is not None
        assert found.broker_datas[0].broker_addrs == {0: MASTER.broker_addr}


def test_a_broker_whose_connection_ends_is_gone_at_once(name_server: NameServerProcess) -> None:
    with Wire(name_server.address) as broker:
        register(broker)
        assert route(name_server.address) is not None
    # Far below the lease of two minutes.
    wait_until(lambda: route(name_server.address) is None, timeout_s=5)


def test_a_broker_that_falls_silent_is_gone_and_its_connection_closed(name_server: NameServerProcess) -> None:
    with Wire(name_server.address) as broker:
        register(broker, msgspec.structs.replace(MASTER, heartbeat_timeout_ms=200))
        assert broker.receive() is None
        assert route(name_server.address) is None


def test_an_unregistered_broker_is_gone(name_server: NameServerProcess) -> None:
    with Wire(name_server.address) as broker:
        register(broker)
        identity = BrokerIdentityRequest(
            broker_name="a", broker_addr=MASTER.broker_addr, cluster_name="c", broker_id=0
        )
        assert broker.ask(Command.request(C.UNREGISTER_BROKER, identity)).code == ResponseCode.SUCCESS
        assert route(name_server.address) is None


def test_brokers_are_told_on_their_own_port_who_has_the_smallest_id(tmp_path: Path) -> None:
    settings = {"notifyMinBrokerIdChanged": "true", "supportActingMaster": "true"}
    with (
        NameServerProcess(tmp_path / "ns", **settings) as server,
        socket.create_server(("127.0.0.1", 0)) as slave_port,
        Wire(server.address) as slave,
    ):
        slave_port.settimeout(10)
        acting = msgspec.structs.replace(MASTER, enable_acting_master=True)
        slave_address = f"127.0.0.1:{slave_port.getsockname()[1]}"
        with Wire(server.address) as master:
            register(master, acting)
            register(slave, msgspec.structs.replace(acting, broker_id=1, broker_addr=slave_address))

        told = told_on(slave_port)

        found = route(server.address)
    assert (told.code, told.is_one_way) == (C.NOTIFY_MIN_BROKER_ID_CHANGE, True)
    assert told.header(NotifyMinBrokerIdRequest) == NotifyMinBrokerIdRequest(
        min_broker_id=1,
        broker_name="a",
        min_broker_addr=slave_address,
        offline_broker_addr=MASTER.broker_addr,
    )
    assert found is not None
    assert found.broker_datas[0].broker_addrs == {0: slave_address}
    assert found.queue_datas[0].perm == 4


def test_its_own_end_is_no_news_about_brokers(tmp_path: Path) -> None:
    with (
        NameServerProcess(tmp_path / "ns", notifyMinBrokerIdChanged="true") as server,
        socket.create_server(("127.0.0.1", 0)) as slave_port,
        Wire(server.address) as master,
        Wire(server.address) as slave,
    ):
        acting = msgspec.structs.replace(MASTER, enable_acting_master=True)
        register(master, acting)
        slave_address = f"127.0.0.1:{slave_port.getsockname()[1]}"
        register(slave, msgspec.structs.replace(acting, broker_id=1, broker_addr=slave_address))

        server.stop()

        slave_port.setblocking(False)
        with pytest.raises(BlockingIOError):
            slave_port.accept()


def told_on(listener: socket.socket) -> Command:
    """The first frame that somebody sends to this port."""
    peer, _ = listener.accept()
    decoder = FrameDecoder()
    with peer:
        peer.settimeout(10)
        while True:
            for command in decoder.feed(peer.recv(1 << 16)):
                return command


def test_values_survive_a_restart_and_a_kill(name_server: NameServerProcess) -> None:
    put = PutKVConfigRequest(namespace="N", key="k", value="v")
    with Wire(name_server.address) as operator:
        assert operator.ask(Command.request(C.PUT_KV_CONFIG, put)).code == ResponseCode.SUCCESS
    name_server.process.kill()
    name_server.restart()

    with Wire(name_server.address) as operator:
        answer = operator.ask(Command.request(C.GET_KV_CONFIG, KVConfigRequest(namespace="N", key="k")))
    assert answer.ext == {"value": "v"}


def test_unknown_codes_missing_fields_and_bad_bodies_are_answered(name_server: NameServerProcess) -> None:
    with Wire(name_server.address) as client:
        assert client.ask(Command.request(9999)).code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
        assert client.ask(Command.request(C.GET_ROUTEINFO_BY_TOPIC)).code == ResponseCode.SYSTEM_ERROR
        broken = client.ask(Command.request(C.REGISTER_BROKER, MASTER, body=b'{"topicConfig'))
        assert broken.code == ResponseCode.SYSTEM_ERROR
        bomb = client.ask(Command.request(C.REGISTER_BROKER, MASTER, body=b"\x78\x9c" + b"\0" * 50))
        assert bomb.code == ResponseCode.SYSTEM_ERROR
        assert register(client).code == ResponseCode.SUCCESS


def test_random_bytes_end_their_own_connection_and_no_other(name_server: NameServerProcess) -> None:
    with Wire(name_server.address) as broker, Wire(name_server.address) as stranger:
        register(broker)
        stranger.send(b"\x7f\xff\xff\xff" + b"GET / HTTP/1.1\r\n" * 10)
        assert stranger.receive() is None
        assert register(broker).code == ResponseCode.SUCCESS
    assert "Traceback" not in name_server.process.output()


def test_a_one_way_request_gets_no_answer(name_server: NameServerProcess) -> None:
    with Wire(name_server.address) as client:
        client.send(encode_command(Command.request(9999, is_one_way=True)))
        client.send(encode_command(Command.request(C.GET_ROUTEINFO_BY_TOPIC, is_one_way=True)))
        assert client.ask(Command.request(C.GET_BROKER_CLUSTER_INFO)).code == ResponseCode.SUCCESS


def test_it_stops_cleanly_with_brokers_connected(name_server: NameServerProcess) -> None:
    with Wire(name_server.address) as broker:
        register(broker)
        start_s = time.monotonic()
        name_server.stop()
        assert time.monotonic() - start_s < 5
        assert broker.receive() is None
    assert name_server.process.exit_code == 0
    assert "Traceback" not in name_server.process.output()


def tanist_namesrv(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from tanist.cli.main import main; main()", "namesrv", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_p_prints_every_key_and_the_default_where_it_differs(tmp_path: Path) -> None:
    config = tmp_path / "namesrv.conf"
    config.write_text("listenPort=9999\n")
    shown = tanist_namesrv("-c", str(config), "-p")
    assert shown.returncode == 0
    lines = shown.stdout.splitlines()
    assert lines[lines.index("listenPort=9999") - 1] == "# default: listenPort=9876"
    assert "bindAddress=127.0.0.1" in lines


def test_a_wrong_value_a_missing_file_and_a_taken_port_are_one_line_each(
    tmp_path: Path, name_server: NameServerProcess
) -> None:
    config = tmp_path / "wrong.conf"
    config.write_text("listenPort=many\n")
    taken = tmp_path / "taken.conf"
    port = name_server.address.rpartition(":")[2]
    taken.write_text(f"listenPort={port}\nkvConfigPath={tmp_path}/other.json\n")
    for arguments, expected in (
        (["-c", str(config)], "listenPort='many'"),
        (["-c", str(tmp_path / "none.conf")], "none.conf"),
        (["-c", str(taken)], f"listenPort={port}"),
    ):
        refused = tanist_namesrv(*arguments)
        assert refused.returncode == 1
        assert refused.stderr.count("\n") == 1
        assert expected in refused.stderr


def test_keys_without_effect_are_named_in_one_warning(tmp_path: Path) -> None:
    with NameServerProcess(tmp_path, clusterTest="true", productEnvName="x") as server:
        server.process.wait_for_output("keys=clusterTest,productEnvName", timeout_s=5)


def test_the_settings_name_the_port_that_the_system_chose(name_server: NameServerProcess) -> None:
    with Wire(name_server.address) as operator:
        shown = decode_config(operator.ask(Command.request(C.GET_NAMESRV_CONFIG)).body)
    assert shown["listenPort"] == name_server.address.rpartition(":")[2]


def test_ctrl_c_stops_it_too(name_server: NameServerProcess) -> None:
    os.kill(name_server.process.pid, signal.SIGINT)
    wait_until(lambda: not name_server.process.is_running)
    assert name_server.process.exit_code == 0
