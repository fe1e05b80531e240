"""All topics of one broker, and the version by which name servers and slaves notice a change.

A change is saved first and shown then, as a whole new table: whoever reads sees the old one or the
new one, and what was seen survives a crash. Every change has its own version.

A slave takes its master's table over with the master's version, and shows it first: what a crash takes
from it the master sends again.
"""

import logging
from collections.abc import Callable, Iterable

import msgspec

from tanist.broker.names import check_topic_name
from tanist.broker.settings import BrokerSettings
from tanist.broker.system_topics import system_topic_names, system_topics
from tanist.clock import Clock
from tanist.errors import ResponseError
from tanist.model.data_version import DataVersion
from tanist.model.names import topic_fault
from tanist.model.topics import (
    AUTO_CREATE_TOPIC,
    CHECK_MAX_TIME_TOPIC,
    INHERIT,
    SYSTEM_PREFIX,
    TopicConfig,
    dlq_topic,
    retry_topic,
)
from tanist.protocol.bodies.sync import TopicConfigTable
from tanist.protocol.codes import ResponseCode
from tanist.store.config_table import ConfigTable

_log = logging.getLogger(__name__)

Listener = Callable[[], None]
Watcher = Callable[[Iterable[str]], None]
"""Is told the names of what changed; of none if only the version did."""

_DEAD_LETTER_QUEUES = 1
_GIVEN_UP_QUEUES = 1


