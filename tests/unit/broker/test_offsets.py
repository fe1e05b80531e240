import logging
from pathlib import Path

import pytest

from tanist.broker import offsets as offsets_module
from tanist.broker.offsets import OffsetTable
from tanist.errors import ResponseError
from tanist.model.data_version import DataVersion
from tanist.model.offsets import QueueOffset
from tanist.protocol.bodies.sync import ConsumerOffsetTable
from tanist.protocol.codes import ResponseCode
from tanist.store.config_table import ConfigTable
from tanist.store.disk import Disk
from tests.support.broker_tables import open_offsets
from tests.support.clocks import FakeClock
from tests.support.failing_disk import FailingDisk


@pytest.fixture
def offsets(tmp_path: Path) -> OffsetTable:
    return open_offsets(tmp_path)


def _save(root: Path, table: ConsumerOffsetTable) -> None:
    ConfigTable(Disk(), root, ConsumerOffsetTable).save(table)


def test_a_committed_offset_is_found_again(offsets: OffsetTable) -> None:
    assert offsets.find("G", "T", 0) is None
    offsets.commit("G", "T", 0, 5)
    assert offsets.find("G", "T", 0) == 5
    assert offsets.find("G", "T", 1) is None
    assert offsets.find("H", "T", 0) is None


def test_an_offset_may_go_back_and_the_log_tells(
    offsets: OffsetTable, caplog: pytest.LogCaptureFixture
) -> None:
    offsets.commit("G", "T", 3, 50)
    with caplog.at_level(logging.INFO):
        offsets.commit("G", "T", 3, 7)
    assert offsets.find("G", "T", 3) == 7
    assert "group=G topic=T queue=3 from=50 to=7" in caplog.text


def test_a_negative_offset_in_a_file_means_none(tmp_path: Path) -> None:
    _save(tmp_path, ConsumerOffsetTable(offset_table={"T@G": {0: QueueOffset(-1), 1: QueueOffset(0)}}))
    offsets = open_offsets(tmp_path)
    assert offsets.find("G", "T", 0) is None
    assert offsets.find("G", "T", 1) == 0


def test_offsets_survive_a_restart_once_saved(tmp_path: Path, offsets: OffsetTable) -> None:
    offsets.commit("G", "T", 0, 5)
    offsets.save()
    offsets.commit("G", "T", 0, 6)
    assert open_offsets(tmp_path).find("G", "T", 0) == 5


def test_only_a_change_makes_the_table_dirty(tmp_path: Path, offsets: OffsetTable) -> None:
    assert not offsets.is_dirty
    offsets.commit("G", "T", 0, 5)
    assert offsets.is_dirty
    offsets.save()
    assert not offsets.is_dirty
    offsets.commit("G", "T", 0, 5)
    assert not offsets.is_dirty
    assert offsets.start_save() is None


def test_a_commit_while_the_disk_works_is_still_to_be_saved(tmp_path: Path, offsets: OffsetTable) -> None:
    offsets.commit("G", "T", 0, 5)
    finish = offsets.start_save()
    assert finish is not None
    offsets.commit("G", "T", 0, 6)
    finish()
    assert open_offsets(tmp_path).find("G", "T", 0) == 5
    assert offsets.is_dirty


def test_what_could_not_be_saved_is_still_to_be_saved(tmp_path: Path) -> None:
    disk = FailingDisk()
    offsets = open_offsets(tmp_path, disk=disk)
    offsets.commit("G", "T", 0, 5)
    disk.is_sync_broken = True
    with pytest.raises(OSError, match="Input/output error"):
        offsets.save()
    assert offsets.is_dirty


def test_the_version_counts_every_500_commits(tmp_path: Path) -> None:
    version = DataVersion(state_version=2, counter=10, timestamp_ms=1)
    _save(tmp_path, ConsumerOffsetTable(data_version=version))
    offsets = open_offsets(tmp_path, clock=FakeClock(now_ms=99))
    for number in range(499):
        offsets.commit("G", "T", 0, number)
    assert offsets.data_version == version
    offsets.commit("G", "T", 0, 499)
    assert offsets.data_version == DataVersion(state_version=2, counter=11, timestamp_ms=99)


