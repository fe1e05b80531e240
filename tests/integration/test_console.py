"""``tanist console`` over a real socket, beside a real broker."""

import http.client
import json
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from click.testing import CliRunner

from tanist.cli.main import tanist
from tanist.errors import ConfigError
from tanist.testing import EmbeddedBroker
from tests.support.console_process import ConsoleProcess, basic
from tests.support.site import wait_until
from tests.support.tls import ENFORCING, certificate


@contextmanager
def asked(
    address: str, target: str, *, form: Mapping[str, str] | None = None, **headers: str
) -> Generator[http.client.HTTPResponse]:
    """What a console answers at ``target``."""
    with closing(http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)) as connection:
        body = None if form is None else urlencode(form)
        connection.request("GET" if form is None else "POST", target, body, headers)
        with connection.getresponse() as response:
            yield response


def is_ready(console: ConsoleProcess) -> bool:
    with asked(console.address, "/health/ready") as answer:
        return answer.status == 200


def test_a_console_shows_a_broker_tells_of_changes_and_stops_at_once(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    with (
        EmbeddedBroker(topics={"OrderTopic": 2}) as broker,
        ConsoleProcess(tmp_path, broker.namesrv, "--audit-log", str(audit)) as console,
    ):
        wait_until(lambda: is_ready(console))
        signed = basic(console.user, console.password)
        with asked(console.address, "/api/v1/topics/OrderTopic", Authorization=signed) as answer:
            topic = json.loads(answer.read())
        assert [(route["brokerName"], route["permission"]) for route in topic["routes"]] == [
            ("embedded", "RW")
        ]
        assert len(topic["queues"]) == 2

        form = {"name": console.user, "password": console.password}
        with asked(console.address, "/login", form=form) as answer:
            cookie = str(answer.getheader("Set-Cookie")).partition(";")[0]
        with asked(console.address, "/events", Cookie=cookie) as stream:
            assert stream.getheader("Content-Type", "").startswith("text/event-stream")
            assert stream.readline() == b"event: views\n"
            assert set(json.loads(stream.readline().removeprefix(b"data: "))) >= {"overview", "groups"}
            # A page that listens does not hold the end up.
            console.stop()
        assert console.process.exit_code == 0
    assert json.loads(audit.read_text().splitlines()[-1])["action"] == "log in"
    after_the_login = console.process.output().partition("made for this start")[2]
    assert console.password not in audit.read_text() + after_the_login


def test_a_console_asks_brokers_that_speak_tls_alone(tmp_path: Path) -> None:
    access = tmp_path / "access"
    access.write_text(f"tlsEnable=true\ntlsClientTrustCertPath={certificate('ca')}\n")
    with (
        EmbeddedBroker(settings=ENFORCING) as broker,
        ConsoleProcess(tmp_path, broker.namesrv, "--access-file", str(access)) as console,
    ):
        wait_until(lambda: is_ready(console))
        signed = basic(console.user, console.password)
        with asked(console.address, "/api/v1/brokers", Authorization=signed) as answer:
            brokers = json.loads(answer.read())["brokers"]
    assert [(each["address"], each["role"]) for each in brokers] == [(broker.address, "MASTER")]


def test_a_console_is_not_started_on_a_port_that_is_taken_or_makes_no_sense(tmp_path: Path) -> None:
    with EmbeddedBroker() as broker:
        for listen in (broker.address, "nowhere"):
            done = CliRunner().invoke(tanist, ["console", "-n", broker.namesrv, "-l", listen])
            assert isinstance(done.exception, ConfigError)
            assert "listen" in str(done.exception)


def test_users_are_added_to_a_file_that_nobody_else_may_read(tmp_path: Path) -> None:
    file = tmp_path / "users"

    def add(name: str, role: str, password: str) -> object:
        arguments = ["console", "adduser", name, "--role", role, "--users", str(file), "--password", password]
        done = CliRunner().invoke(tanist, arguments)
        return done.exception

    assert add("ann", "viewer", "a long password") is None
    assert add("vic", "viewer", "a long password") is None
    assert add("ann", "operator", "another password") is None
    assert isinstance(add("ann", "operator", "short"), ConfigError)
    lines = file.read_text().splitlines()
    assert [line.partition(":")[0] for line in lines] == ["vic=viewer", "ann=operator"]
    assert file.stat().st_mode & 0o077 == 0
    assert "password" not in file.read_text()


def test_a_console_wants_a_name_server() -> None:
    done = CliRunner().invoke(tanist, ["console"], env={"NAMESRV_ADDR": None})
    assert done.exit_code == 2
    assert "give -n" in done.output