class TopicTable:
    """The topics by name. Make one with ``TopicTable.open``."""

    def __init__(
        self,
        file: ConfigTable[TopicConfigTable],
        table: TopicConfigTable,
        settings: BrokerSettings,
        clock: Clock,
    ) -> None:
        self._file = file
        self._clock = clock
        self.settings = settings
        self._listeners: list[Listener] = []
        self.watchers: list[Watcher] = []
        """Told of every change that this broker makes."""
        self.system_names = system_topic_names(settings)
        self.table = table
        """All topics with their version. Never changed, only replaced."""

    @classmethod
    def open(
        cls, file: ConfigTable[TopicConfigTable], settings: BrokerSettings, clock: Clock
    ) -> "TopicTable":
        """Load the topics and add the system topics that a master lacks. What was saved is left as it is."""
        topics = cls(file, file.load(), settings, clock)
        topics.use(settings)
        return topics

    def use(self, settings: BrokerSettings) -> None:
        """Go on with these settings, and with the system topics that they ask for.

        A slave's come from its master, like all others.
        """
        self.settings = settings
        if settings.is_slave:
            return
        missing = {
            topic.topic_name: topic
            for topic in system_topics(settings)
            if topic.topic_name not in self.table.topics
        }
        if missing:
            self._replace(self.table.topics | missing, missing)

    @property
    def data_version(self) -> DataVersion:
        return self.table.data_version

    def find(self, topic: str) -> TopicConfig | None:
        return self.table.topics.get(topic)

    def is_system(self, topic: str) -> bool:
        """Whether the topic is the broker's and not for operators to change."""
        return topic in self.system_names or topic.startswith(SYSTEM_PREFIX)

    def on_change(self, listener: Listener) -> None:
        """Have ``listener`` called after every change."""
        self._listeners.append(listener)

    def put(self, *configs: TopicConfig) -> None:
        """Create topics, or give some new settings, all in one change or none at all.

        The same settings again are no change.
        """
        changed = {config.topic_name: config for config in configs if self.find(config.topic_name) != config}
        if not changed:
            return
        self._check_room(changed)
        self._replace(self.table.topics | changed, changed)
        for config in changed.values():
            _log.info(
                "topic changed topic=%s read_queues=%d write_queues=%d perm=%d",
                config.topic_name,
                config.read_queue_count,
                config.write_queue_count,
                config.perm,
            )

    def touch(self) -> None:
        """Give the table a new version, because what it means to others has changed."""
        self._replace(self.table.topics, [])

    def use_epoch(self, epoch: int) -> None:
        """Give the table a new version, of a master's reign: that of a later reign is the newer one.

        Of two brokers that claim to be the master of one group name servers believe the later.
        """
        self._replace(self.table.topics, [], epoch=epoch)
        _log.info("topics have a version of a new epoch epoch=%d", epoch)

    def delete(self, topic: str) -> bool:
        """Forget a topic; False if there was none."""
        if topic not in self.table.topics:
            return False
        kept = {name: config for name, config in self.table.topics.items() if name != topic}
        self._replace(kept, [topic])
        _log.info("topic deleted topic=%s", topic)
        return True

    def follow(self, table: TopicConfigTable) -> bool:
        """Take the master's topics over as they are; False, and nothing to save, if they have our version."""
        if table.data_version == self.data_version:
            return False
        self.table = table
        self._tell()
        return True

    def start_save(self) -> Callable[[], None] | None:
        """The disk's part of saving what was taken over, for another thread; None if nothing was."""
        return self._file.start_save(self.table)

    def create_for_send(
        self, topic: str, *, default_topic: str, queue_count: int, sys_flag: int = 0
    ) -> TopicConfig | None:
        """The topic, which a first send creates from a template; None if the template does not allow it."""
        if (found := self.find(topic)) is not None:
            return found
        check_topic_name(topic)
        template = self._template(default_topic)
        if template is None:
            return None
        count = max(0, min(queue_count, template.write_queue_count))
        config = TopicConfig(
            topic_name=topic,
            read_queue_count=count,
            write_queue_count=count,
            perm=template.perm & ~INHERIT,
            topic_filter_type=template.topic_filter_type,
            topic_sys_flag=sys_flag,
        )
        self.put(config)
        return config

    def ensure_retry_topic(self, group: str, *, queue_count: int, sys_flag: int = 0) -> TopicConfig:
        """The topic of what a group has to consume again. Tools find a group by its route."""
        return self._ensure(retry_topic(group), queue_count, sys_flag)

    def add_several(self, configs: Iterable[TopicConfig], *, max_new: int) -> None:
        """Create topics that are not there, in one change: at most ``max_new``, and as many as have room."""
        new: dict[str, TopicConfig] = {}
        room = min(max_new, self.settings.max_topic_count - len(self.table.topics))
        for config in configs:
            if (
                len(new) < room
                and self.find(config.topic_name) is None
                and topic_fault(config.topic_name) is None
            ):
                new[config.topic_name] = config
        if new:
            self._replace(self.table.topics | new, new)
            _log.info("topics created count=%d first=%s", len(new), next(iter(new)))

    def ensure_dead_letter_topic(self, group: str) -> TopicConfig:
        """The topic of what a group gave up on."""
        return self._ensure(dlq_topic(group), _DEAD_LETTER_QUEUES, 0)

    def ensure_given_up_topic(self) -> TopicConfig:
        """The topic of transactions that nobody ended."""
        return self._ensure(CHECK_MAX_TIME_TOPIC, _GIVEN_UP_QUEUES, 0)

    def _ensure(self, topic: str, queue_count: int, sys_flag: int) -> TopicConfig:
        if (found := self.find(topic)) is not None:
            return found
        check_topic_name(topic)
        config = TopicConfig(
            topic_name=topic,
            read_queue_count=queue_count,
            write_queue_count=queue_count,
            topic_sys_flag=sys_flag,
        )
        self.put(config)
        return config

    def _check_room(self, topics: Iterable[str]) -> None:
        """Refuse one topic too many: whoever sends to ever new names must not fill the memory.

        The broker's own topics are few, and it can not do without them.
        """
        new = [topic for topic in topics if self.find(topic) is None and topic not in self.system_names]
        if new and len(self.table.topics) + len(new) > self.settings.max_topic_count:
            raise ResponseError(
                ResponseCode.TOPIC_NOT_EXIST,
                f"topic {new[-1]} can not be created: there are {len(self.table.topics)} already, and "
                f"maxTopicCount allows {self.settings.max_topic_count}; delete some or raise it",
            )

    def _template(self, default_topic: str) -> TopicConfig | None:
        # An earlier start may have left the template behind although topics are not to be created now.
        if default_topic == AUTO_CREATE_TOPIC and not self.settings.auto_create_topic_enable:
            return None
        template = self.find(default_topic)
        return template if template is not None and template.perm & INHERIT else None

    def _replace(
        self, topics: dict[str, TopicConfig], changed: Iterable[str], *, epoch: int | None = None
    ) -> None:
        table = msgspec.structs.replace(
            self.table,
            topics=topics,
            data_version=self.data_version.bumped(now_ms=self._clock.now_ms(), state_version=epoch),
        )
        self._file.save(table)
        self.table = table
        for watcher in self.watchers:
            watcher(changed)
        self._tell()

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()