def test_a_copy_of_the_table_does_not_change_with_it(offsets: OffsetTable) -> None:
    offsets.commit("G", "T", 0, 5)
    table = offsets.table()
    offsets.commit("G", "T", 0, 6)
    offsets.commit("G", "U", 0, 1)
    assert table.offset_table == {"T@G": {0: 5}}


def test_a_group_and_a_topic_are_looked_up_from_either_side(offsets: OffsetTable) -> None:
    for group, topic in (("G", "T"), ("G", "U"), ("H", "T")):
        offsets.commit(group, topic, 1, 4)
    assert offsets.topics_of("G") == {"T", "U"}
    assert offsets.groups_of("T") == {"G", "H"}
    assert offsets.queues("G", "T") == {1: 4}
    assert offsets.queues("G", "V") == {}


def test_a_groups_offsets_can_be_forgotten(offsets: OffsetTable) -> None:
    for group, topic in (("G", "T"), ("G", "U"), ("GG", "T")):
        offsets.commit(group, topic, 0, 4)
    version = offsets.data_version
    offsets.delete_group("G")
    assert offsets.table().offset_table == {"T@GG": {0: 4}}
    assert offsets.data_version.counter == version.counter + 1


def test_a_topics_offsets_can_be_forgotten(offsets: OffsetTable) -> None:
    for group, topic in (("G", "T"), ("H", "T"), ("G", "TT")):
        offsets.commit(group, topic, 0, 4)
    offsets.save()
    offsets.delete_topic("T")
    assert offsets.table().offset_table == {"TT@G": {0: 4}}
    assert offsets.is_dirty


def test_forgetting_what_is_not_there_is_no_change(offsets: OffsetTable) -> None:
    offsets.delete_group("G")
    offsets.delete_topic("T")
    assert not offsets.is_dirty
    assert offsets.data_version == DataVersion()


def test_the_keys_of_broadcasting_groups_name_no_group(tmp_path: Path) -> None:
    _save(tmp_path, ConsumerOffsetTable(offset_table={"T@G@broadcast": {0: QueueOffset(3)}}))
    offsets = open_offsets(tmp_path)
    assert offsets.groups_of("T") == set()
    assert offsets.topics_of("G") == set()
    offsets.delete_group("G")
    assert offsets.table().offset_table == {"T@G@broadcast": {0: 3}}


def test_a_group_can_begin_where_another_stands(offsets: OffsetTable) -> None:
    offsets.commit("G", "T", 0, 4)
    offsets.commit("H", "T", 1, 9)
    offsets.clone("G", "H", ["T"])
    assert offsets.queues("H", "T") == {0: 4}
    offsets.commit("H", "T", 0, 5)
    assert offsets.find("G", "T", 0) == 4


def test_topics_are_cloned_all_or_none(offsets: OffsetTable, monkeypatch: pytest.MonkeyPatch) -> None:
    for topic in ("T", "U"):
        offsets.commit("G", topic, 0, 4)
    monkeypatch.setattr(offsets_module, "MAX_OFFSETS", 3)
    with pytest.raises(ResponseError):
        offsets.clone("G", "H", ["T", "U"])
    assert offsets.topics_of("H") == set()
    monkeypatch.setattr(offsets_module, "MAX_OFFSETS", 4)
    offsets.clone("G", "H", ["T", "U"])
    assert offsets.topics_of("H") == {"T", "U"}


def test_single_queues_are_adopted_and_all_others_stay(tmp_path: Path, offsets: OffsetTable) -> None:
    offsets.commit("G", "T", 0, 4)
    offsets.commit("G", "T", 1, 9)
    offsets.commit("H", "U", 0, 1)
    offsets.save()
    version, told = offsets.data_version, list[str]()
    offsets.watchers.append(told.extend)
    offsets.adopt({"T@G": {1: QueueOffset(3), 2: QueueOffset(7)}, "V@I": {0: QueueOffset(2)}})
    assert offsets.table().offset_table == {"T@G": {0: 4, 1: 3, 2: 7}, "U@H": {0: 1}, "V@I": {0: 2}}
    assert offsets.topics_of("I") == {"V"}
    assert told == ["T@G", "V@I"]
    assert offsets.data_version.counter == version.counter + 1
    offsets.save()
    assert open_offsets(tmp_path).table() == offsets.table()


