"""Which files of the log may go: a pure decision from their age, the hour and how full the disk is.

RocketMQ's rules: nightly, or when the disk passes ``diskMaxUsedSpaceRatio``, files older than
``fileReservedTime`` go; above ``diskSpaceCleanForciblyRatio`` any may go; above
``diskSpaceWarningLevelRatio`` writes are refused as well. Oldest first, never the last one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tanist.store.settings import StoreSettings

_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class RetentionPlan:
    """What one round of cleaning does."""

    delete_count: int
    """How many of the oldest files go."""
    refusal: str | None
    """Why writes are refused until the disk has room again, or None."""


def plan_retention(
    settings: StoreSettings,
    *,
    modified_ms: Sequence[int],
    now_ms: int,
    local_hour: int,
    used_ratio: float,
    is_asked: bool = False,
) -> RetentionPlan:
    """``modified_ms`` holds when each file was changed last, the oldest file first."""
    is_full = used_ratio > settings.warning_ratio
    is_forced = settings.clean_file_forcibly_enable and used_ratio > min(
        settings.forcible_ratio, settings.warning_ratio
    )
    is_time = local_hour in settings.delete_hours or used_ratio > settings.early_ratio or is_asked
    oldest_kept_ms = now_ms - settings.file_reserved_time * _HOUR_MS
    count = 0
    if is_time or is_forced:
        for changed_ms in modified_ms[: min(len(modified_ms) - 1, settings.delete_file_batch_max)]:
            if not is_forced and changed_ms > oldest_kept_ms:
                break
            count += 1
    refusal = None
    if is_full:
        refusal = (
            f"the disk is {used_ratio:.0%} full, more than the {settings.warning_ratio:.0%} of "
            "diskSpaceWarningLevelRatio; free some space, writes go on by themselves"
        )
    return RetentionPlan(max(count, 0), refusal)
