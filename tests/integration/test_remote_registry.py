"""The registry of a controller over its port: cut cables, restarts, silence, and peers not to be believed."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tanist.controller import remote_sessions
from tanist.coord import Create, Record, RegistryUnavailable, SessionState, open_registry
from tanist.coord.remote_messages import encode_changes
from tanist.coord.remote_registry import RemoteRegistry
from tanist.coord.sqlite_registry import SqliteHome
from tanist.errors import ConfigError
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.headers.base import Header
from tanist.protocol.headers.coord import (
    MAX_PATH_CHARS,
    OpenSessionRequest,
    OpenSessionResponse,
    PathRequest,
    SessionRequest,
    WatchRequest,
)
from tanist.remoting import RemotingClient
from tests.support.controller_site import Sessions
from tests.support.played_replicas import controlling
from tests.support.registries import PATIENCE_S, Calls, States
from tests.support.relay import Relay

_TIMEOUT_S = 3.0
"""Long enough for a busy machine, where nothing has to end by it."""


def _run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 60))


class Peer:
    """Somebody at the controller's port who says whatever a test wants."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._client = RemotingClient()

    async def ask(self, code: RequestCode, header: Header, body: bytes = b"") -> Command:
        request = Command.request(code, header, body=body)
        return await self._client.request(self.address, request, timeout_s=PATIENCE_S)

    async def open(self, timeout_ms: int = 30_000) -> str:
        answer = await self.ask(RequestCode.REGISTRY_OPEN_SESSION, OpenSessionRequest(timeout_ms=timeout_ms))
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        return answer.header(OpenSessionResponse).session

    async def keep(self, session: str) -> int:
        return (await self.ask(RequestCode.REGISTRY_KEEP_SESSION, SessionRequest(session=session))).code

    async def create(self, session: str, path: str) -> int:
        body = encode_changes([Create(path, b"")])
        return (await self.ask(RequestCode.REGISTRY_COMMIT, SessionRequest(session=session), body)).code

    async def close(self) -> None:
        await self._client.close()


@asynccontextmanager
async def peers(address: str, count: int) -> AsyncGenerator[list[Peer]]:
    made = [Peer(address) for _ in range(count)]
    try:
        yield made
    finally:
        for peer in made:
            await peer.close()


def test_a_cut_connection_suspends_the_session_and_what_is_ephemeral_stays(tmp_path: Path) -> None:
    async def story() -> None:
        async with controlling(tmp_path) as controller:
            with Relay(controller.address) as cable:
                async with (
                    RemoteRegistry(cable.address, timeout_s=30) as ours,
                    RemoteRegistry(controller.address, timeout_s=30) as theirs,
                ):
                    states, calls = States(ours), Calls()
                    await ours.commit(Create("/here", b"me", is_ephemeral=True))
                    ours.watch("/record", calls)
                    await calls.more()
                    promised_s = ours.held_until_s
                    cable.cut()
                    await states.until(SessionState.SUSPENDED)
                    assert ours.held_until_s == promised_s
                    for look in (ours.read, ours.children):
                        with pytest.raises(RegistryUnavailable, match="nothing was asked"):
                            await look("/here")
                    await theirs.commit(Create("/record", b"made meanwhile"))
                    cable.mend()
                    await states.until(SessionState.CONNECTED)
                    await calls.more()
                    assert await ours.read("/record") == Record(b"made meanwhile", 0)
                    assert await theirs.read("/here") == Record(b"me", 0)
                    assert ours.held_until_s > promised_s

    _run(story())


def test_after_a_connection_came_back_every_watch_is_renewed_and_called_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with controlling(tmp_path) as controller:
            with Relay(controller.address) as cable:
                async with (
                    RemoteRegistry(cable.address, timeout_s=30) as ours,
                    RemoteRegistry(controller.address, timeout_s=30) as theirs,
                ):
                    states = States(ours)
                    kept, also_kept, closed, begun_while_cut = (Calls() for _ in range(4))
                    ours.watch("/a", kept)
                    ours.watch("/b", also_kept)
                    closing = ours.watch("/c", closed)
                    for calls in (kept, also_kept, closed):
                        await calls.more()
                    cable.cut()
                    await states.until(SessionState.SUSPENDED)
                    closing.close()
                    ours.watch("/d", begun_while_cut)
                    cable.mend()
                    for calls in (kept, also_kept, begun_while_cut):
                        await calls.more()
                    assert [kept.count, also_kept.count, begun_while_cut.count, closed.count] == [2, 2, 1, 1]
                    await theirs.commit(*(Create(f"/{name}", b"") for name in "abcd"))
                    for calls in (kept, also_kept, begun_while_cut):
                        await calls.more()
                    assert closed.count == 1

    _run(story())


