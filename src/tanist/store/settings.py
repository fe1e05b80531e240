"""The store's settings, under RocketMQ's names and with its defaults."""

import re
from enum import Enum
from typing import Annotated

import msgspec

from tanist.errors import ConfigError
from tanist.model.delay_levels import parse_delay_levels
from tanist.protocol.queue_entry import ENTRY_BYTES
from tanist.store.timer_log import MIN_FILE_BYTES

_MIN_SEGMENT_BYTES = 4096
_MOST = 1 << 30
LONGEST_INTERVAL_MS = 600_000
"""The most of every interval: a slip must not put what is done so often to sleep for days."""
_LEAST = {
    "mapped_file_size_timer_log": MIN_FILE_BYTES,
    "max_hash_slot_num": 2,
    "max_index_num": 2,
    "max_message_size": 1,
    "flush_interval_commit_log": 1,
    "flush_commit_log_least_pages": 0,
    "flush_commit_log_thorough_interval": 1,
    "sync_flush_timeout": 1,
    "os_page_cache_busy_time_out_mills": 1,
    "flush_interval_consume_queue": 1,
    "file_reserved_time": 0,
    "delete_file_batch_max": 1,
    "clean_resource_interval": 1,
    "scrub_bytes_per_second": 0,
}
"""The least value of each number that is a count, a size or a time."""
_INTERVALS = frozenset(
    {
        "flush_interval_commit_log",
        "flush_commit_log_thorough_interval",
        "flush_interval_consume_queue",
        "clean_resource_interval",
    }
)
"""Of these the most is less than of the others."""
_HOUR = re.compile("[0-9]{1,2}")
_EARLY_RATIO_RANGE = (10, 95)
_WARNING_RATIO_RANGE = (35, 90)
_FORCIBLE_RATIO_RANGE = (30, 85)

REBUILD_INDEXES = (
    "stop the broker and delete the folders consumequeue and index: they are built again from the log"
)
"""The way out of an index that does not fit its settings, or itself."""


class FlushMode(Enum):
    """When a send may be answered: as soon as it is written, or when it is on disk."""

    ASYNC_FLUSH = "ASYNC_FLUSH"
    SYNC_FLUSH = "SYNC_FLUSH"


class StoreSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Sizes, times and limits of one store. A wrong value stops the start."""

    mapped_file_size_commit_log: int = 1 << 30
    """The size of one file of the log, in bytes: a multiple of 512."""
    mapped_file_size_consume_queue: int = 300_000 * ENTRY_BYTES
    """The size of one file of a queue, in bytes."""
    mapped_file_size_timer_log: int = 100 << 20
    """The size of one file of the timer, in bytes."""
    max_hash_slot_num: int = 5_000_000
    """Slots of one file of the key index."""
    max_index_num: int = 20_000_000
    """Entries of one file of the key index."""
    max_message_size: int = 4 << 20
    """The longest message, in bytes."""
    message_delay_level: str = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
    """The delays of the levels, the first one level 1."""
    flush_disk_type: FlushMode = FlushMode.ASYNC_FLUSH
    """Whether a send is answered when it is written (``ASYNC_FLUSH``) or on disk (``SYNC_FLUSH``)."""
    flush_interval_commit_log: int = 500
    """How often the log is flushed, in milliseconds."""
    flush_commit_log_least_pages: int = 4
    """Less than so many new pages wait for a later flush."""
    flush_commit_log_thorough_interval: int = 10_000
    """After so long all is flushed, in milliseconds."""
    sync_flush_timeout: int = 5_000
    """How long a send waits for the disk, in milliseconds."""
    os_page_cache_busy_time_out_mills: int = 1_000
    """A flush that lasts longer than this has sends refused."""
    flush_interval_consume_queue: int = 1_000
    """How often queues are flushed, in milliseconds."""
    file_reserved_time: int = 72
    """How long files of the log are kept, in hours."""
    delete_when: str = "04"
    """The local hours in which old files go, separated by ``;``."""
    delete_file_batch_max: int = 10
    """How many files of the log go in one round at most."""
    clean_resource_interval: int = 10_000
    """How often the store looks for files that may go, in milliseconds."""
    disk_max_used_space_ratio: int = 75
    """Percent, taken as 10 to 95: a disk fuller than this lets old files go at any hour."""
    disk_space_warning_level_ratio: int = 90
    """Percent, taken as 35 to 90: on a disk fuller than this nothing is written."""
    disk_space_clean_forcibly_ratio: int = 85
    """Percent, taken as 30 to 85: on a disk fuller than this files go before their time."""
    clean_file_forcibly_enable: bool = True
    """Whether they do."""
    scrub_bytes_per_second: int = 20 << 20
    """Of what is on disk so much is read again a second, to find what was damaged there; 0: nothing is."""
    access_message_in_memory_max_ratio: Annotated[int, msgspec.Meta(ge=0, le=100)] = 40
    """Percent of the machine's memory that the end of the log is taken to fill."""
    enable_dleger_commit_log: bool = msgspec.field(name="enableDLegerCommitLog", default=False)
    """Never true: a log kept by RocketMQ's Raft has another form, and replicates itself."""

    def __post_init__(self) -> None:
        if self.enable_dleger_commit_log:
            raise ConfigError(
                "enableDLegerCommitLog",
                "true",
                "false: Tanist keeps no Raft log. For a master that is elected set enableControllerMode=true",
            )
        size = self.mapped_file_size_commit_log
        if size < _MIN_SEGMENT_BYTES or size % 512:
            raise ConfigError(
                "mappedFileSizeCommitLog", size, f"a multiple of 512 from {_MIN_SEGMENT_BYTES} on"
            )
        if self.mapped_file_size_consume_queue < ENTRY_BYTES:
            raise ConfigError(
                "mappedFileSizeConsumeQueue", self.mapped_file_size_consume_queue, f"{ENTRY_BYTES} or more"
            )
        for name, least in _LEAST.items():
            value = getattr(self, name)
            most = LONGEST_INTERVAL_MS if name in _INTERVALS else _MOST
            if not least <= value <= most:
                raise ConfigError(_KEYS[name], value, f"{least} to {most}")
        if not self.delete_hours or not all(0 <= hour < 24 for hour in self.delete_hours):
            raise ConfigError("deleteWhen", self.delete_when, "hours from 00 to 23, separated by ;")
        try:
            parse_delay_levels(self.message_delay_level)
        except ValueError as error:
            raise ConfigError("messageDelayLevel", self.message_delay_level, str(error)) from error

    @property
    def delay_levels(self) -> tuple[int, ...]:
        """How long each delay level waits, in milliseconds, the first level first."""
        return parse_delay_levels(self.message_delay_level)

    @property
    def queue_file_bytes(self) -> int:
        """The size of a consume queue's files: whole entries, rounded up as RocketMQ does."""
        return -(-self.mapped_file_size_consume_queue // ENTRY_BYTES) * ENTRY_BYTES

    @property
    def delete_hours(self) -> frozenset[int]:
        """The local hours in which old files are deleted; empty when the setting is no list of hours."""
        hours = [hour for part in self.delete_when.split(";") if (hour := part.strip(" "))]
        return frozenset(map(int, hours)) if all(map(_HOUR.fullmatch, hours)) else frozenset()

    @property
    def early_ratio(self) -> float:
        """Above this share of the disk old files are deleted whatever the hour."""
        return _clamped(self.disk_max_used_space_ratio, _EARLY_RATIO_RANGE)

    @property
    def warning_ratio(self) -> float:
        """Above this share of the disk writes are refused."""
        return _clamped(self.disk_space_warning_level_ratio, _WARNING_RATIO_RANGE)

    @property
    def forcible_ratio(self) -> float:
        """Above this share of the disk files are deleted whatever their age."""
        return _clamped(self.disk_space_clean_forcibly_ratio, _FORCIBLE_RATIO_RANGE)


_KEYS = {field.name: field.encode_name for field in msgspec.structs.fields(StoreSettings)}


def _clamped(percent: int, bounds: tuple[int, int]) -> float:
    low, high = bounds
    return min(max(percent, low), high) / 100
