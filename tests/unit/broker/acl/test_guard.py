"""The guard before the handlers: what it lets through, what it says, and when it learns new rules."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from tanist.broker.acl import AccessGuard, AclFiles, Needs
from tanist.broker.settings import BrokerSettings
from tanist.errors import ConfigError, ResponseError
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.signature import ACCESS_KEY
from tanist.remoting import Connection
from tests.support.acl import KEY, PLAIN_ACL, SECRET, signed
from tests.support.clocks import FakeClock
from tests.support.conditions import until
from tests.support.fake_connection import FakeConnection

SEND = RequestCode.SEND_MESSAGE


class Desk:
    """A guard over one file and one handler, which takes whatever reaches it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "rules.yml"
        self.file.write_text(PLAIN_ACL)
        self.clock = FakeClock()
        settings = BrokerSettings(acl_config_path=str(self.file))
        self.guard = AccessGuard(AclFiles(settings), self.clock)
        self.served: list[Command] = []
        self.routes = self.guard.guard({SEND: self.serve}, Needs(settings, lambda _offset: None))

    def serve(self, command: Command, _connection: Connection) -> Command:
        self.served.append(command)
        return command.reply()

    def send(self, command: Command, peer: str = "10.0.0.1:5") -> None:
        self.routes[SEND](command, FakeConnection(peer))

    def is_refused(self, command: Command, peer: str = "10.0.0.1:5") -> bool:
        try:
            self.send(command, peer)
        except ResponseError as refusal:
            return refusal.code == ResponseCode.NO_PERMISSION
        return False


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def send_to(topic: str, *, secret: str = SECRET) -> Command:
    return signed(SEND, {"topic": topic}, secret=secret)


def test_what_is_allowed_reaches_the_handler_and_nothing_else_does(desk: Desk) -> None:
    allowed = send_to("Both")
    desk.send(allowed)
    for refused in (send_to("Denied"), send_to("Both", secret="wrong-one"), Command.request(SEND)):
        assert desk.is_refused(refused)
    assert desk.served == [allowed]


def test_a_key_that_has_not_signed_an_order_to_reset_is_not_taken_for_who_gave_it(desk: Desk) -> None:
    code, ext = RequestCode.APPLY_RESET, {"topic": "Both", "group": "G"}
    serve = desk.guard.guard({code: desk.serve}, Needs(BrokerSettings(), lambda _offset: None))[code]
    trusted = FakeConnection("10.10.103.7:5")
    serve(Command.request(code, ext={**ext, ACCESS_KEY: KEY}), trusted)
    serve(signed(code, ext), trusted)
    assert [command.ext.get(ACCESS_KEY) for command in desk.served] == [None, KEY]


@pytest.mark.parametrize(
    ("make", "remark"),
    [
        (lambda: send_to("Denied"), f"access denied, accessKey={KEY}: it lacks PUB on topic Denied"),
        (lambda: send_to("Both", secret="wrong-one"), f"access denied, accessKey={KEY}: wrong signature"),
        (lambda: Command.request(SEND), "access denied, accessKey=-: no access key"),
    ],
)
def test_a_refusal_says_who_may_not_and_why(desk: Desk, make: Callable[[], Command], remark: str) -> None:
    with pytest.raises(ResponseError) as refused:
        desk.send(make())
    assert refused.value.remark == remark


def test_a_refusal_is_one_line_with_key_peer_and_reason_and_no_secret(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    request = send_to("Both", secret="wrong-secret")
    for _ in range(5):
        assert desk.is_refused(request)
    (line,) = caplog.messages
    assert line.startswith(f"request refused access_key={KEY} peer=10.0.0.1:5 code=10 reason=wrong signature")
    for hidden in (SECRET, "wrong-secret", request.ext["Signature"]):
        assert hidden not in line


def test_another_machine_key_or_reason_is_another_line(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        desk.is_refused(send_to("Denied"))
        desk.is_refused(send_to("Denied"), "10.0.0.2:5")
        desk.is_refused(send_to("Read"))
        desk.is_refused(Command.request(SEND, ext={"AccessKey": "a" * 10_000}))
        desk.is_refused(send_to("t" * 10_000))
    assert len(caplog.messages) == 5
    assert max(map(len, caplog.messages)) < 600


def test_strangers_can_not_fill_the_log(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(3_000):
        assert desk.is_refused(Command.request(SEND, ext={"AccessKey": f"guess-{number}"}))
    assert len(caplog.messages) == 20
    desk.clock.advance_ms(10_000)
    assert desk.is_refused(Command.request(SEND, ext={"AccessKey": "last-guess"}))
    assert caplog.messages[-1].endswith("unwritten_lines=2980")


def test_new_rules_count_from_the_next_request_on(desk: Desk) -> None:
    assert desk.is_refused(send_to("Denied"))
    desk.file.write_text(PLAIN_ACL.replace("Denied=DENY", "Denied=PUB").replace("Both=PUB|SUB", "Both=DENY"))
    asyncio.run(desk.guard.look())
    assert not desk.is_refused(send_to("Denied"))
    assert desk.is_refused(send_to("Both"))


def test_a_broken_file_leaves_the_rules_and_is_told_once(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    for text in ("accounts: [", "accounts: [", ""):
        desk.file.write_text(text)
        for _ in range(3):
            asyncio.run(desk.guard.look())
    desk.file.unlink()
    for _ in range(3):
        asyncio.run(desk.guard.look())
    assert not desk.is_refused(send_to("Both"))
    lines = [line for line in caplog.messages if line.startswith("access rules stay as they were")]
    assert len(lines) == 2
    assert "rules.yml: line 1 is no YAML" in lines[0]
    assert "there is no account" in lines[1]

    caplog.set_level(logging.INFO)
    desk.file.write_text(PLAIN_ACL.replace("Both=PUB|SUB", "Both=DENY"))
    asyncio.run(desk.guard.look())
    assert desk.is_refused(send_to("Both"))
    assert "access rules read files=1 accounts=2" in caplog.messages


def test_a_guard_without_rules_does_not_start(tmp_path: Path) -> None:
    settings = BrokerSettings(acl_config_path=str(tmp_path / "none.yml"))
    with pytest.raises(ConfigError, match=r"none\.yml: there is no account"):
        AccessGuard(AclFiles(settings), FakeClock())


def test_the_watch_sees_a_change_by_itself(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tanist.broker.acl.guard._LOOK_S", 0.01)

    async def scenario() -> None:
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(desk.guard.watch())
            desk.file.write_text(PLAIN_ACL.replace("Denied=DENY", "Denied=PUB"))
            await until(lambda: not desk.is_refused(send_to("Denied")))
            watching.cancel()

    asyncio.run(scenario())
