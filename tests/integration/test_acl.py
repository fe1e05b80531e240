"""Access control of a broker as a process, request by request."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tanist.protocol import Command, HeaderEncoding, RequestCode, ResponseCode, encode_command
from tanist.protocol.codes import FLAG_ONE_WAY
from tanist.protocol.headers.common import QueueOffsetResponse
from tanist.protocol.headers.send import SendMessageResponse
from tanist.protocol.message_id import decode_offset_id
from tests.support.acl import PLAIN_ACL, SECRET, signed
from tests.support.rocketmq.cluster import free_broker_port
from tests.support.tanist_cluster import BrokerProcess, NameServerProcess
from tests.support.wire import Wire

C = RequestCode
R = ResponseCode
SEND = {"a": "P", "b": "Both", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1", "h": "0"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    home = tmp_path_factory.mktemp("acl")
    rules = home / "rules.yml"
    rules.write_text(PLAIN_ACL)
    with (
        NameServerProcess(home / "ns") as names,
        BrokerProcess(home / "broker", names.address, aclEnable="true", aclConfigPath=rules) as started,
    ):
        yield started
        assert "Traceback" not in started.process.output()
        assert SECRET not in started.process.output()


def message_count(wire: Wire) -> int:
    answer = wire.ask(signed(C.GET_MAX_OFFSET, {"topic": "Both", "queueId": "0"}))
    return answer.header(QueueOffsetResponse).queue_offset


@pytest.mark.parametrize("distance", [0, 2])
@pytest.mark.parametrize("encoding", list(HeaderEncoding))
def test_both_ports_and_both_kinds_of_header_are_guarded(
    broker: BrokerProcess, distance: int, encoding: HeaderEncoding
) -> None:
    host, _, port = broker.address.rpartition(":")
    with Wire(f"{host}:{int(port) - distance}") as wire:
        right = signed(C.SEND_MESSAGE_V2, SEND, body="Größe".encode())
        wrong = signed(C.SEND_MESSAGE_V2, SEND, body=b"x", secret="not-the-secret")
        none = Command.request(C.SEND_MESSAGE_V2, ext=dict(SEND), body=b"x")
        for request, code in ((right, R.SUCCESS), (wrong, R.NO_PERMISSION), (none, R.NO_PERMISSION)):
            request.encoding = encoding
            before = message_count(wire)
            answer = wire.ask(request)
            assert (answer.code, answer.encoding) == (code, encoding), answer.remark
            assert message_count(wire) == before + (code is R.SUCCESS)


def test_a_one_way_send_with_a_wrong_signature_is_dropped_without_an_answer(broker: BrokerProcess) -> None:
    with Wire(broker.address) as wire:
        before = message_count(wire)
        wrong = signed(C.SEND_MESSAGE_V2, SEND, body=b"x", secret="not-the-secret")
        wrong.flag |= FLAG_ONE_WAY
        wire.send(encode_command(wrong))
        # The next frame that comes back answers this one.
        assert message_count(wire) == before


def test_a_message_is_read_by_its_place_by_who_may_read_its_topic(broker: BrokerProcess) -> None:
    with Wire(broker.address) as wire:
        for topic, code in (("Both", R.SUCCESS), ("Written", R.NO_PERMISSION)):
            sent = wire.ask(signed(C.SEND_MESSAGE_V2, {**SEND, "b": topic}, body=b"only for readers"))
            log_offset = decode_offset_id(sent.header(SendMessageResponse).msg_id).log_offset
            answer = wire.ask(signed(C.VIEW_MESSAGE_BY_ID, {"offset": str(log_offset)}))
            assert answer.code == code, answer.remark
            assert (b"only for readers" in bytes(answer.body)) == (code is R.SUCCESS)


def test_a_body_that_is_no_heartbeat_is_answered_and_disturbs_nobody(broker: BrokerProcess) -> None:
    with Wire(broker.address) as wire:
        assert wire.ask(signed(C.HEART_BEAT, body=b"{")).code == R.SYSTEM_ERROR
        assert wire.ask(signed(C.SEND_MESSAGE_V2, SEND, body=b"x")).code == R.SUCCESS


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        (None, "there is no account and no address"),
        ("accounts: [", "line 1 is no YAML"),
        (f"accounts: [{{accessKey: app, secretKey: {SECRET}}}]", "account 'app'"),
    ],
)
def test_a_broker_without_sound_rules_does_not_start_and_says_why_in_one_line(
    tmp_path: Path, rules: str | None, reason: str
) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    if rules is not None:
        (conf / "plain_acl.yml").write_text(rules)
    config = tmp_path / "broker.conf"
    config.write_text(
        f"aclEnable=true\nstorePathRootDir={tmp_path / 'store'}\nlistenPort={free_broker_port()}\n"
    )
    command = [sys.executable, "-c", "from tanist.cli.main import main; main()", "broker", "-c", str(config)]
    refused = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "ROCKETMQ_HOME": str(tmp_path)},
    )
    assert refused.returncode == 1
    (line,) = refused.stderr.splitlines()
    assert f"{conf / 'plain_acl.yml'}: " in line
    assert reason in line
    assert SECRET not in line
    assert not (tmp_path / "store").exists()
