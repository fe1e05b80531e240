"""Keys and values by namespace: what operators tell all clients and brokers. Pure."""

import msgspec

from tanist.protocol.bodies import Body

ORDER_TOPIC_NAMESPACE = "ORDER_TOPIC_CONFIG"
"""Topic to ``broker:queues;broker:queues``: where a topic whose order matters has its queues."""


class KVConfig(Body, frozen=True, kw_only=True):
    """The whole table. It never changes: a change makes another one."""

    config_table: dict[str, dict[str, str]] = msgspec.field(default={})

    def value(self, namespace: str, key: str) -> str | None:
        return self.config_table.get(namespace, {}).get(key)

    def values(self, namespace: str) -> dict[str, str] | None:
        """All of a namespace, or None if nothing was ever put there."""
        return self.config_table.get(namespace)

    def with_value(self, namespace: str, key: str, value: str) -> "KVConfig":
        return self._with(namespace, {**self.config_table.get(namespace, {}), key: value})

    def without(self, namespace: str, key: str) -> "KVConfig":
        """The table without a key, itself if it has no such key. An emptied namespace stays."""
        values = self.config_table.get(namespace, {})
        if key not in values:
            return self
        return self._with(namespace, {name: value for name, value in values.items() if name != key})

    def _with(self, namespace: str, values: dict[str, str]) -> "KVConfig":
        return KVConfig(config_table={**self.config_table, namespace: values})
