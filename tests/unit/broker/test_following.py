"""Whom a slave asks for the tables, by what is spoken on its link."""

import asyncio
from pathlib import Path
from typing import cast

import msgspec
import pytest

from tanist.broker.following import Following
from tanist.broker.registration import MasterPlace
from tanist.broker.replication import Parts, Replication
from tanist.broker.settings import BrokerRole
from tanist.errors import ConnectFailed
from tanist.ha.follower import FollowerState
from tanist.ha.replicas import Dialect
from tanist.ha.settings import HaCompatibility, HaSettings
from tanist.protocol.command import Command
from tanist.remoting import RemotingClient
from tests.support.broker_tables import SETTINGS
from tests.support.working_broker import working_broker

SLAVE = msgspec.structs.replace(SETTINGS, broker_role=BrokerRole.SLAVE, broker_id=1)
MASTER = MasterPlace("10.0.0.1:10911", "10.0.0.1:10912")


class _Nobody:
    """Answers nothing, and remembers that it was asked."""

    def __init__(self) -> None:
        self.asked_count = 0

    async def request(self, address: str, _command: Command, *, timeout_s: float) -> Command:
        self.asked_count += 1
        raise ConnectFailed(address, f"nobody is there within {timeout_s} s")


@pytest.mark.parametrize(
    ("state", "dialect", "is_asking"),
    [
        (FollowerState.TRANSFER, Dialect.TANIST, False),
        (FollowerState.TRANSFER, Dialect.CLASSIC, True),
        (FollowerState.PAUSED, Dialect.TANIST, True),
        (FollowerState.HANDSHAKE, None, True),
    ],
)
def test_a_slave_that_may_follow_rocketmq_asks_unless_its_link_brings_the_tables(
    tmp_path: Path, state: FollowerState, dialect: Dialect | None, *, is_asking: bool
) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path, SLAVE) as broker:
            ha = HaSettings(ha_compatibility=HaCompatibility.CLASSIC)
            broker.state.ha = ha
            broker.state.replication = Replication(
                Parts(
                    SLAVE,
                    ha,
                    None,
                    broker.state.store,
                    broker.state.writer,
                    broker.flusher,
                    broker.state.clock,
                )
            )
            nobody = _Nobody()
            following = Following(broker.state, cast("RemotingClient", nobody))
            following.use_master(MASTER)
            status = following.follower.status
            status.state, status.dialect = state, dialect
            await following.sync.run_once()
            assert (nobody.asked_count > 0) is is_asking

    asyncio.run(scenario())
