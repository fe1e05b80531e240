import asyncio
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tanist.broker import rebuilding
from tanist.broker.rebuilding import SlaveRounds, StepWatch, drop_when_in_step
from tanist.clock import SystemClock
from tanist.errors import ConfigError
from tanist.ha.follower import Follower, FollowerStatus
from tanist.store.commitlog import CommitLog
from tests.support.broker_tables import open_state
from tests.support.conditions import turns, until
from tests.support.messages import SMALL, make_message, open_store


class _Played:
    """A slave that a test plays: it only counts its rounds."""

    def __init__(self) -> None:
        self.ports: list[int] = []
        self.ended_count = 0
        self.rounds: SlaveRounds | None = None

    @asynccontextmanager
    async def serve(self, bound: socket.socket, rounds: SlaveRounds) -> AsyncGenerator[None]:
        self.ports.append(bound.getsockname()[1])
        self.rounds = rounds
        yield
        self.ended_count += 1
        # A server closes the socket that it was given.
        bound.close()

    @property
    def round_count(self) -> int:
        return len(self.ports)


@contextmanager
def bound_port() -> Generator[socket.socket]:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound


def fill(root: Path) -> None:
    with open_store(root, SMALL) as store:
        store.append(make_message())


def test_a_rebuild_ends_the_round_sets_the_log_aside_and_begins_on_the_same_port(tmp_path: Path) -> None:
    fill(tmp_path)

    async def scenario() -> None:
        played = _Played()
        with bound_port() as bound:
            rounds = SlaveRounds(played.serve, bound, tmp_path, SystemClock())
            async with rounds.serving():
                assert (played.round_count, played.ended_count) == (1, 0)
                rounds.rebuild()
                rounds.rebuild()
                await until(lambda: played.round_count == 2)
                assert played.ended_count == 1
            assert played.ended_count == played.round_count == 2
        assert played.ports[0] == played.ports[1]
        assert rounds.failure is None

    asyncio.run(scenario())
    assert not (tmp_path / "commitlog").exists()
    (aside,) = tmp_path.glob("aside-*")
    assert (aside / "commitlog").exists()


def test_what_can_not_be_set_aside_is_served_again_and_the_reason_is_kept(tmp_path: Path) -> None:
    root = tmp_path / "store"
    fill(root)
    (root / "commitlog").rename(tmp_path / "elsewhere")
    (root / "commitlog").symlink_to(tmp_path / "elsewhere")

    async def scenario() -> None:
        played = _Played()
        with bound_port() as bound:
            rounds = SlaveRounds(played.serve, bound, root, SystemClock())
            async with rounds.serving():
                rounds.rebuild()
                await until(lambda: played.round_count == 2)
                assert rounds.failure is not None
                assert "link" in rounds.failure

    asyncio.run(scenario())
    assert not list(root.glob("aside-*"))


def test_a_first_round_that_fails_is_raised_as_it_is(tmp_path: Path) -> None:
    @asynccontextmanager
    async def fail(_bound: socket.socket, _rounds: SlaveRounds) -> AsyncGenerator[None]:
        raise ConfigError("listenPort", 1, "another")
        yield

    async def scenario() -> None:
        with bound_port() as bound:
            async with SlaveRounds(fail, bound, tmp_path, SystemClock()).serving():
                raise AssertionError("it does not serve")

    with pytest.raises(ConfigError, match="listenPort"):
        asyncio.run(scenario())


def log(log_end: int, flushed_to: int) -> CommitLog:
    return cast("CommitLog", SimpleNamespace(log_end=log_end, flushed_to=flushed_to))


def test_a_slave_is_in_step_when_it_holds_what_its_master_had_a_look_ago() -> None:
    watch = StepWatch(quiet_s=6)
    assert not watch.on_look(log(0, 0), master_log_end=100, now_s=0)
    assert not watch.on_look(log(100, 99), master_log_end=200, now_s=1)
    assert watch.on_look(log(250, 200), master_log_end=300, now_s=2)
    watch.on_lost()
    assert not watch.on_look(log(300, 300), master_log_end=300, now_s=3)


def test_behind_a_master_that_does_not_tell_its_end_a_slave_is_in_step_when_it_is_quiet() -> None:
    watch = StepWatch(quiet_s=6)
    assert not watch.on_look(log(0, 0), master_log_end=None, now_s=100)
    assert not watch.on_look(log(50, 50), master_log_end=None, now_s=101)
    assert not watch.on_look(log(90, 90), master_log_end=None, now_s=106)
    assert not watch.on_look(log(90, 80), master_log_end=None, now_s=113)
    assert watch.on_look(log(90, 90), master_log_end=None, now_s=113)


def test_the_old_log_is_deleted_when_the_new_one_is_on_disk_as_far_as_the_master_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuilding, "_LOOK_S", 0.001)
    state = open_state(tmp_path)
    old = tmp_path / "aside-1"
    (old / "commitlog").mkdir(parents=True)

    async def scenario() -> None:
        status = FollowerStatus()
        follower = SimpleNamespace(status=status, is_transferring=False)
        state.replication.follower = cast("Follower", follower)
        task = asyncio.create_task(drop_when_in_step(state))
        await turns(200)
        assert old.exists()
        state.store.append(make_message())
        status.master_log_end = state.store.log.log_end
        follower.is_transferring = True
        await turns(200)
        assert old.exists()
        state.store.flush()
        await until(lambda: not old.exists())
        task.cancel()
        await asyncio.wait([task])

    with state.store:
        asyncio.run(scenario())
