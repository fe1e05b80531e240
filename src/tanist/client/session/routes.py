"""Where topics live, as one client knows it. Pure.

A route is replaced as a whole; an old one stays until a new one comes, so that a name server that is
gone, or has just started and knows nothing yet, stops nobody.
"""

from collections.abc import Mapping
from functools import cached_property

from tanist.model.route import MASTER_ID, MessageQueue, TopicRouteData


class TopicRoute:
    """One topic's queues, as its route gives them."""

    def __init__(self, topic: str, data: TopicRouteData) -> None:
        self.topic = topic
        self.data = data

    @cached_property
    def replicas(self) -> dict[str, dict[int, str]]:
        """The addresses by broker name and broker id."""
        return {broker.broker_name: dict(broker.broker_addrs) for broker in self.data.broker_datas}

    @cached_property
    def publish_queues(self) -> tuple[MessageQueue, ...]:
        """The queues that take messages: those of writable topics on brokers that have a master."""
        if self.data.order_topic_conf:
            return self._ordered_queues(self.data.order_topic_conf)
        return tuple(
            MessageQueue(topic=self.topic, broker_name=offer.broker_name, queue_id=queue_id)
            for offer in sorted(self.data.queue_datas, key=lambda offer: offer.broker_name)
            if offer.is_writable and MASTER_ID in self.replicas.get(offer.broker_name, {})
            for queue_id in range(offer.write_queue_count)
        )

    @cached_property
    def subscribe_queues(self) -> tuple[MessageQueue, ...]:
        """The queues that messages are read from, in the order that all clients sort them in."""
        return tuple(
            sorted(
                MessageQueue(topic=self.topic, broker_name=offer.broker_name, queue_id=queue_id)
                for offer in self.data.queue_datas
                if offer.is_readable
                for queue_id in range(offer.read_queue_count)
            )
        )

    def _ordered_queues(self, config: str) -> tuple[MessageQueue, ...]:
        """The queues of ``broker:queues;broker:queues``, which stay the same while a broker is away."""
        queues: list[MessageQueue] = []
        for part in config.split(";"):
            broker_name, _, count = part.partition(":")
            if broker_name and count.isdecimal():
                queues += (
                    MessageQueue(topic=self.topic, broker_name=broker_name, queue_id=queue_id)
                    for queue_id in range(int(count))
                )
        return tuple(queues)


class RouteTable:
    """All routes that a client has, and the brokers they name."""

    def __init__(self) -> None:
        self._routes: dict[str, TopicRoute] = {}
        self._replicas: dict[str, dict[int, str]] = {}

    @property
    def topics(self) -> list[str]:
        return list(self._routes)

    @property
    def replicas(self) -> Mapping[str, Mapping[int, str]]:
        """Every broker's addresses by broker id, under its name."""
        return self._replicas

    def get(self, topic: str) -> TopicRoute | None:
        return self._routes.get(topic)

    def put(self, topic: str, data: TopicRouteData) -> bool:
        """Take a route in; whether it differs from the one before."""
        before = self._routes.get(topic)
        if before is not None and before.data == data:
            return False
        self._routes[topic] = TopicRoute(topic, data)
        # The newest route knows best; brokers that no route names any more are forgotten.
        newest_last = [route for route in self._routes.values() if route.topic != topic]
        newest_last.append(self._routes[topic])
        self._replicas = {name: addrs for route in newest_last for name, addrs in route.replicas.items()}
        return True

    def master_of(self, broker_name: str) -> str | None:
        """The address of a broker's master; None while there is none."""
        return self._replicas.get(broker_name, {}).get(MASTER_ID)

    def some_replica_of(self, broker_name: str) -> str | None:
        """The master's address or, while there is none, that of the replica with the least id."""
        addresses = self._replicas.get(broker_name)
        return addresses[min(addresses)] if addresses else None

    def addresses(self, *, only_masters: bool) -> list[str]:
        """The addresses of all brokers, each once."""
        found = (
            address
            for addrs in self._replicas.values()
            for broker_id, address in addrs.items()
            if broker_id == MASTER_ID or not only_masters
        )
        return list(dict.fromkeys(found))
