"""Where topics live, as one client knows it. Pure.

A route is replaced as a whole; an old one stays until a new one comes, so that a name server that is
gone, or has just started and knows nothing yet, stops nobody.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tanist.model.route import MASTER_ID, MessageQueue, TopicRouteData

_MAX_REMEMBERED = 8
"""How many addresses of a broker are kept, also those that it has no more."""


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
    def masterless(self) -> frozenset[str]:
        """The brokers that would take messages, if one of their replicas were master."""
        return frozenset(
            offer.broker_name
            for offer in self.data.queue_datas
            if offer.is_writable
            and (replicas := self.replicas.get(offer.broker_name))
            and MASTER_ID not in replicas
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


@dataclass(frozen=True, slots=True)
class _Reader:
    """Who is read instead of the master that a route names."""

    address: str
    routed: Mapping[int, str]
    """What the route said when it was named. A route that says something else knows better."""


class RouteTable:
    """All routes that a client has, and the brokers they name."""

    def __init__(self) -> None:
        self._routes: dict[str, TopicRoute] = {}
        self._routed: dict[str, dict[int, str]] = {}
        self._replicas: dict[str, dict[int, str]] = {}
        self._is_led = False
        """Whether a replica said of a master what no route says."""
        self._readers: dict[str, _Reader] = {}
        self._terms: dict[str, int] = {}
        """The newest slave consumption of each broker that was heard of."""
        self._remembered: dict[str, dict[str, None]] = {}

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
        is_news = before is None or before.data != data
        if is_news:
            # At the end: the newest route knows best.
            self._routes.pop(topic, None)
            self._routes[topic] = TopicRoute(topic, data)
        if is_news or self._is_led:
            # Brokers that no route names any more are forgotten, and so is what others said of a master.
            self._routed = {
                name: addrs for route in self._routes.values() for name, addrs in route.replicas.items()
            }
            self._readers = {
                name: reader
                for name, reader in self._readers.items()
                if self._routed.get(name, {}) == reader.routed
            }
            self._replicas = self._routed | {
                name: _led_by(reader.address, reader.routed) for name, reader in self._readers.items()
            }
            self._is_led = False
            for name, addrs in self._routed.items():
                self._remember(name, *addrs.values())
        return is_news

    def believe(self, broker_name: str, master: str) -> None:
        """A replica says that its master is at this address. It counts until the next route comes."""
        known = self._replicas.get(broker_name, {})
        self._replicas = {**self._replicas, broker_name: _led_by(master, known)}
        self._is_led = True

    def believe_reader(self, broker_name: str, reader: str, *, term: int, is_sure: bool = False) -> bool:
        """Somebody says that this replica is read, in this term; False if something newer is known.

        It takes the master's place until a route says something else than now. ``is_sure`` is for what the
        reader says of itself, which counts also if terms were counted anew.
        """
        if term < self.term_of(broker_name) and not is_sure:
            return False
        self._terms[broker_name] = term
        self._remember(broker_name, reader)
        if self.master_of(broker_name) != reader:
            routed = self._routed.get(broker_name, {})
            self._readers[broker_name] = _Reader(reader, routed)
            self._replicas = {**self._replicas, broker_name: _led_by(reader, routed)}
        return True

    def term_of(self, broker_name: str) -> int:
        """The newest slave consumption of the broker that was heard of; 0 if there was none."""
        return self._terms.get(broker_name, 0)

    def addresses_of(self, broker_name: str) -> list[str]:
        """All addresses of a broker's replicas: those of its route, then those that it had before."""
        known = self._replicas.get(broker_name, {})
        in_order = [known[broker_id] for broker_id in sorted(known)]
        return list(dict.fromkeys((*in_order, *reversed(self._remembered.get(broker_name, {})))))

    def topic_of(self, broker_name: str) -> str | None:
        """A topic whose route names the broker."""
        named = (topic for topic, route in self._routes.items() if broker_name in route.replicas)
        return next(named, None)

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

    def _remember(self, broker_name: str, *addresses: str) -> None:
        """Keep addresses, the last ones at the end; the oldest ones are forgotten if they are too many."""
        kept = self._remembered.setdefault(broker_name, {})
        for address in addresses:
            kept.pop(address, None)
            kept[address] = None
        for oldest in list(kept)[:-_MAX_REMEMBERED]:
            del kept[oldest]


def _led_by(master: str, known: Mapping[int, str]) -> dict[int, str]:
    """The replicas with this one as the master; the one that was is at no known id then."""
    slaves = {id_: addr for id_, addr in known.items() if id_ != MASTER_ID and addr != master}
    return {MASTER_ID: master, **slaves}
