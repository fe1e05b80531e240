"""TLS on the remoting port: which peers get in, and what the others cost."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator

import pytest

from tanist.errors import ConnectFailed, RemotingError
from tanist.protocol import Command, encode_command
from tanist.protocol.frame import encode_head
from tanist.remoting import (
    ClientAuth,
    CloseCause,
    Connection,
    RemotingClient,
    RemotingServer,
    ServerLimits,
    TlsMode,
    TlsSettings,
)
from tanist.remoting.replies import Pieces
from tests.support.conditions import until
from tests.support.remoting import ECHO, Peer, Run, in_time, on_both_loops, peer_of, serving
from tests.support.tls import certificate, key

TRUSTING_CLIENT = TlsSettings(
    tls_enable=True, tls_client_auth_server=True, tls_client_trust_cert_path=certificate("ca")
)


def server_tls(mode: TlsMode = TlsMode.PERMISSIVE, auth: ClientAuth = ClientAuth.NONE) -> TlsSettings:
    return TlsSettings(
        tls_mode=mode,
        tls_server_cert_path=certificate("server"),
        tls_server_key_path=key("server"),
        tls_server_need_client_auth=auth,
        tls_server_trust_cert_path=certificate("ca"),
    )


def client_tls(name: str) -> TlsSettings:
    """A client that shows the certificate of ``name``."""
    return TlsSettings(tls_enable=True, tls_client_cert_path=certificate(name), tls_client_key_path=key(name))


def lax_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@contextlib.asynccontextmanager
async def asking(tls: TlsSettings | None = None) -> AsyncGenerator[RemotingClient]:
    client = RemotingClient(tls=tls)
    try:
        yield client
    finally:
        await in_time(client.close())


async def ask(client: RemotingClient, server: RemotingServer, body: bytes = b"x") -> bytes:
    command = Command.request(ECHO, body=body)
    answer = await in_time(client.request(f"127.0.0.1:{server.port}", command, timeout_s=5))
    return bytes(answer.body)


@on_both_loops
def test_a_permissive_server_takes_tls_and_plain_text_on_one_port(run: Run) -> None:
    async def scenario() -> None:
        async with serving(tls=server_tls()) as server, asking() as plain, asking(TRUSTING_CLIENT) as secure:
            assert await ask(plain, server) == b"x"
            assert await ask(secure, server) == b"x"
            assert server.connection_count == 2

    run(scenario())


@on_both_loops
def test_large_bodies_and_many_requests_pass_through_tls(run: Run) -> None:
    async def scenario() -> None:
        async with serving(tls=server_tls()) as server, asking(TRUSTING_CLIENT) as client:
            body = bytes(range(256)) * (12 << 10)
            assert await ask(client, server, body) == body
            bodies = [b"%d" % number * 1000 for number in range(200)]
            assert await asyncio.gather(*(ask(client, server, body) for body in bodies)) == bodies

    run(scenario())


@on_both_loops
def test_a_slow_reader_behind_tls_gets_everything_in_the_end(run: Run) -> None:
    async def scenario() -> None:
        async with serving(tls=server_tls()) as server, peer_of(server, tls=lax_context()) as peer:
            frame = encode_command(Command.request(ECHO, body=bytes(1 << 20)))
            for _ in range(20):
                peer.write(frame)
            for _ in range(20):
                assert len((await peer.receive()).body) == 1 << 20

    run(scenario())


@on_both_loops
def test_answers_in_pieces_pass_through_tls(run: Run) -> None:
    body = bytes(range(256)) * 4096

    def cut(request: Command, _connection: Connection) -> Pieces:
        return [encode_head(request.reply(), len(body)), memoryview(body)[:70_000], memoryview(body)[70_000:]]

    async def scenario() -> None:
        async with (
            serving({ECHO: cut}, tls=server_tls()) as server,
            peer_of(server, tls=lax_context()) as peer,
        ):
            peer.send(*(Command.request(ECHO, opaque=number) for number in range(5)))
            for number in range(5):
                answer = await peer.receive()
                assert (answer.opaque, answer.body) == (number, body)

    run(scenario())


@on_both_loops
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_of_tls_are_spoken(run: Run, version: ssl.TLSVersion) -> None:
    context = lax_context()
    context.minimum_version = context.maximum_version = version

    async def scenario() -> None:
        async with serving(tls=server_tls()) as server, peer_of(server, tls=context) as peer:
            peer.send(Command.request(ECHO, body=b"x"))
            assert (await peer.receive()).body == b"x"

    run(scenario())


@on_both_loops
def test_an_enforcing_server_refuses_plain_text_with_a_line(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with serving(tls=server_tls(TlsMode.ENFORCING)) as server, asking(TRUSTING_CLIENT) as secure:
            assert await ask(secure, server) == b"x"
            async with peer_of(server) as plain:
                plain.send(Command.request(ECHO))
                assert await plain.is_closed()
                assert f"peer={plain.address} cause=BAD_TLS reason=plain text" in caplog.text
            assert await ask(secure, server) == b"x"

    run(scenario())


@on_both_loops
@pytest.mark.parametrize(
    "tls", [server_tls(TlsMode.DISABLED), TlsSettings()], ids=["disabled", "without a certificate"]
)
def test_a_server_without_tls_closes_on_a_hello(run: Run, tls: TlsSettings) -> None:
    async def scenario() -> None:
        async with serving(tls=tls) as server, asking() as plain, asking(TRUSTING_CLIENT) as secure:
            with pytest.raises(ConnectFailed):
                await ask(secure, server)
            assert await ask(plain, server) == b"x"

    run(scenario())


@on_both_loops
def test_a_client_that_checks_does_not_talk_to_a_server_of_a_stranger(run: Run) -> None:
    stranger = TlsSettings(tls_server_cert_path=certificate("stranger"), tls_server_key_path=key("stranger"))

    async def scenario() -> None:
        async with serving(tls=stranger) as server, asking(TRUSTING_CLIENT) as strict:
            with pytest.raises(ConnectFailed, match=r"(?i)certificate.verify.failed"):
                await ask(strict, server)
            async with asking(TlsSettings(tls_enable=True)) as lax:
                assert await ask(lax, server) == b"x"

    run(scenario())


@on_both_loops
@pytest.mark.parametrize(
    ("auth", "welcome"),
    [
        (ClientAuth.NONE, {"client", "stranger", "nobody"}),
        (ClientAuth.OPTIONAL, {"client", "nobody"}),
        (ClientAuth.REQUIRE, {"client"}),
    ],
)
def test_client_certificates_are_asked_for_and_checked_as_set(
    run: Run, auth: ClientAuth, welcome: set[str]
) -> None:
    async def scenario() -> None:
        async with serving(tls=server_tls(TlsMode.ENFORCING, auth)) as server:
            for name in ("client", "stranger", "nobody"):
                tls = TlsSettings(tls_enable=True) if name == "nobody" else client_tls(name)
                async with asking(tls) as client:
                    if name in welcome:
                        assert await ask(client, server) == b"x"
                    else:
                        # With TLS 1.3 the refusal comes after the client thinks it is connected.
                        with pytest.raises(RemotingError):
                            await ask(client, server)
            assert server.closed_connections[CloseCause.BAD_TLS] == 3 - len(welcome)

    run(scenario())


@on_both_loops
def test_garbage_that_begins_like_tls_is_closed_with_a_line(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with serving(tls=server_tls()) as server, peer_of(server) as stranger:
            stranger.write(b"\x16" + b"garbage" * 100)
            await stranger.is_closed()
            await until(lambda: server.closed_connections[CloseCause.BAD_TLS] == 1)
            assert f"peer={stranger.address} cause=BAD_TLS" in caplog.text

    run(scenario())


@on_both_loops
def test_a_bad_frame_inside_tls_is_a_bad_frame(run: Run) -> None:
    async def scenario() -> None:
        async with serving(tls=server_tls()) as server, peer_of(server, tls=lax_context()) as stranger:
            stranger.write(bytes.fromhex("ffffffff00000000"))
            assert await stranger.is_closed()
            await until(lambda: server.closed_connections[CloseCause.BAD_FRAME] == 1)

    run(scenario())


@on_both_loops
def test_a_handshake_that_is_never_finished_is_given_up(run: Run) -> None:
    async def scenario() -> None:
        limits = ServerLimits(server_frame_timeout_millis=100)
        async with serving(tls=server_tls(), limits=limits) as server, peer_of(server) as stranger:
            stranger.write(bytes.fromhex("1603010200010001fc0303"))
            assert await stranger.is_closed()
            assert server.closed_connections == {CloseCause.BAD_TLS: 1}

    run(scenario())


@on_both_loops
def test_a_stop_says_farewell_to_tls_peers(run: Run) -> None:
    async def scenario() -> None:
        server = RemotingServer({}, tls=server_tls())
        await server.start("127.0.0.1", 0)
        peer = await Peer.connect(server.port, tls=lax_context())
        peer.send(Command.request(ECHO))
        assert (await peer.receive()).code == 3
        await in_time(server.close(grace_s=5))
        assert await peer.is_closed()
        await peer.close()

    run(scenario())
