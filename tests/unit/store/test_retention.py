import msgspec
import pytest

from tanist.store import StoreSettings
from tanist.store.retention import plan_retention

HOUR_MS = 3_600_000
NOW_MS = 1_000 * HOUR_MS
SETTINGS = StoreSettings()


def _delete_count(
    *ages_h: float,
    local_hour: int = 4,
    used_ratio: float = 0.5,
    is_asked: bool = False,
    settings: StoreSettings = SETTINGS,
) -> int:
    return plan_retention(
        settings,
        modified_ms=[int(NOW_MS - age_h * HOUR_MS) for age_h in ages_h],
        now_ms=NOW_MS,
        local_hour=local_hour,
        used_ratio=used_ratio,
        is_asked=is_asked,
    ).delete_count


def _refusal(used_ratio: float, settings: StoreSettings = SETTINGS) -> str | None:
    return plan_retention(
        settings, modified_ms=[0], now_ms=NOW_MS, local_hour=0, used_ratio=used_ratio
    ).refusal


def test_files_go_after_seventy_two_hours() -> None:
    assert _delete_count(100, 72, 71.9, 71, 1) == 2


def test_a_file_behind_one_that_stays_stays_too() -> None:
    assert _delete_count(100, 1, 100, 1) == 1


@pytest.mark.parametrize("used_ratio", [0.5, 0.99])
def test_the_last_file_never_goes(used_ratio: float) -> None:
    assert _delete_count(1000, used_ratio=used_ratio) == 0
    assert _delete_count(1000, 1000, 1000, used_ratio=used_ratio) == 2


def test_an_empty_log_has_nothing_to_delete() -> None:
    assert _delete_count() == 0


def test_old_files_wait_for_the_hour() -> None:
    assert _delete_count(100, 1, local_hour=3) == 0
    assert _delete_count(100, 1, local_hour=4) == 1
    twice = msgspec.structs.replace(SETTINGS, delete_when="04;16")
    assert _delete_count(100, 1, local_hour=16, settings=twice) == 1


@pytest.mark.parametrize(("percent", "ratio"), [(-5, 0.1), (10, 0.1), (75, 0.75), (100_000, 0.95)])
def test_the_share_of_the_disk_at_which_old_files_go_is_held_to_rocketmqs_bounds(
    percent: int, ratio: float
) -> None:
    settings = msgspec.structs.replace(SETTINGS, disk_max_used_space_ratio=percent)
    assert settings.early_ratio == ratio


def test_old_files_do_not_wait_when_asked_or_when_the_disk_fills() -> None:
    assert _delete_count(100, 1, 1, local_hour=3, is_asked=True) == 1
    assert _delete_count(100, 1, 1, local_hour=3, used_ratio=0.75) == 0
    assert _delete_count(100, 1, 1, local_hour=3, used_ratio=0.76) == 1


def test_a_disk_that_is_nearly_full_loses_files_of_any_age() -> None:
    assert _delete_count(2, 1, 0, local_hour=3, used_ratio=0.85) == 0
    assert _delete_count(2, 1, 0, local_hour=3, used_ratio=0.86) == 2


def test_young_files_are_spared_if_the_operator_says_so() -> None:
    gentle = msgspec.structs.replace(SETTINGS, clean_file_forcibly_enable=False)
    assert _delete_count(100, 1, 0, local_hour=3, used_ratio=0.99, settings=gentle) == 1


def test_no_more_than_ten_files_go_at_once() -> None:
    assert _delete_count(*[100] * 30) == 10
    assert _delete_count(*[0] * 30, used_ratio=0.95) == 10


def test_writes_are_refused_above_the_warning_level_with_the_reason() -> None:
    assert _refusal(0.90) is None
    refusal = _refusal(0.91)
    assert refusal is not None
    assert "91%" in refusal
    assert "diskSpaceWarningLevelRatio" in refusal


def test_a_lower_warning_level_counts() -> None:
    careful = msgspec.structs.replace(SETTINGS, disk_space_warning_level_ratio=40)
    assert _refusal(0.41, careful) is not None
    assert _delete_count(1, 1, local_hour=3, used_ratio=0.41, settings=careful) == 1