@pytest.mark.parametrize("code", [RequestCode.REGISTRY_KEEP_SESSION, RequestCode.REGISTRY_WATCH])
def test_an_answer_on_a_connection_that_is_gone_by_the_time_it_is_looked_at_counts_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: RequestCode
) -> None:
    async def story() -> None:
        async with (
            controlling(tmp_path) as controller,
            RemoteRegistry(controller.address, timeout_s=_TIMEOUT_S) as ours,
            RemoteRegistry(controller.address, timeout_s=30) as theirs,
        ):
            states, calls, real_ask = States(ours), Calls(), ours._wire.ask
            spoiled: list[RequestCode] = []

            async def ask(asked: RequestCode, header: Header, body: bytes = b"", **options: Any) -> Command:
                answer = await real_ask(asked, header, body, **options)
                if asked == code and not spoiled:
                    spoiled.append(asked)
                    ours._client.give_up(controller.address, "a test spoils it")
                    await states.until(SessionState.SUSPENDED)
                return answer

            monkeypatch.setattr(ours._wire, "ask", ask)
            ours.watch("/record", calls)
            await states.until(SessionState.CONNECTED)
            await calls.more()
            await ours.children("/")
            seen = calls.count
            await theirs.commit(Create("/record", b""))
            async with asyncio.timeout(PATIENCE_S):
                while calls.count == seen:
                    await calls.more()

    _run(story())


