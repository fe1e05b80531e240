"""A slave's tables follow a master over a real connection."""

import asyncio
from pathlib import Path

import pytest

from tanist.protocol import Command, RequestCode, encode_command
from tanist.protocol.codes import ResponseCode
from tanist.remoting import RemotingClient
from tanist.testing import EmbeddedBroker
from tests.support.broker_tables import open_state
from tests.support.following import Following
from tests.support.rocketmq.cluster import free_broker_port
from tests.support.wire import Wire

TABLE_CODES = (
    RequestCode.GET_ALL_TOPIC_CONFIG,
    RequestCode.GET_ALL_CONSUMER_OFFSET,
    RequestCode.GET_ALL_DELAY_OFFSET,
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
    RequestCode.GET_TIMER_CHECK_POINT,
    RequestCode.GET_TIMER_METRICS,
    RequestCode.GET_ALL_MESSAGE_REQUEST_MODE,
)


@pytest.mark.behaviour("S1-18", "S1-27")
def test_a_slave_has_what_its_master_has_and_loses_what_the_master_deletes(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = RemotingClient()
        try:
            async with EmbeddedBroker(port=free_broker_port()) as master:
                slave = Following(open_state(tmp_path), client, master.address)
                await slave.make_entries("Orders", "Billing", offset=5)
                await slave.run_until_delivered()
                await slave.sync.run_once()
                await slave.check_all_equal()
                assert slave.state.offsets.find("Billing", "Orders", 1) == 5
                await slave.delete_group("Billing")
                assert await slave.delete_topic("Orders") == ResponseCode.SUCCESS
                await slave.sync.run_once()
                await slave.check_all_equal()
                assert slave.state.topics.find("Orders") is None
                assert slave.state.offsets.topics_of("Billing") == set()
        finally:
            await client.close()

    asyncio.run(scenario())


@pytest.mark.behaviour("S1-22", "S1-26")
def test_every_request_for_a_table_gets_one_answer_and_no_more() -> None:
    with EmbeddedBroker() as master, Wire(master.address) as wire:
        requests = [Command.request(code, opaque=number + 1) for number, code in enumerate(TABLE_CODES)]
        wire.send(b"".join(map(encode_command, requests)))
        # Asked last and answered in order: whatever is answered twice has come by then.
        last = Command.request(4711, opaque=99)
        wire.send(encode_command(last))
        answers = [wire.receive() for _ in range(len(requests) + 1)]
        opaques = {answer.opaque for answer in answers if answer is not None}
        assert opaques == {request.opaque for request in (*requests, last)}
        for answer in answers:
            assert answer is not None
            if answer.opaque != last.opaque:
                assert (answer.code, answer.remark) == (ResponseCode.SUCCESS, None)
                assert answer.body
