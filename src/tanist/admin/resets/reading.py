"""Asks brokers where a group stands and what its queues hold: many questions at once, but never too many."""

from collections.abc import Iterable, Sequence

from tanist.admin.parallel import in_parallel
from tanist.admin.resets.aiming import QueueFacts
from tanist.admin.resets.places import Place, Places
from tanist.client.session.wire import Wire
from tanist.errors import MQError
from tanist.model.groups import MessageModel
from tanist.model.route import MessageQueue
from tanist.protocol.bodies.client import ConsumerConnections
from tanist.protocol.bodies.running import PROP_CONSUME_ORDERLY, ConsumerRunningInfo, ConsumerStatus
from tanist.protocol.bodies.stats import QueueStats, TopicStatsTable
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.base import Header
from tanist.protocol.headers.client import ConsumerRunningInfoRequest
from tanist.protocol.headers.common import (
    ConsumerGroupRequest,
    QueueOffsetResponse,
    TopicQueueRequest,
    TopicRequest,
)
from tanist.protocol.headers.offsets import (
    ConsumerOffsetResponse,
    EarliestStoreTimeResponse,
    GetMaxOffsetRequest,
    QueryConsumerOffsetRequest,
    SearchOffsetRequest,
)
from tanist.protocol.headers.reset import InvokeConsumerStatusRequest
from tanist.protocol.java_json import decode_java_json
from tanist.protocol.response_errors import ConsumerOffline, NotFound, TopicNotFound

_CLIENTS_TIMEOUT_S = 15.0
"""A broker asks clients for so long at most, and they are asked through it."""


