"""All consumer groups of one broker. Changes are made as those of topics are: saved, then shown whole.

A slave takes its master's over as it does the topics.
"""

import logging
from collections.abc import Callable, Iterable

import msgspec

from tanist.broker.settings import BrokerSettings
from tanist.clock import Clock
from tanist.errors import ResponseError
from tanist.model.data_version import DataVersion
from tanist.model.groups import TOOLS_CONSUMER_GROUP, TRANSACTION_GROUP, SubscriptionGroupConfig
from tanist.model.names import group_fault
from tanist.protocol.bodies.sync import SubscriptionGroupTable
from tanist.protocol.codes import ResponseCode
from tanist.store.config_table import ConfigTable

_log = logging.getLogger(__name__)

Watcher = Callable[[Iterable[str]], None]
"""Is told the names of what changed."""

SYSTEM_GROUPS = (
    TOOLS_CONSUMER_GROUP,
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
    TRANSACTION_GROUP,
)
"""The groups a broker makes at its first start, as RocketMQ's SubscriptionGroupManager does."""


class GroupTable:
    """The groups by name. Make one with ``GroupTable.open``."""

    def __init__(
        self,
        file: ConfigTable[SubscriptionGroupTable],
        table: SubscriptionGroupTable,
        settings: BrokerSettings,
        clock: Clock,
    ) -> None:
        self._file = file
        self._clock = clock
        self.settings = settings
        self.watchers: list[Watcher] = []
        """Told of every change that this broker makes."""
        self.table = table
        """All groups with their version. Never changed, only replaced."""

    @classmethod
    def open(
        cls, file: ConfigTable[SubscriptionGroupTable], settings: BrokerSettings, clock: Clock
    ) -> "GroupTable":
        """Load the groups and add the system groups that a master lacks. What was saved is left as it is."""
        groups = cls(file, file.load(), settings, clock)
        groups.use(settings)
        return groups

    def use(self, settings: BrokerSettings) -> None:
        """Go on with these settings. A slave's system groups come from its master, like all others."""
        self.settings = settings
        missing = {
            name: SubscriptionGroupConfig(group_name=name)
            for name in SYSTEM_GROUPS
            if name not in self.table.groups
        }
        if missing and not settings.is_slave:
            self._replace(self.table.groups | missing, self.table.forbidden_table, missing)

    @property
    def data_version(self) -> DataVersion:
        return self.table.data_version

    def find(self, group: str) -> SubscriptionGroupConfig | None:
        return self.table.groups.get(group)

    def ensure(self, group: str) -> SubscriptionGroupConfig | None:
        """The group, made if groups may come by themselves; None if it is not there and can not come."""
        found = self.find(group)
        return found if found is not None else self.ensure_several([group], max_new=1).get(group)

    def ensure_several(self, groups: Iterable[str], *, max_new: int) -> dict[str, SubscriptionGroupConfig]:
        """Those of the groups that are there or can come, in one change. At most ``max_new`` are made."""
        known: dict[str, SubscriptionGroupConfig] = {}
        new: dict[str, SubscriptionGroupConfig] = {}
        room = min(max_new, self.settings.max_subscription_group_count - len(self.table.groups))
        if not self.settings.auto_create_subscription_group or self.settings.is_slave:
            # The groups of a slave are those of its master.
            room = 0
        for group in groups:
            if (found := self.find(group)) is not None:
                known[group] = found
            elif len(new) < room and group_fault(group) is None:
                new[group] = SubscriptionGroupConfig(group_name=group)
        if new:
            self._replace(self.table.groups | new, self.table.forbidden_table, new)
            _log.info("groups created count=%d first=%s", len(new), next(iter(new)))
        return known | new

    def require(self, group: str) -> SubscriptionGroupConfig:
        """The group, made if need be. Raises ResponseError if it is not there and can not come."""
        found = self.find(group) or self.ensure(group)
        if found is None:
            raise ResponseError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, self.absence(group))
        return found

    def absence(self, group: str) -> str:
        """Why a group is not there and was not made, for whoever asked for it."""
        if self.settings.is_slave:
            return f"group {group} does not exist, and a slave makes none; create it at the master"
        if not self._has_room(1):
            return self._no_room(group)
        return f"group {group} does not exist; create it first"

    def put(self, *configs: SubscriptionGroupConfig) -> None:
        """Create groups, or give some new settings, all in one change or none at all.

        The same settings again are no change.
        """
        changed = {config.group_name: config for config in configs if self.find(config.group_name) != config}
        if not changed:
            return
        new = [name for name in changed if self.find(name) is None]
        if new and not self._has_room(len(new)):
            raise ResponseError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, self._no_room(new[-1]))
        self._replace(self.table.groups | changed, self.table.forbidden_table, changed)
        for config in changed.values():
            _log.info(
                "group changed group=%s is_consume_enabled=%s retry_max_times=%d",
                config.group_name,
                config.is_consume_enabled,
                config.retry_max_times,
            )

    def delete(self, group: str) -> bool:
        """Forget a group and what it was forbidden; False if there was none."""
        if group not in self.table.groups:
            return False
        self._replace(
            {name: config for name, config in self.table.groups.items() if name != group},
            {name: topics for name, topics in self.table.forbidden_table.items() if name != group},
            [group],
        )
        _log.info("group deleted group=%s", group)
        return True

    def follow(self, table: SubscriptionGroupTable) -> bool:
        """Take the master's groups over as they are; False, and nothing to save, if they have our version."""
        if table.data_version == self.data_version:
            return False
        self.table = table
        return True

    def start_save(self) -> Callable[[], None] | None:
        """The disk's part of saving what was taken over, for another thread; None if nothing was."""
        return self._file.start_save(self.table)

    def _has_room(self, count: int) -> bool:
        """Whoever pulls in ever new names must not fill the memory."""
        return len(self.table.groups) + count <= self.settings.max_subscription_group_count

    def _no_room(self, group: str) -> str:
        most = self.settings.max_subscription_group_count
        return (
            f"group {group} can not be created: there are {len(self.table.groups)} already, and "
            f"maxSubscriptionGroupCount allows {most}; delete some or raise it"
        )

    def _replace(
        self,
        groups: dict[str, SubscriptionGroupConfig],
        forbidden: dict[str, dict[str, int]],
        changed: Iterable[str],
    ) -> None:
        table = msgspec.structs.replace(
            self.table,
            groups=groups,
            forbidden_table=forbidden,
            data_version=self.data_version.bumped(now_ms=self._clock.now_ms()),
        )
        self._file.save(table)
        self.table = table
        for watcher in self.watchers:
            watcher(changed)
