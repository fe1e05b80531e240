"""The registry in ZooKeeper while servers die, stand still and come back, and cables are cut."""

import asyncio
import contextlib
import time
from collections.abc import Iterator

import pytest

from tanist.coord import Create, Put, Record, Registry, RegistryUnavailable, SessionState
from tests.support import partners
from tests.support.registries import Calls, States, ZooKeeperSite, until
from tests.support.relay import Relay
from tests.support.zookeeper import Ensemble

pytestmark = pytest.mark.partner("java", "maven")

# For tests that wait for the end of a session, or for several confirmations of it.
_SHORT_S = 1.5
# For tests that wait until a silent server is given up, which takes a third of it.
_MEDIUM_S = 4.0
_HELD_PART = 0.6
_POLL_S = 0.02


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    """Three servers. Every test leaves them running."""
    try:
        ensemble = Ensemble(tmp_path_factory.mktemp("ensemble"), size=3)
    except partners.PartnerMissing as lack:
        partners.do_without(lack)
    with ensemble:
        yield ensemble


async def _is_gone(registry: Registry, path: str) -> bool:
    return await registry.read(path) is None


async def _commit_again(registry: Registry, path: str) -> None:
    """Commit when the registry can be reached again."""

    async def is_made() -> bool:
        try:
            if await registry.read(path) is None:
                await registry.commit(Create(path, b""))
        except RegistryUnavailable:
            await asyncio.sleep(_POLL_S)
            return False
        return True

    await until(is_made)


@pytest.mark.parametrize("is_silent", [False, True], ids=["dropped", "silent"])
def test_a_session_cut_off_is_no_longer_held_before_its_end_shows_and_is_lost_once_it_is_told(
    zookeeper: Ensemble, is_silent: bool
) -> None:
    async def run() -> None:
        site = ZooKeeperSite(zookeeper.hosts)
        with Relay(zookeeper.hosts) as cable:
            async with site.session(cable.address, _SHORT_S) as ours, site.session() as theirs:
                states = States(ours)
                await ours.commit(Create("/here", b"", is_ephemeral=True))
                (cable.hold if is_silent else cable.cut)()
                await until(lambda: _is_gone(theirs, "/here"))
                assert ours.held_until_s < time.monotonic()
                # Nobody could tell it.
                assert ours.session is SessionState.SUSPENDED
                assert SessionState.LOST not in states.told
                with pytest.raises(
                    RegistryUnavailable, match=r"no connection to ZooKeeper at .*; nothing was asked"
                ):
                    await ours.commit(Create("/record", b""))
                cable.mend()
                await states.until(SessionState.LOST)
                with pytest.raises(RegistryUnavailable, match="is over; open another"):
                    await ours.read("/here")

    asyncio.run(run())


def test_a_connection_that_came_back_in_time_is_the_same_session_and_tells_what_was_missed(
    zookeeper: Ensemble,
) -> None:
    async def run() -> None:
        site = ZooKeeperSite(zookeeper.hosts)
        with Relay(zookeeper.hosts) as cable:
            async with site.session(cable.address) as ours, site.session() as theirs:
                states, calls = States(ours), Calls()
                await ours.commit(Create("/here", b"", is_ephemeral=True), Create("/record", b""))
                ours.watch("/record", calls)
                await calls.more()
                cable.cut()
                await states.until(SessionState.SUSPENDED)
                await theirs.commit(Put("/record", b"new", 0))
                assert calls.count == 1
                cable.mend()
                await states.until(SessionState.CONNECTED)
                await calls.more()
                assert await ours.read("/record") == Record(b"new", 1)
                await theirs.commit(Put("/record", b"newer", 1))
                await calls.more()
                assert await theirs.read("/here") == Record(b"", 0)

    asyncio.run(run())


def test_a_commit_whose_answer_was_lost_may_have_been_made(zookeeper: Ensemble) -> None:
    (server,) = zookeeper.servers

    async def run() -> None:
        site = ZooKeeperSite(zookeeper.hosts)
        with Relay(zookeeper.hosts) as cable:
            async with site.session(cable.address) as ours:
                states = States(ours)
                server.pause()
                try:
                    commit = asyncio.ensure_future(ours.commit(Create("/record", b"")))
                    await until(lambda: _has_heard(cable, b"/record"))
                    cable.cut()
                    with pytest.raises(RegistryUnavailable, match="may be done"):
                        await commit
                finally:
                    server.resume()
                cable.mend()
                await states.until(SessionState.CONNECTED)
                await until(lambda: _is_there(ours, "/record"))

    async def _has_heard(cable: Relay, text: bytes) -> bool:
        await asyncio.sleep(0)
        return any(text in said for said in cable.calls)

    async def _is_there(registry: Registry, path: str) -> bool:
        return not await _is_gone(registry, path)

    asyncio.run(run())


