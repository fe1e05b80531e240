"""Which broker offers which queues of which topic. Pure."""

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from tanist.model.route import QueueData
from tanist.model.topics import Permission, TopicConfig

_NO_QUEUES: Mapping[str, QueueData] = {}
_WRITE_ADDED = int(Permission.READ | Permission.WRITE)


class TopicTable:
    """Topics by name, and in each the queues by broker name. A topic without queues is not there."""

    def __init__(self) -> None:
        self._queues: dict[str, dict[str, QueueData]] = {}
        self._mappings: dict[str, dict[str, dict[str, Any]]] = {}

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._queues)

    def queues(self, topic: str) -> Mapping[str, QueueData]:
        """What each broker offers of ``topic``."""
        return self._queues.get(topic, _NO_QUEUES)

    def mappings(self, topic: str) -> dict[str, dict[str, Any]] | None:
        """How a static topic of RocketMQ 5 maps its queues to brokers: carried along, not interpreted."""
        return self._mappings.get(topic)

    def of_brokers(self, broker_names: Collection[str]) -> frozenset[str]:
        """The topics of which one of these brokers offers something."""
        return frozenset(
            topic for topic, queues in self._queues.items() if not queues.keys().isdisjoint(broker_names)
        )

    def with_sys_flag(self, *, has: int, has_not: int = 0) -> frozenset[str]:
        """The topics by their TopicSysFlag bits. All brokers have the same, so the first is asked."""
        return frozenset(
            topic
            for topic, queues in self._queues.items()
            if (flag := next(iter(queues.values())).topic_sys_flag) & has and not flag & has_not
        )

    def take(self, broker_name: str, config: TopicConfig) -> None:
        """Take over a topic's settings from its broker."""
        queues = QueueData(
            broker_name=broker_name,
            read_queue_count=config.read_queue_count,
            write_queue_count=config.write_queue_count,
            perm=config.perm,
            topic_sys_flag=config.topic_sys_flag,
        )
        self.put(config.topic_name, queues)

    def put(self, topic: str, queues: QueueData) -> None:
        self._queues.setdefault(topic, {})[queues.broker_name] = queues

    def put_mapping(self, topic: str, broker_name: str, mapping: dict[str, Any]) -> None:
        self._mappings.setdefault(topic, {})[broker_name] = mapping

    def forget(self, topic: str, broker_names: Collection[str]) -> None:
        """These brokers offer nothing of ``topic`` any more."""
        for table in (self._queues, self._mappings):
            entries = table.get(topic)
            if entries is None:
                continue
            for broker_name in broker_names:
                entries.pop(broker_name, None)
            if not entries:
                del table[topic]

    def forget_topic(self, topic: str) -> None:
        self._queues.pop(topic, None)
        self._mappings.pop(topic, None)

    def forget_broker(self, broker_name: str) -> None:
        for topic in [*self._queues, *self._mappings]:
            self.forget(topic, (broker_name,))

    def wipe_write(self, broker_name: str) -> int:
        """Take the write permission from all topics of a broker, and say how many it has."""
        return self._change_perm(broker_name, keep=~int(Permission.WRITE), add=0)

    def add_write(self, broker_name: str) -> int:
        """Set all topics of a broker to read and write, and say how many it has.

        The other permission bits are lost, as in RocketMQ, until the broker sends a new version.
        """
        return self._change_perm(broker_name, keep=0, add=_WRITE_ADDED)

    def _change_perm(self, broker_name: str, *, keep: int, add: int) -> int:
        count = 0
        for queues in self._queues.values():
            offered = queues.get(broker_name)
            if offered is not None:
                queues[broker_name] = msgspec.structs.replace(offered, perm=offered.perm & keep | add)
                count += 1
        return count