class GroupReader:
    """Reads of one group and one topic."""

    def __init__(self, wire: Wire, places: Places, group: str) -> None:
        self._wire = wire
        self.places = places
        self.group = group
        self._addresses = {place.broker_name: place.address for place in places.brokers}

    async def facts(self, queues: Sequence[MessageQueue], *, at_ms: int | None = None) -> list[QueueFacts]:
        """What is known of these queues; with ``at_ms`` also the offsets of that time."""
        bounds = await self.bounds(self.places.topic)

        async def look(queue: MessageQueue) -> QueueFacts:
            known = bounds.get(queue) or await self._queue_bounds(queue)
            return QueueFacts(
                queue=queue,
                now=await self.offset(queue),
                min_offset=known.min_offset,
                max_offset=known.max_offset,
                oldest_ms=await self._oldest_ms(queue) if known.max_offset > known.min_offset else None,
                at_time=None if at_ms is None else await self.offset_at(queue, at_ms),
            )

        return await in_parallel(queues, look)

    async def offsets(
        self, queues: Sequence[MessageQueue], group: str | None = None
    ) -> dict[MessageQueue, int | None]:
        """Where the group stands now, or another one."""
        found = await in_parallel(queues, lambda queue: self.offset(queue, group))
        return dict(zip(queues, found, strict=True))

    async def offset(self, queue: MessageQueue, group: str | None = None) -> int | None:
        """The consumer offset in one queue; None if there is none."""
        header = QueryConsumerOffsetRequest(
            consumer_group=group or self.group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            set_zero_if_not_found=False,
        )
        try:
            answer = await self._ask(queue.broker_name, RequestCode.QUERY_CONSUMER_OFFSET, header)
        except NotFound:
            return None
        return answer.header(ConsumerOffsetResponse).consumer_offset

    async def bounds(self, topic: str) -> dict[MessageQueue, QueueStats]:
        """The bounds of all queues of a topic, as far as its brokers tell them in one answer."""

        async def look(place: Place) -> dict[MessageQueue, QueueStats]:
            try:
                answer = await self._ask(
                    place.broker_name, RequestCode.GET_TOPIC_STATS_INFO, TopicRequest(topic=topic)
                )
            except TopicNotFound:
                return {}
            return decode_java_json(answer.body, TopicStatsTable).offset_table

        tables = await in_parallel(self.places.brokers, look)
        return {queue: stats for table in tables for queue, stats in table.items()}

    async def connections(self) -> dict[str, ConsumerConnections | None]:
        """Who is connected, by broker name; None where nobody is."""

        async def look(place: Place) -> ConsumerConnections | None:
            header = ConsumerGroupRequest(consumer_group=self.group)
            try:
                answer = await self._ask(place.broker_name, RequestCode.GET_CONSUMER_CONNECTION_LIST, header)
            except ConsumerOffline:
                return None
            return decode_java_json(answer.body, ConsumerConnections)

        found = await in_parallel(self.places.brokers, look)
        return dict(zip(self.places.names, found, strict=True))

    async def stands(self, broker_name: str) -> dict[str, dict[MessageQueue, int]]:
        """Where the clients of one broker stand, by client id; nothing of those that do not tell."""
        header = InvokeConsumerStatusRequest(topic=self.places.topic, group=self.group)
        code = RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS
        try:
            answer = await self._ask(broker_name, code, header, timeout_s=_CLIENTS_TIMEOUT_S)
        except MQError:
            return {}
        table = decode_java_json(answer.body, ConsumerStatus).consumer_table
        return {client_id: dict(offsets) for client_id, offsets in table.items()}

    async def positions(self, broker_name: str) -> dict[MessageQueue, int]:
        """Where the member that has a queue stands in it: the least, should several say that they have it."""
        found: dict[MessageQueue, int] = {}
        for offsets in (await self.stands(broker_name)).values():
            for queue, offset in offsets.items():
                found[queue] = min(offset, found.get(queue, offset))
        return found

    async def is_orderly(self, broker_name: str, client_id: str) -> bool:
        """Whether a client says that it consumes in order. One that does not answer says nothing."""
        header = ConsumerRunningInfoRequest(consumer_group=self.group, client_id=client_id)
        try:
            answer = await self._ask(broker_name, RequestCode.GET_CONSUMER_RUNNING_INFO, header)
        except MQError:
            return False
        told = decode_java_json(answer.body, ConsumerRunningInfo).properties
        return told.get(PROP_CONSUME_ORDERLY, "").lower() == "true"

    async def _queue_bounds(self, queue: MessageQueue) -> QueueStats:
        low = await self._ask(
            queue.broker_name,
            RequestCode.GET_MIN_OFFSET,
            TopicQueueRequest(topic=queue.topic, queue_id=queue.queue_id),
        )
        high = await self._ask(
            queue.broker_name,
            RequestCode.GET_MAX_OFFSET,
            GetMaxOffsetRequest(topic=queue.topic, queue_id=queue.queue_id),
        )
        return QueueStats(
            min_offset=low.header(QueueOffsetResponse).queue_offset,
            max_offset=high.header(QueueOffsetResponse).queue_offset,
        )

    async def _oldest_ms(self, queue: MessageQueue) -> int | None:
        header = TopicQueueRequest(topic=queue.topic, queue_id=queue.queue_id)
        answer = await self._ask(queue.broker_name, RequestCode.GET_EARLIEST_MSG_STORETIME, header)
        found = answer.header(EarliestStoreTimeResponse).timestamp_ms
        return found if found >= 0 else None

    async def offset_at(self, queue: MessageQueue, at_ms: int) -> int:
        header = SearchOffsetRequest(topic=queue.topic, queue_id=queue.queue_id, timestamp_ms=at_ms)
        answer = await self._ask(queue.broker_name, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
        return answer.header(QueueOffsetResponse).queue_offset

    async def _ask(
        self, broker_name: str, code: RequestCode, header: Header, *, timeout_s: float | None = None
    ) -> Command:
        return await self._wire.ask(
            self._addresses[broker_name], Command.request(code, header), timeout_s=timeout_s
        )


def model_of(connections: Iterable[ConsumerConnections | None]) -> frozenset[MessageModel]:
    """How those who are online say that the group consumes."""
    return frozenset(each.message_model for each in connections if each and each.message_model)
