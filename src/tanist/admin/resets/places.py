"""Whom a reset is for: every broker of the topic's route, at its master, or at a slave while it has none."""

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tanist.admin.resets.refused import ResetRefused
from tanist.client.session.wire import Wire
from tanist.model.route import BrokerData, MessageQueue, TopicRouteData
from tanist.protocol.codes import RequestCode
from tanist.protocol.command import Command
from tanist.protocol.headers.nameserver import GetRouteRequest
from tanist.protocol.java_json import decode_java_json
from tanist.protocol.response_errors import TopicNotFound


class Place(NamedTuple):
    """One broker, and where to ask it."""

    broker_name: str
    address: str
    cluster: str


class Places(NamedTuple):
    """All brokers of a topic, and the queues that are read there."""

    topic: str
    brokers: list[Place]
    queues: list[MessageQueue]

    @property
    def clusters(self) -> list[str]:
        return sorted({place.cluster for place in self.brokers})

    @property
    def names(self) -> list[str]:
        return [place.broker_name for place in self.brokers]

    def queues_of(self, broker_name: str) -> list[MessageQueue]:
        return [queue for queue in self.queues if queue.broker_name == broker_name]


async def find_places(wire: Wire, name_server: str, topic: str) -> Places:
    """The brokers of a topic. Raises ResetRefused for a topic that the name server does not know."""
    header = GetRouteRequest(topic=topic, accept_standard_json_only=True)
    try:
        answer = await wire.ask(name_server, Command.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, header))
    except TopicNotFound as error:
        raise ResetRefused(
            f"the name server {name_server} knows no topic {topic}; see its name with mqadmin topicList"
        ) from error
    return places_of(topic, decode_java_json(answer.body, TopicRouteData))


def places_of(
    topic: str, route: TopicRouteData, choose: Callable[[Sequence[str]], str] = random.choice
) -> Places:
    """The brokers of a route by name, each at its master, or at a slave of the caller's choice."""
    readable = [offer for offer in route.queue_datas if offer.is_readable]
    names = {offer.broker_name for offer in readable}
    return Places(
        topic,
        [
            Place(broker.broker_name, _address(broker, choose), broker.cluster)
            for broker in sorted(route.broker_datas, key=lambda each: each.broker_name)
            if broker.broker_name in names and broker.broker_addrs
        ],
        [
            MessageQueue(topic=topic, broker_name=offer.broker_name, queue_id=queue_id)
            for offer in sorted(readable, key=lambda each: each.broker_name)
            for queue_id in range(offer.read_queue_count)
        ],
    )


def _address(broker: BrokerData, choose: Callable[[Sequence[str]], str]) -> str:
    return broker.master_addr or choose(sorted(broker.broker_addrs.values()))
