"""A broker whose read right comes and goes, as its clients see it on the wire."""

import asyncio
from pathlib import Path

import pytest

from tanist.broker.queue_look import queue_bounds
from tanist.model.groups import ConsumeFromWhere, ConsumeType, MessageModel
from tanist.model.reading import FULL, NONE
from tanist.model.topics import READ, TopicConfig
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.client import ConsumerData, HeartbeatData
from tanist.protocol.headers.reading import ReadStandingRequest, ReadStandingResponse
from tanist.remoting import RemotingClient
from tests.support.conditions import until
from tests.support.requests import GROUP, TOPIC, pull_request, send_request
from tests.support.right_broker import right_broker

ELSEWHERE = "10.0.0.9:10911"
TOPICS = (TopicConfig(topic_name=TOPIC),)
TIMEOUT_S = 30.0


def _heartbeat() -> Command:
    consumer = ConsumerData(
        group_name=GROUP,
        consume_type=ConsumeType.PASSIVELY,
        message_model=MessageModel.CLUSTERING,
        consume_from_where=ConsumeFromWhere.LAST_OFFSET,
    )
    heartbeat = HeartbeatData(client_id="a", consumer_data_set=[consumer])
    return Command.request(RequestCode.HEART_BEAT, body=encode_body(heartbeat))


@pytest.mark.behaviour("S3-10", "S3-16")
def test_a_consumer_whose_broker_is_read_no_more_is_told_who_is_and_then_disconnected(tmp_path: Path) -> None:
    async def scenario() -> None:
        lost: list[str] = []
        client = RemotingClient(on_disconnect=lost.append)
        async with right_broker(tmp_path, "", 0, topics=TOPICS) as broker:
            broker.permit(FULL)

            async def ask(request: Command) -> Command:
                return await client.request(broker.address, request, timeout_s=TIMEOUT_S)

            assert (await ask(_heartbeat())).code == ResponseCode.SUCCESS
            async with asyncio.TaskGroup() as tasks:
                pull = tasks.create_task(ask(pull_request(suspend_ms=15_000)))
                # A second one is answered when the first is parked.
                assert (await ask(_heartbeat())).code == ResponseCode.SUCCESS
                broker.permit(NONE, reader=ELSEWHERE, term=7)
            refused = pull.result()
            assert refused.code == ResponseCode.NO_PERMISSION
            assert refused.remark == f"{broker.address} is not readable: a test says so"
            assert (refused.ext["readerAddress"], refused.ext["readTerm"]) == (ELSEWHERE, "7")
            await until(lambda: lost == [broker.address])
            for request in (_heartbeat(), pull_request()):
                assert (await ask(request)).code == ResponseCode.NO_PERMISSION
            broker.permit(FULL)
            assert (await ask(_heartbeat())).code == ResponseCode.SUCCESS
            await client.close()

    asyncio.run(scenario())


def test_a_broker_that_may_not_be_written_takes_no_message_by_any_way(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = RemotingClient()
        async with right_broker(tmp_path, "", 0, topics=TOPICS) as broker:
            broker.permit(FULL)
            codes: list[int] = []
            # The second one takes the way of those that need no second look.
            for permission in (FULL, FULL, NONE, READ, FULL):
                broker.permit(permission)
                answer = await client.request(broker.address, send_request(), timeout_s=TIMEOUT_S)
                codes.append(answer.code)
            refused = ResponseCode.NO_PERMISSION
            assert codes == [*(0, 0), *(refused, refused), 0]
            await until(lambda: queue_bounds(broker.state.store, TOPIC, 0) == (0, 3))
            await client.close()

    asyncio.run(scenario())


def test_whoever_waits_for_a_broker_to_be_read_is_answered_when_it_is(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = RemotingClient()
        async with right_broker(tmp_path, "", 0) as broker, asyncio.TaskGroup() as tasks:
            header = ReadStandingRequest(wait_ms=10_000)
            request = Command.request(RequestCode.GET_READ_STANDING, header)
            asked = tasks.create_task(client.request(broker.address, request, timeout_s=TIMEOUT_S))
            at_once = Command.request(RequestCode.GET_READ_STANDING, ReadStandingRequest())
            answer = await client.request(broker.address, at_once, timeout_s=TIMEOUT_S)
            assert answer.header(ReadStandingResponse).permission == "NONE"
            assert not asked.done()
            broker.permit(FULL)
            standing = (await asked).header(ReadStandingResponse)
            assert (standing.permission, standing.reader_address) == ("FULL", broker.address)
            await client.close()

    asyncio.run(scenario())
