import msgspec
import pytest

from tanist.errors import ConfigError
from tanist.store import FlushMode, StoreSettings


@pytest.mark.behaviour("S1-61")
def test_a_segment_has_one_gibibyte_by_default() -> None:
    assert StoreSettings().mapped_file_size_commit_log == 1024**3


@pytest.mark.behaviour("S1-2")
def test_a_log_kept_by_raft_is_refused_so_that_nothing_else_replicates_it() -> None:
    with pytest.raises(ConfigError, match="enableControllerMode=true"):
        StoreSettings(enable_dleger_commit_log=True)


def test_the_other_files_have_rocketmqs_sizes_by_default() -> None:
    settings = StoreSettings()
    assert settings.queue_file_bytes == 6_000_000


def test_the_size_of_a_queues_files_is_rounded_up_to_whole_entries() -> None:
    assert StoreSettings(mapped_file_size_consume_queue=41).queue_file_bytes == 60
    assert StoreSettings(mapped_file_size_consume_queue=40).queue_file_bytes == 40


def test_settings_are_read_under_rocketmqs_names() -> None:
    settings = msgspec.convert(
        {"mappedFileSizeCommitLog": 8192, "flushDiskType": "SYNC_FLUSH", "deleteWhen": "02;14"}, StoreSettings
    )
    assert settings.mapped_file_size_commit_log == 8192
    assert settings.flush_disk_type is FlushMode.SYNC_FLUSH
    assert settings.delete_hours == {2, 14}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("mappedFileSizeCommitLog", 4095),
        ("mappedFileSizeCommitLog", 4097),
        ("mappedFileSizeCommitLog", -4096),
        ("mappedFileSizeConsumeQueue", 19),
        ("maxHashSlotNum", 1),
        ("maxIndexNum", 1),
        ("maxIndexNum", (1 << 30) + 1),
        ("maxMessageSize", 0),
        ("flushIntervalCommitLog", 0),
        ("flushIntervalConsumeQueue", -1),
        ("flushCommitLogLeastPages", -1),
        ("syncFlushTimeout", 0),
        ("cleanResourceInterval", 0),
        ("cleanResourceInterval", 600_001),
        ("flushIntervalCommitLog", 600_001),
        ("flushCommitLogThoroughInterval", 600_001),
        ("flushIntervalConsumeQueue", 600_001),
        ("deleteWhen", "9" * 5_000),
        ("deleteWhen", "04;\r05"),
        ("deleteWhen", "٤"),
        ("deleteFileBatchMax", 0),
        ("fileReservedTime", -1),
        ("deleteWhen", ""),
        ("deleteWhen", ";"),
        ("deleteWhen", "24"),
        ("deleteWhen", "4am"),
        ("deleteWhen", "-1"),
    ],
)
def test_a_wrong_value_is_refused_with_its_key(key: str, value: object) -> None:
    with pytest.raises(ConfigError, match=key) as caught:
        msgspec.convert({key: value}, StoreSettings)
    assert (caught.value.key, caught.value.value) == (key, value)


def test_the_ratios_at_which_the_disk_is_protected_are_clamped() -> None:
    low = StoreSettings(disk_space_warning_level_ratio=1, disk_space_clean_forcibly_ratio=1)
    high = StoreSettings(disk_space_warning_level_ratio=99, disk_space_clean_forcibly_ratio=99)
    assert (low.warning_ratio, low.forcible_ratio) == (0.35, 0.30)
    assert (high.warning_ratio, high.forcible_ratio) == (0.90, 0.85)
