"""A slave of Tanist takes over the tables of a master of Apache RocketMQ."""

import asyncio
from pathlib import Path

import pytest

from tanist.remoting import RemotingClient
from tests.support.broker_tables import open_state
from tests.support.following import Following
from tests.support.rocketmq.cluster import Broker, RocketMQ


@pytest.mark.behaviour("S1-27")
def test_the_tables_of_rocketmq_are_taken_over_as_they_are(
    rocketmq_broker: tuple[RocketMQ, Broker], tmp_path: Path
) -> None:
    async def scenario() -> None:
        client = RemotingClient()
        try:
            slave = Following(open_state(tmp_path), client, rocketmq_broker[1].address)
            await slave.make_entries("FollowedTopic", "FollowedGroup", offset=1)
            await slave.run_until_delivered()
            await slave.sync.run_once()
            state = slave.state
            topic, group = state.topics.find("FollowedTopic"), state.groups.find("FollowedGroup")
            assert topic is not None
            assert topic.read_queue_count == 3
            assert group is not None
            assert group.retry_max_times == 7
            assert state.offsets.find("FollowedGroup", "FollowedTopic", 1) == 1
            await slave.check_all_equal()

            # What is taken over once is not taken over again.
            table = state.topics.table
            await slave.sync.run_once()
            assert state.topics.table is table

            await slave.delete_group("FollowedGroup")
            await slave.delete_topic("FollowedTopic")
            await slave.sync.run_once()
            assert state.topics.find("FollowedTopic") is None
            assert state.groups.find("FollowedGroup") is None
            assert state.offsets.find("FollowedGroup", "FollowedTopic", 1) is None
        finally:
            await client.close()

    asyncio.run(scenario())
