"""Reads a broker's queues by hand, for tests of what producers have sent."""

import asyncio
from types import TracebackType
from typing import Self

from tanist.client.received import ReceivedMessage, decode_messages
from tanist.model.route import MessageQueue
from tanist.protocol.codes import ResponseCode
from tanist.protocol.headers.pull import PullMessageResponse
from tanist.remoting import RemotingClient
from tests.support.requests import pull_request


class Reader:
    """Reads topics of one broker, each message once."""

    def __init__(self, address: str, *, broker_name: str, queue_count: int = 1) -> None:
        self._address = address
        self._broker_name = broker_name
        self._queue_ids = range(queue_count)
        self._remoting = RemotingClient()
        self._next: dict[MessageQueue, int] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._remoting.close()

    async def read(self, topic: str) -> list[ReceivedMessage]:
        """What has come since the last time, up to 32 messages of each queue; maybe nothing."""
        queues = [
            MessageQueue(topic=topic, broker_name=self._broker_name, queue_id=queue_id)
            for queue_id in self._queue_ids
        ]
        return [message for queue in queues for message in await self._read(queue)]

    async def wait_for(self, topic: str, count: int = 1, *, timeout_s: float = 30) -> list[ReceivedMessage]:
        """Wait until this many messages have come since the last time."""
        found: list[ReceivedMessage] = []
        async with asyncio.timeout(timeout_s):
            while len(found) < count:
                found += await self.read(topic)
                await asyncio.sleep(0.01)
        return found

    async def _read(self, queue: MessageQueue) -> list[ReceivedMessage]:
        pull = pull_request(self._next.get(queue, 0), topic=queue.topic, queue_id=queue.queue_id)
        answer = await self._remoting.request(self._address, pull, timeout_s=10)
        if answer.code not in (ResponseCode.SUCCESS, ResponseCode.PULL_NOT_FOUND):
            return []  # The topic is not there yet.
        self._next[queue] = answer.header(PullMessageResponse).next_begin_offset
        return decode_messages(memoryview(answer.body), queue)
