"""Versions of metadata tables."""

from itertools import pairwise

import msgspec

from tanist.model.data_version import DataVersion


def test_the_epoch_decides_before_the_counter_and_the_counter_before_the_time() -> None:
    versions = [
        DataVersion(state_version=0, counter=9, timestamp_ms=9),
        DataVersion(state_version=1, counter=0, timestamp_ms=5),
        DataVersion(state_version=1, counter=0, timestamp_ms=6),
        DataVersion(state_version=1, counter=1, timestamp_ms=0),
    ]
    assert all(before < after for before, after in pairwise(versions))


def test_a_change_counts_up_and_takes_the_time_and_the_epoch_it_is_made_in() -> None:
    version = DataVersion(state_version=2, counter=17, timestamp_ms=1000)
    assert version.bumped(now_ms=2000, state_version=3) == DataVersion(
        state_version=3, counter=18, timestamp_ms=2000
    )


def test_a_change_outside_controller_mode_is_made_in_epoch_0() -> None:
    assert DataVersion().bumped(now_ms=5) == DataVersion(state_version=0, counter=1, timestamp_ms=5)


def test_a_version_of_rocketmq_4_reads_as_epoch_0() -> None:
    version = msgspec.json.decode(b'{"counter":3,"timestamp":7}', type=DataVersion)
    assert version == DataVersion(state_version=0, counter=3, timestamp_ms=7)
