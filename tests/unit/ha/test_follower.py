"""A slave whose links do not work, over sockets."""

import asyncio
import logging
from pathlib import Path

import pytest

from tanist.ha.follower import FollowerState
from tanist.ha.replicas import Dialect
from tanist.ha.settings import HaCompatibility, HaSettings
from tests.support.conditions import until
from tests.support.ha_ends import following, make_follower, serving_log, taken_count
from tests.support.messages import make_message, open_store


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