def test_a_controller_that_stands_still_promises_nothing_more_and_is_believed_again_later(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with controlling(tmp_path) as controller:
            with Relay(controller.address) as cable:
                async with RemoteRegistry(cable.address, timeout_s=2.4) as registry:
                    states = States(registry)
                    cable.hold()
                    held_at_s = time.monotonic()
                    await states.until(SessionState.SUSPENDED)
                    # What was asked before it stood still is the last that can have been answered.
                    assert registry.held_until_s < held_at_s + 2.4
                    cable.mend()
                    await states.until(SessionState.CONNECTED)
                    assert registry.held_until_s > held_at_s

    _run(story())


def test_a_commit_whose_answer_is_lost_may_be_done_and_is_told_so(tmp_path: Path) -> None:
    async def story() -> None:
        async with controlling(tmp_path) as controller:
            with Relay(controller.address) as cable:
                async with RemoteRegistry(cable.address, timeout_s=30) as registry:
                    cable.hold()
                    commit = asyncio.ensure_future(registry.commit(Create("/record", b"")))
                    await asyncio.sleep(0)
                    cable.cut()
                    with pytest.raises(RegistryUnavailable, match="may be done"):
                        await commit
                    cable.mend()

    _run(story())


def test_a_controller_that_was_started_anew_knows_its_sessions_and_their_records(tmp_path: Path) -> None:
    async def story() -> None:
        with Relay("127.0.0.1:1") as cable:
            async with controlling(tmp_path) as controller:
                cable.lead_to(controller.address)
                registry = await RemoteRegistry(cable.address, timeout_s=30).__aenter__()
                states, calls = States(registry), Calls()
                registry.watch("/record", calls)
                await calls.more()
                await registry.commit(Create("/here", b"me", is_ephemeral=True))
            await states.until(SessionState.SUSPENDED)
            async with controlling(tmp_path) as controller:
                cable.lead_to(controller.address)
                await states.until(SessionState.CONNECTED)
                await calls.more()
                async with RemoteRegistry(controller.address, timeout_s=30) as other:
                    assert await other.read("/here") == Record(b"me", 0)
                    await registry.close()
                    assert await other.read("/here") is None

    _run(story())


def test_a_session_that_came_back_too_late_is_lost_for_good(tmp_path: Path) -> None:
    async def story() -> None:
        async with controlling(tmp_path) as controller:
            with Relay(controller.address) as cable:
                async with (
                    RemoteRegistry(cable.address, timeout_s=1) as ours,
                    RemoteRegistry(controller.address, timeout_s=30) as theirs,
                ):
                    states, calls, gone = States(ours), Calls(), Calls()
                    ours.watch("/record", calls)
                    await calls.more()
                    await ours.commit(Create("/here", b"", is_ephemeral=True))
                    theirs.watch("/here", gone)
                    await gone.more()
                    cable.cut()
                    await gone.more()
                    assert await theirs.read("/here") is None
                    assert ours.held_until_s < time.monotonic(), "ours was over before"
                    cable.mend()
                    await states.until(SessionState.LOST)
                    with pytest.raises(RegistryUnavailable, match="is over; open another"):
                        await ours.commit(Create("/record", b""))
                    await theirs.commit(Create("/record", b""))
                    assert (calls.count, states.told) == (1, [])

    _run(story())


def test_a_session_that_nobody_opened_is_refused_whatever_is_asked_in_its_name(tmp_path: Path) -> None:
    tokens: list[str] = []

    async def story() -> None:
        async with controlling(tmp_path) as controller, peers(controller.address, 2) as (owner, thief):
            token = await owner.open()
            for guess in ("1", "0" * len(token), token[:-1], token.upper() + "x"):
                for code, header in (
                    (RequestCode.REGISTRY_KEEP_SESSION, SessionRequest(session=guess)),
                    (RequestCode.REGISTRY_CLOSE_SESSION, SessionRequest(session=guess)),
                    (RequestCode.REGISTRY_READ, PathRequest(session=guess, path="/")),
                    (RequestCode.REGISTRY_CHILDREN, PathRequest(session=guess, path="/")),
                    (RequestCode.REGISTRY_WATCH, WatchRequest(session=guess, path="/", is_wanted=True)),
                ):
                    assert (await thief.ask(code, header)).code == ResponseCode.REGISTRY_SESSION_OVER
                assert await thief.create(guess, "/record") == ResponseCode.REGISTRY_SESSION_OVER
            assert await owner.keep(token) == ResponseCode.SUCCESS
            assert await owner.open() != token
            tokens.append(token)

    _run(story())
    (token,), files = tokens, list(tmp_path.glob("registry.db*"))
    assert files
    assert not any(token.encode() in file.read_bytes() for file in files), "only its hash is kept"


def test_what_was_asked_on_a_connection_that_the_session_has_left_is_not_done(tmp_path: Path) -> None:
    async def story() -> None:
        async with controlling(tmp_path) as controller, peers(controller.address, 2) as (before, now):
            token = await before.open()
            assert await before.create(token, "/first") == ResponseCode.SUCCESS
            assert await now.create(token, "/second") == ResponseCode.CONTROLLER_INVALID_REQUEST
            assert await now.keep(token) == ResponseCode.SUCCESS
            assert await before.create(token, "/late") == ResponseCode.CONTROLLER_INVALID_REQUEST
            assert await now.create(token, "/third") == ResponseCode.SUCCESS
            async with RemoteRegistry(controller.address, timeout_s=30) as registry:
                assert await registry.children("/") == ["first", "third"]

    _run(story())


def test_no_session_reaches_what_the_controller_keeps_for_itself(tmp_path: Path) -> None:
    async def story() -> None:
        async with controlling(tmp_path) as controller:
            async with RemoteRegistry(controller.address, timeout_s=30) as registry:
                assert await registry.children("/") == []
                await registry.commit(Create("/leader", b"not you"), Create("/term", b""))
            assert controller._leading.is_leading
        async with SqliteHome(tmp_path / "registry.db") as home, home.session(4) as inside:
            assert await inside.children("/") == ["controllers", "fixed", "term"]
            assert await inside.children("/fixed") == ["leader", "term"]

    _run(story())


def test_sessions_and_watches_have_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_sessions, "MAX_SESSIONS", 2)
    monkeypatch.setattr(remote_sessions, "MAX_WATCHES", 3)

    async def story() -> None:
        async with controlling(tmp_path) as controller, peers(controller.address, 1) as (peer,):
            tokens = [await peer.open() for _ in range(2)]
            opening = OpenSessionRequest(timeout_ms=30_000)
            answer = await peer.ask(RequestCode.REGISTRY_OPEN_SESSION, opening)
            assert answer.code == ResponseCode.SYSTEM_BUSY
            await peer.ask(RequestCode.REGISTRY_CLOSE_SESSION, SessionRequest(session=tokens[0]))
            tokens[0] = await peer.open()

            async def watch(path: str, *, is_wanted: bool = True) -> int:
                header = WatchRequest(session=tokens[0], path=path, is_wanted=is_wanted)
                return (await peer.ask(RequestCode.REGISTRY_WATCH, header)).code

            assert [await watch(f"/{number}") for number in range(3)] == [ResponseCode.SUCCESS] * 3
            assert await watch("/3") == ResponseCode.SYSTEM_BUSY
            assert await watch("/0") == ResponseCode.SUCCESS, "it is watched already"
            assert await watch("/0", is_wanted=False) == ResponseCode.SUCCESS
            assert await watch("/3") == ResponseCode.SUCCESS

    _run(story())


