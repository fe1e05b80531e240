"""A slave whose links do not work, over sockets."""

import asyncio
import logging
from pathlib import Path

import pytest

from tanist.ha.follower import FollowerState
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