def test_to_adopt_what_is_so_already_changes_nothing(offsets: OffsetTable) -> None:
    offsets.commit("G", "T", 0, 4)
    offsets.save()
    version = offsets.data_version
    offsets.watchers.append(lambda keys: pytest.fail(f"{keys} did not change"))
    offsets.adopt({"T@G": {0: QueueOffset(4)}, "U@H": {}})
    assert offsets.data_version == version
    assert not offsets.is_dirty
    assert offsets.keys() == ["T@G"]


def test_what_is_adopted_does_not_change_with_who_told_it(offsets: OffsetTable) -> None:
    told = {"T@G": {0: QueueOffset(4)}}
    offsets.adopt(told)
    offsets.commit("G", "T", 0, 5)
    assert told == {"T@G": {0: 4}}


def test_offsets_are_adopted_all_or_none(offsets: OffsetTable, monkeypatch: pytest.MonkeyPatch) -> None:
    offsets.commit("G", "T", 0, 4)
    monkeypatch.setattr(offsets_module, "MAX_OFFSETS", 3)
    news = {"T@G": {0: QueueOffset(5), 1: QueueOffset(1)}, "U@H": {0: QueueOffset(1), 1: QueueOffset(1)}}
    with pytest.raises(ResponseError) as refusal:
        offsets.adopt(news)
    assert refusal.value.code == ResponseCode.SYSTEM_BUSY
    assert offsets.table().offset_table == {"T@G": {0: 4}}
    del news["U@H"][1]
    offsets.adopt(news)
    assert offsets.table().offset_table == news
    with pytest.raises(ResponseError):
        offsets.commit("G", "T", 2, 1)


def test_what_has_changed_since_is_told_queue_by_queue(offsets: OffsetTable) -> None:
    for queue_id in range(3):
        offsets.commit("G", "T", queue_id, 4)
    offsets.commit("H", "U", 0, 4)
    base = offsets.table().offset_table
    assert offsets.changed_since(base) == {}
    offsets.commit("G", "T", 1, 2)
    offsets.commit("G", "T", 3, 0)
    offsets.commit("I", "U", 0, 9)
    offsets.delete_group("H")
    changed = offsets.changed_since(base)
    assert changed == {"T@G": {1: 2, 3: 0}, "U@I": {0: 9}}
    changed["T@G"][1] = QueueOffset(8)
    assert offsets.find("G", "T", 1) == 2


def test_what_is_looked_up_from_either_side_is_what_the_table_holds(
    tmp_path: Path, offsets: OffsetTable
) -> None:
    for group, topic in (("G", "T"), ("G", "U"), ("H", "T")):
        offsets.commit(group, topic, 1, 4)
    offsets.clone("G", "I", ["U"])
    offsets.delete_topic("T")
    offsets.commit("H", "T", 0, 1)
    offsets.save()
    for table in (offsets, open_offsets(tmp_path)):
        assert [table.groups_of(topic) for topic in ("T", "U")] == [{"H"}, {"G", "I"}]
        assert [table.topics_of(group) for group in ("G", "H", "I")] == [{"U"}, {"T"}, {"U"}]


def test_cloning_a_group_that_stands_nowhere_changes_nothing(offsets: OffsetTable) -> None:
    offsets.commit("H", "T", 1, 9)
    offsets.clone("G", "H", ["T"])
    assert offsets.queues("H", "T") == {1: 9}


def test_a_table_that_is_full_takes_only_what_it_knows(
    tmp_path: Path, offsets: OffsetTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offsets_module, "MAX_OFFSETS", 3)
    for queue_id in range(3):
        offsets.commit("G", "T", queue_id, 5)
    for refused in (lambda: offsets.commit("G", "T", 3, 5), lambda: offsets.clone("G", "H", ["T"])):
        with pytest.raises(ResponseError) as refusal:
            refused()
        assert refusal.value.code == ResponseCode.SYSTEM_BUSY
    assert offsets.groups_of("T") == {"G"}
    offsets.commit("G", "T", 2, 6)
    offsets.save()
    again = open_offsets(tmp_path)
    with pytest.raises(ResponseError):
        again.commit("H", "T", 0, 5)
    again.delete_group("G")
    again.commit("H", "T", 0, 5)
    assert again.find("H", "T", 0) == 5