@pytest.mark.parametrize("timeout_ms", [-1, 0, 499, 60_001, 1 << 31])
def test_a_timeout_out_of_bounds_is_refused(tmp_path: Path, timeout_ms: int) -> None:
    async def story() -> None:
        async with controlling(tmp_path) as controller, peers(controller.address, 1) as (peer,):
            header = OpenSessionRequest(timeout_ms=timeout_ms)
            answer = await peer.ask(RequestCode.REGISTRY_OPEN_SESSION, header)
            assert answer.code in {ResponseCode.INVALID_PARAMETER, ResponseCode.SYSTEM_ERROR}
            assert "timeout" in (answer.remark or "")

    _run(story())


@pytest.mark.parametrize("path", ["record", "/../leader", "/a//b", "/" + "x" * MAX_PATH_CHARS])
def test_a_path_that_can_not_be_one_is_refused_and_the_connection_lives_on(tmp_path: Path, path: str) -> None:
    async def story() -> None:
        async with controlling(tmp_path) as controller, peers(controller.address, 1) as (peer,):
            token = await peer.open()
            for code, header in (
                (RequestCode.REGISTRY_READ, PathRequest(session=token, path=path)),
                (RequestCode.REGISTRY_CHILDREN, PathRequest(session=token, path=path)),
                (RequestCode.REGISTRY_WATCH, WatchRequest(session=token, path=path, is_wanted=True)),
            ):
                answer = await peer.ask(code, header)
                assert answer.code in {ResponseCode.INVALID_PARAMETER, ResponseCode.SYSTEM_ERROR}
                assert "path=" in (answer.remark or "")
            assert await peer.create(token, "/fine") == ResponseCode.SUCCESS

    _run(story())


def test_a_controller_with_its_records_in_zookeeper_says_where_to_go(tmp_path: Path) -> None:
    url = "zk://zk1:2181,zk2:2181/tanist"

    async def story() -> None:
        async with (
            SqliteHome(tmp_path / "shared.db") as home,
            controlling(tmp_path, open_session=Sessions(home).open, coordinator=url) as controller,
        ):
            with pytest.raises(ConfigError, match=f"use coordinator={url}"):
                await open_registry(f"tanist://{controller.address}").__aenter__()

    _run(story())


def test_a_session_is_open_for_a_block_and_nobody_at_the_address_is_told(tmp_path: Path) -> None:
    async def story() -> None:
        async with controlling(tmp_path) as controller:
            url = f"tanist://{controller.address}"
            async with open_registry(url) as registry:
                await registry.commit(Create("/kept", b"x"), Create("/here", b"", is_ephemeral=True))
            async with open_registry(url) as registry:
                assert await registry.children("/") == ["kept"]
        with pytest.raises(RegistryUnavailable, match=r"cannot connect to .* nothing was asked"):
            await open_registry(url).__aenter__()

    _run(story())


def test_closing_does_not_wait_for_a_controller_that_is_gone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with controlling(tmp_path) as controller:
            registry = await RemoteRegistry(controller.address, timeout_s=_TIMEOUT_S).__aenter__()
            states = States(registry)
        await states.until(SessionState.SUSPENDED)
        await registry.close()
        assert registry.session is SessionState.LOST

    with caplog.at_level(logging.WARNING):
        _run(story())
    assert "registry session left to its timeout" in caplog.text