def test_sessions_outlive_the_restart_of_the_only_server(zookeeper: Ensemble) -> None:
    (server,) = zookeeper.servers

    async def run() -> None:
        # The longest session that the server grants: on a busy machine it is back late, and its client later.
        async with ZooKeeperSite(zookeeper.hosts).session(timeout_s=20) as ours:
            states = States(ours)
            await ours.commit(Create("/here", b"", is_ephemeral=True))
            server.kill()
            await states.until(SessionState.SUSPENDED)
            await asyncio.to_thread(_restart, zookeeper)
            await states.until(SessionState.CONNECTED)
            assert await ours.read("/here") == Record(b"", 0)

    asyncio.run(run())


def test_a_silent_server_is_left_for_another_in_the_same_session(ensemble: Ensemble) -> None:
    leader, (follower, other) = ensemble.leader(), ensemble.followers()

    async def run() -> None:
        site = ZooKeeperSite(ensemble.hosts)
        with Relay(follower.address) as cable:
            async with site.session(cable.address, _MEDIUM_S) as ours, site.session(other.address) as theirs:
                states = States(ours)
                await ours.commit(Create("/here", b"", is_ephemeral=True))
                follower.pause()
                try:
                    # kazoo itself would take this one's requests for a sign of life.
                    async with asyncio.TaskGroup() as tasks:
                        busy = tasks.create_task(_keep_asking(ours))
                        await states.until(SessionState.SUSPENDED)
                        busy.cancel()
                    cable.lead_to(leader.address)
                    await states.until(SessionState.CONNECTED)
                finally:
                    follower.resume()
                await ours.commit(Create("/record", b""))
                assert await theirs.read("/here") == Record(b"", 0)
                assert SessionState.LOST not in states.told

    async def _keep_asking(registry: Registry) -> None:
        while True:
            with contextlib.suppress(TimeoutError, RegistryUnavailable):
                async with asyncio.timeout(0.05):
                    await registry.read("/")
            await asyncio.sleep(0)

    asyncio.run(run())


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "frozen"])
def test_sessions_and_what_is_ephemeral_outlive_the_leader(ensemble: Ensemble, is_killed: bool) -> None:
    leader = ensemble.leader()

    async def run() -> None:
        async with ZooKeeperSite(ensemble.hosts).sessions(2, _MEDIUM_S) as (ours, theirs):
            states = States(ours), States(theirs)
            await ours.commit(Create("/here", b"", is_ephemeral=True))
            (leader.kill if is_killed else leader.pause)()
            try:
                for number, registry in enumerate((ours, theirs)):
                    await _commit_again(registry, f"/record-{number}")
            finally:
                (leader.start if is_killed else leader.resume)()
            assert await theirs.read("/here") == Record(b"", 0)
            assert all(SessionState.LOST not in each.told for each in states)

    asyncio.run(run())
    ensemble.wait_until_serving()


def test_a_server_that_its_leader_left_answers_but_does_not_hold_a_session(ensemble: Ensemble) -> None:
    leader, follower = ensemble.leader(), ensemble.followers()[0]

    async def run() -> None:
        site = ZooKeeperSite(ensemble.hosts)
        # So short that several confirmations are asked for before there is another leader.
        async with site.session(follower.address, _SHORT_S) as ours:
            await ours.commit(Create("/record", b""))
            leader.pause()
            paused_s = time.monotonic()
            try:
                answered = 0
                # Until the others agree on a new leader, half a second from now at the soonest.
                while time.monotonic() < paused_s + 0.4:
                    try:
                        await ours.read("/record")
                    except RegistryUnavailable:
                        break
                    answered += 1
                    assert ours.held_until_s < paused_s + _HELD_PART * ours.timeout_s
                assert answered > 0
            finally:
                leader.resume()
            await _commit_again(ours, "/after")

    asyncio.run(run())
    ensemble.wait_until_serving()


def test_without_a_majority_nothing_is_made_and_nobody_is_lost(ensemble: Ensemble) -> None:
    async def run() -> None:
        async with ZooKeeperSite(ensemble.hosts).session() as ours:
            states = States(ours)
            await ours.commit(Create("/here", b"", is_ephemeral=True))
            held_s = ours.held_until_s
            for server in ensemble.servers[:2]:
                server.kill()
            with pytest.raises(RegistryUnavailable):
                await ours.commit(Create("/record", b""))
            await asyncio.to_thread(_restart, ensemble)
            await _commit_again(ours, "/after")
            assert ours.held_until_s > held_s
            assert await ours.read("/here") == Record(b"", 0)
            assert SessionState.LOST not in states.told

    asyncio.run(run())


def _restart(ensemble: Ensemble) -> None:
    for server in ensemble.servers:
        if not server.is_running:
            server.start()
    ensemble.wait_until_serving()
