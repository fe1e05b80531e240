"""The version of a table of metadata, by which two brokers tell whose is newer."""

import msgspec

from tanist.model.integers import Int64


class DataVersion(msgspec.Struct, frozen=True, kw_only=True, order=True, rename="camel"):
    """Ordered by the master's epoch, then the count of changes, then the time of the last one.

    The fields stand in that order because it is the one comparisons use. RocketMQ 4 knows no
    ``state_version``: its versions read as epoch 0.
    """

    state_version: Int64 = 0
    counter: Int64 = 0
    timestamp_ms: Int64 = msgspec.field(name="timestamp", default=0)

    def bumped(self, *, now_ms: int, state_version: int | None = None) -> "DataVersion":
        """The version after one more change, made in the epoch ``state_version``, or in the same."""
        epoch = self.state_version if state_version is None else state_version
        return DataVersion(state_version=epoch, counter=self.counter + 1, timestamp_ms=now_ms)
