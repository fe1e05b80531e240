"""A slave's tables that follow any master by its requests, and what a test does to that master."""

import asyncio
from collections.abc import Mapping
from typing import NamedTuple, Self

from tanist.broker.metadata_sync import MetadataSync
from tanist.broker.state import BrokerState
from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.topics import TopicConfig
from tanist.protocol.bodies import decode_java_json, encode_body
from tanist.protocol.bodies.sync import (
    ConsumerOffsetTable,
    DelayOffsetTable,
    SubscriptionGroupTable,
    TopicConfigTable,
)
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.common import TopicRequest
from tanist.protocol.headers.groups import DeleteGroupRequest
from tanist.protocol.headers.offsets import UpdateConsumerOffsetRequest
from tanist.protocol.headers.topics import UpdateTopicRequest
from tanist.remoting import RemotingClient
from tests.support.requests import send_request
from tests.support.wire import Wire

_TIMEOUT_S = 60.0


def entries(topic: str, group: str, *, offset: int) -> list[Command]:
    """What makes a topic, a group and an offset, and has a message of delay level 1 delivered."""
    make_topic = UpdateTopicRequest(
        topic=topic,
        default_topic="TBW102",
        read_queue_count=3,
        write_queue_count=3,
        perm=6,
        topic_filter_type="SINGLE_TAG",
    )
    commit = UpdateConsumerOffsetRequest(
        consumer_group=group,
        topic=topic,
        queue_id=1,
        consumer_offset=offset,  # pyright: ignore[reportArgumentType]
    )
    config = SubscriptionGroupConfig(group_name=group, retry_max_times=7)
    return [
        Command.request(RequestCode.UPDATE_AND_CREATE_TOPIC, make_topic),
        Command.request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=encode_body(config)),
        send_request(topic=topic, properties="DELAY\x011\x02"),
        Command.request(RequestCode.UPDATE_CONSUMER_OFFSET, commit),
    ]


class ToldTables(NamedTuple):
    """What a broker tells of its tables, without their versions: those are each broker's own."""

    topics: dict[str, TopicConfig]
    groups: dict[str, SubscriptionGroupConfig]
    consumer_offsets: Mapping[str, Mapping[int, int]]
    delay_offsets: Mapping[int, int]

    @classmethod
    def of(cls, address: str) -> Self:
        with Wire(address) as wire:

            def ask(code: RequestCode) -> bytes:
                answer = wire.ask(Command.request(code))
                assert answer.code == ResponseCode.SUCCESS, answer.remark
                return bytes(answer.body)

            groups = ask(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
            offsets = ask(RequestCode.GET_ALL_CONSUMER_OFFSET)
            delays = ask(RequestCode.GET_ALL_DELAY_OFFSET)
            return cls(
                decode_java_json(ask(RequestCode.GET_ALL_TOPIC_CONFIG), TopicConfigTable).topics,
                decode_java_json(groups, SubscriptionGroupTable).groups,
                decode_java_json(offsets, ConsumerOffsetTable).offset_table,
                decode_java_json(delays, DelayOffsetTable).offset_table,
            )


class Following:
    """A slave that asks when a test says so."""

    def __init__(self, state: BrokerState, client: RemotingClient, master: str) -> None:
        self.state = state
        self.sync = MetadataSync(state, client)
        self.sync.use_master(master)
        self._client = client
        self._master = master

    async def make_entries(self, topic: str, group: str, *, offset: int) -> None:
        """Have the master make a topic, a group and an offset, and deliver a message of delay level 1."""
        for request in entries(topic, group, offset=offset):
            await self._do(request)

    async def delete_group(self, group: str) -> None:
        """Have the master delete a group and its offsets."""
        delete = DeleteGroupRequest(group_name=group, clean_offset=True)
        await self._do(Command.request(RequestCode.DELETE_SUBSCRIPTIONGROUP, delete))

    async def delete_topic(self, topic: str) -> int:
        """Have the master delete a topic. RocketMQ without timers does it, and answers that it failed."""
        request = Command.request(RequestCode.DELETE_TOPIC_IN_BROKER, TopicRequest(topic=topic))
        return (await self._client.request(self._master, request, timeout_s=_TIMEOUT_S)).code

    async def run_until_delivered(self) -> None:
        """Ask until the master has told that it delivered a message of delay level 1."""
        async with asyncio.timeout(_TIMEOUT_S):
            while self.state.delays.levels.next_offset(1) == 0:
                await self.sync.run_once()

    async def check_all_equal(self) -> None:
        """All four tables are what the master tells, versions and all."""
        state = self.state
        topics = decode_java_json(await self._ask(RequestCode.GET_ALL_TOPIC_CONFIG), TopicConfigTable)
        assert (topics.topics, topics.data_version) == (
            state.topics.table.topics,
            state.topics.data_version,
        )
        offsets = await self._ask(RequestCode.GET_ALL_CONSUMER_OFFSET)
        assert decode_java_json(offsets, ConsumerOffsetTable) == state.offsets.table()
        delays = await self._ask(RequestCode.GET_ALL_DELAY_OFFSET)
        assert decode_java_json(delays, DelayOffsetTable) == state.delays.levels.table()
        groups = await self._ask(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
        assert decode_java_json(groups, SubscriptionGroupTable) == state.groups.table

    async def _ask(self, code: RequestCode) -> bytes:
        return bytes((await self._do(Command.request(code))).body)

    async def _do(self, request: Command) -> Command:
        answer = await self._client.request(self._master, request, timeout_s=_TIMEOUT_S)
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        return answer
