"""A master of a pair is killed: what it had confirmed is with its slave."""

from pathlib import Path

import pytest

from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.offsets import QueueOffset
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies import encode_body
from tanist.protocol.headers.offsets import (
    ConsumerOffsetResponse,
    QueryConsumerOffsetRequest,
    UpdateConsumerOffsetRequest,
)
from tests.support.fixed_pair import FixedPair
from tests.support.requests import TOPIC, send_request
from tests.support.wire import Wire

GROUP = "billing"
COUNT = 200


@pytest.mark.behaviour("S3-54")
def test_an_offset_that_a_master_has_confirmed_is_with_its_slave_though_it_is_killed_at_once(
    tmp_path: Path,
) -> None:
    with FixedPair(tmp_path, slaveConsumeChecks=2, brokerStandInMills=0) as pair:
        with Wire(pair.master.address) as wire:
            group = encode_body(SubscriptionGroupConfig(group_name=GROUP))
            wire.ask(Command.request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=group))
            for _ in range(COUNT):
                assert wire.ask(send_request()).code == ResponseCode.SUCCESS
            for offset in range(COUNT + 1):
                commit = UpdateConsumerOffsetRequest(
                    consumer_group=GROUP, topic=TOPIC, queue_id=0, consumer_offset=QueueOffset(offset)
                )
                answer = wire.ask(Command.request(RequestCode.UPDATE_CONSUMER_OFFSET, commit))
                assert answer.code == ResponseCode.SUCCESS
            pair.kill_master()
        pair.wait_for(pair.slave, "READ")
        with Wire(pair.slave.address) as wire:
            query = QueryConsumerOffsetRequest(consumer_group=GROUP, topic=TOPIC, queue_id=0)
            answer = wire.ask(Command.request(RequestCode.QUERY_CONSUMER_OFFSET, query))
        assert answer.header(ConsumerOffsetResponse).consumer_offset == COUNT
