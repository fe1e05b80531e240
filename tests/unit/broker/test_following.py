"""Whom a slave asks for the tables, by what is spoken on its link."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
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
from tanist.model.topics import TopicConfig
from tanist.protocol.codes import Language, ResponseCode
from tanist.protocol.command import Command
from tanist.remoting import RemotingClient
from tests.support.broker_tables import SETTINGS
from tests.support.conditions import until
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


class _Somebody(_Nobody):
    """Answers in a language."""

    def __init__(self, language: Language) -> None:
        super().__init__()
        self._language = language

    async def request(self, address: str, command: Command, *, timeout_s: float) -> Command:
        assert (address, timeout_s) == (MASTER.address, 1.0)
        self.asked_count += 1
        answer = command.reply(ResponseCode.REQUEST_CODE_NOT_SUPPORTED)
        answer.language = self._language
        return answer


@asynccontextmanager
async def _following(root: Path, master: _Nobody) -> AsyncGenerator[Following]:
    """A slave that may follow RocketMQ, and asks this master."""
    async with working_broker(root, SLAVE) as broker:
        state = broker.state
        state.ha = ha = HaSettings(ha_compatibility=HaCompatibility.CLASSIC)
        state.replication = Replication(
            Parts(SLAVE, ha, None, state.store, state.writer, broker.flusher, state.clock)
        )
        following = Following(state, cast("RemotingClient", master))
        following.use_master(MASTER)
        yield following


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
        nobody = _Nobody()
        async with _following(tmp_path, nobody) as following:
            status = following.follower.status
            status.state, status.dialect = state, dialect
            await following.sync.run_once()
            assert (nobody.asked_count > 0) is is_asking

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("master", "is_rocketmq"),
    [(_Somebody(Language.JAVA), True), (_Somebody(Language.PYTHON), False), (_Nobody(), False)],
)
def test_a_master_that_answers_in_java_is_one_of_rocketmqs(
    tmp_path: Path, master: _Nobody, *, is_rocketmq: bool
) -> None:
    async def scenario() -> None:
        async with _following(tmp_path, master) as following:
            assert await following._is_rocketmq() is is_rocketmq
            assert master.asked_count == 1

    asyncio.run(scenario())


def test_a_topic_that_only_the_log_tells_of_has_the_tables_asked_for_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        master = _Nobody()
        async with _following(tmp_path, master) as following, asyncio.TaskGroup() as tasks:
            following.sync.start(tasks)
            following.use_master(MASTER)
            following._state.topics.put(TopicConfig(topic_name="Known"))
            for topic in ("Known", "Unheard", "Unheard"):
                following.on_indexed(topic, 0, 1)
            # That is less than the 3 s after which it would be asked anyway.
            await until(lambda: master.asked_count > 0, timeout_s=2)
            assert following._missed_topics == {"Unheard"}
            await following.sync.close()

    asyncio.run(scenario())


def test_while_the_link_brings_the_tables_a_topic_is_not_asked_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with _following(tmp_path, _Nobody()) as following:
            status = following.follower.status
            status.state, status.dialect = FollowerState.TRANSFER, Dialect.TANIST
            following.on_indexed("Unheard", 0, 1)
            assert following._missed_topics == set()

    asyncio.run(scenario())
