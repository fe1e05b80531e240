"""What a controller may not be led to believe, and what it may not forget while it is in doubt."""

import asyncio
import time
from pathlib import Path

from tanist.protocol import RequestCode, ResponseCode
from tests.support.played_replicas import (
    TIMEOUT_MS,
    PlayedReplica,
    beating,
    controlling,
    in_time,
    reign,
    replicas,
)

C, R = RequestCode, ResponseCode
TIMEOUT_S = TIMEOUT_MS / 1000


def test_a_heartbeat_without_a_session_under_the_masters_id_ends_no_lease(tmp_path: Path) -> None:
    async def scenario() -> None:
        master, slave = PlayedReplica(1, session="s1"), PlayedReplica(2, session="s2")
        stranger = PlayedReplica(1)
        async with controlling(tmp_path) as controller, replicas(master, slave, stranger):
            at = controller.address
            await reign(controller, master, slave)
            async with beating(slave, at=[at]):
                sent_s = time.monotonic()
                assert await master.beat(at) == 1
                assert await stranger.beat(at) is None
                await stranger.disconnect()
                await slave.wait_for_master(at, beyond=1)
                assert time.monotonic() - sent_s >= TIMEOUT_S

    in_time(scenario())
