import json
from pathlib import Path
from typing import Any, cast

import pytest

from tanist.errors import ForeignFile
from tanist.model.data_version import DataVersion
from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.offsets import QueueOffset
from tanist.model.topics import TopicConfig
from tanist.protocol.bodies.sync import (
    ConsumerOffsetTable,
    DelayOffsetTable,
    SubscriptionGroupTable,
    TopicConfigTable,
)
from tanist.store.config_table import FILE_NAMES, ConfigTable
from tanist.store.disk import Disk

OFFSETS = ConsumerOffsetTable(
    data_version=DataVersion(counter=3, timestamp_ms=1_700_000_000_000),
    offset_table={"TopicA@G1": {0: QueueOffset(11), 1: QueueOffset(22)}},
)


def _offsets(tmp_path: Path) -> ConfigTable[ConsumerOffsetTable]:
    return ConfigTable(Disk(), tmp_path, ConsumerOffsetTable)


def _path(tmp_path: Path) -> Path:
    return tmp_path / "config" / "consumerOffset.json"


def test_the_files_have_rocketmqs_names() -> None:
    assert list(FILE_NAMES.values()) == [
        "topics.json",
        "subscriptionGroup.json",
        "consumerOffset.json",
        "delayOffset.json",
    ]


def test_a_table_that_was_never_saved_is_empty(tmp_path: Path) -> None:
    assert _offsets(tmp_path).load() == ConsumerOffsetTable()


def test_consumer_offsets_come_back(tmp_path: Path) -> None:
    _offsets(tmp_path).save(OFFSETS)
    assert _offsets(tmp_path).load() == OFFSETS


def test_delay_offsets_come_back(tmp_path: Path) -> None:
    saved = DelayOffsetTable(
        data_version=DataVersion(counter=1), offset_table={1: QueueOffset(5), 18: QueueOffset(7)}
    )
    ConfigTable(Disk(), tmp_path, DelayOffsetTable).save(saved)
    assert ConfigTable(Disk(), tmp_path, DelayOffsetTable).load() == saved


def test_topics_come_back(tmp_path: Path) -> None:
    topic = TopicConfig(topic_name="TopicA", read_queue_count=4, attributes={"+queue.type": "BatchCQ"})
    saved = TopicConfigTable(data_version=DataVersion(state_version=2), topics={"TopicA": topic})
    ConfigTable(Disk(), tmp_path, TopicConfigTable).save(saved)
    assert ConfigTable(Disk(), tmp_path, TopicConfigTable).load() == saved


def test_groups_come_back(tmp_path: Path) -> None:
    group = SubscriptionGroupConfig(group_name="G1", retry_max_times=3)
    saved = SubscriptionGroupTable(groups={"G1": group}, forbidden_table={"G1": {"TopicA": 1}})
    ConfigTable(Disk(), tmp_path, SubscriptionGroupTable).save(saved)
    assert ConfigTable(Disk(), tmp_path, SubscriptionGroupTable).load() == saved


def test_a_saved_table_is_standard_json_under_rocketmqs_names(tmp_path: Path) -> None:
    _offsets(tmp_path).save(OFFSETS)
    table = cast("dict[str, Any]", json.loads(_path(tmp_path).read_bytes()))
    assert table["offsetTable"] == {"TopicA@G1": {"0": 11, "1": 22}}
    assert table["dataVersion"] == {"stateVersion": 0, "counter": 3, "timestamp": 1_700_000_000_000}


def test_javas_unquoted_keys_are_read(tmp_path: Path) -> None:
    _path(tmp_path).parent.mkdir()
    _path(tmp_path).write_text('{"offsetTable":{"TopicA@G1":{0:11,1:22}},"groupTopicMap":{"G1":["TopicA"]}}')
    assert _offsets(tmp_path).load().offset_table == {"TopicA@G1": {0: 11, 1: 22}}


def test_half_a_table_gives_way_to_its_backup_and_is_left_as_it_is(tmp_path: Path) -> None:
    table = _offsets(tmp_path)
    table.save(OFFSETS)
    table.save(ConsumerOffsetTable())
    half = _path(tmp_path).read_bytes()[:20]
    _path(tmp_path).write_bytes(half)
    assert _offsets(tmp_path).load() == OFFSETS
    assert _path(tmp_path).read_bytes() == half


def test_two_bad_files_are_refused_by_name(tmp_path: Path) -> None:
    _path(tmp_path).parent.mkdir()
    _path(tmp_path).write_bytes(b'{"offsetTable":')
    _path(tmp_path).with_suffix(".json.bak").write_bytes(b"[]")
    with pytest.raises(ForeignFile, match=r"consumerOffset\.json"):
        _offsets(tmp_path).load()
