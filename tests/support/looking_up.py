"""Finds messages by key in a broker, as operator tools do."""

import asyncio

from tanist.client.received import ReceivedMessage, decode_messages
from tanist.client.tracing.trace_format import Trace, decode_traces
from tanist.model.integers import INT64_MAX
from tanist.model.route import MessageQueue
from tanist.model.topics import TRACE_TOPIC
from tanist.protocol import Command, RequestCode, ResponseCode
from tanist.protocol.headers.messages import QueryMessageRequest
from tanist.remoting import RemotingClient

_PATIENCE_S = 30.0
_APART_S = 0.02


async def find_messages(address: str, topic: str, key: str, *, count: int = 1) -> list[ReceivedMessage]:
    """Wait until the broker at ``address`` finds so many messages by a key or a unique id, and give them."""
    client = RemotingClient()
    try:
        async with asyncio.timeout(_PATIENCE_S):
            while True:
                found = await _find(client, address, topic, key)
                if len(found) >= count:
                    return found
                await asyncio.sleep(_APART_S)
    finally:
        await client.close()


async def find_traces(address: str, message_id: str, *, count: int = 1) -> list[Trace]:
    """Wait until there are so many traces of one message, and give them in the order of their time."""
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            messages = await find_messages(address, TRACE_TOPIC, message_id)
            found = decode_traces("".join(message.body.decode() for message in messages))
            traces = [trace for trace in found if trace.message_id == message_id]
            if len(traces) >= count:
                return sorted(traces, key=lambda trace: trace.timestamp_ms)
            await asyncio.sleep(_APART_S)


async def _find(client: RemotingClient, address: str, topic: str, key: str) -> list[ReceivedMessage]:
    header = QueryMessageRequest(
        topic=topic, key=key, max_count=32, begin_timestamp_ms=0, end_timestamp_ms=INT64_MAX
    )
    answer = await client.request(address, Command.request(RequestCode.QUERY_MESSAGE, header), timeout_s=10)
    if answer.code != ResponseCode.SUCCESS:
        return []
    return decode_messages(memoryview(answer.body), MessageQueue(topic=topic, broker_name="some", queue_id=0))
