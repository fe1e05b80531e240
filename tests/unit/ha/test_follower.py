"""A slave whose links do not work, over sockets."""

import asyncio
import itertools
import logging
from pathlib import Path

import pytest

from tanist.ha.follower import FollowerState
from tanist.ha.replicas import Dialect
from tanist.ha.settings import HaCompatibility, HaSettings
from tests.support.conditions import until
from tests.support.ha_ends import following, make_follower, serving_log, taken_count
from tests.support.messages import make_message, open_store
from tests.support.virtual_time import run_virtually, virtually_until


@pytest.mark.parametrize(
    "address", ["no port", "127.0.0.1:port", "127.0.0.1:99999999", f"{'a' * 64}.b:10912", "a..b:10912", ":1"]
)
def test_an_address_that_is_none_is_a_failure_like_others_and_the_next_one_is_tried(
    tmp_path: Path, address: str
) -> None:
    async def run() -> None:
        with open_store(tmp_path / "m") as log, open_store(tmp_path / "s") as store:
            follower = make_follower(store)
            follower.use_master(address)
            async with serving_log(log) as (good, _), following(follower) as running:
                await until(lambda: follower.status.failure is not None or running.done())
                assert not running.done()
                follower.use_master(good)
                await until(lambda: follower.is_transferring)

    asyncio.run(run())


def test_a_slave_whose_links_end_as_soon_as_they_work_calls_less_and_less_often(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        with open_store(tmp_path / "m") as log, open_store(tmp_path / "s") as store:
            log.append(make_message())
            follower = make_follower(store, refuses=True)
            async with serving_log(log) as (address, _), following(follower):
                follower.use_master(address)
                await until(lambda: follower.status.failure is not None and taken_count(caplog) == 4)
                assert follower.status.state is FollowerState.PAUSED
                # After 50, 100 and 200 ms at most. Had it begun anew each time, the next would come in 50.
                assert follower._backoff._step_s >= 0.4

    with caplog.at_level(logging.INFO):
        asyncio.run(run())
    # The reason stays the same, and is told once.
    assert sum("are not appended" in record.getMessage() for record in caplog.records) == 1


def test_a_new_address_is_called_at_once_however_long_the_pause_has_grown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[int, float]] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()

        async def nobody_there(_make: object, _host: str, port: int, **_options: object) -> None:
            calls.append((port, loop.time()))
            raise ConnectionRefusedError

        monkeypatch.setattr(loop, "create_connection", nobody_there)
        with open_store(tmp_path) as store:
            follower = make_follower(store)
            follower.use_master("127.0.0.1:1")
            async with following(follower):
                await asyncio.sleep(60)
                # The pauses have grown to their longest, of which the next one begins now.
                count = len(calls)
                await virtually_until(lambda: len(calls) > count)
                await asyncio.sleep(0.5)
                told_s = loop.time()
                follower.use_master("127.0.0.1:2")
                await virtually_until(lambda: calls[-1][0] == 2)
                assert calls[-1] == (2, told_s)
                # And what follows is tried as often as at first.
                await virtually_until(lambda: len([port for port, _ in calls if port == 2]) == 3)
                assert loop.time() - told_s < 0.2

    run_virtually(run())
    first = [called_s for port, called_s in calls if port == 1]
    pauses = [after - before for before, after in itertools.pairwise(first)]
    assert pauses[0] <= 0.05
    assert 2.5 <= pauses[-1] <= 5


@pytest.mark.parametrize(
    ("is_rocketmq", "ha_master_address", "dialects"),
    [
        (True, "", {Dialect.AUTOSWITCH}),
        (False, "", {Dialect.TANIST}),
        # Who answers need not be the master that the config names.
        (True, "127.0.0.1:10912", {Dialect.TANIST}),
    ],
)
def test_a_slave_asks_who_a_new_master_is_before_it_speaks(
    tmp_path: Path, *, is_rocketmq: bool, ha_master_address: str, dialects: set[Dialect]
) -> None:
    async def ask() -> bool:
        return is_rocketmq

    async def run() -> None:
        settings = HaSettings(
            ha_compatibility=HaCompatibility.AUTOSWITCH, ha_master_address=ha_master_address
        )
        with open_store(tmp_path) as store:
            follower = make_follower(store, settings, ask_if_rocketmq=ask)
            assert {await follower._choose_dialect("127.0.0.1:10912") for _ in range(2)} == dialects

    asyncio.run(run())
