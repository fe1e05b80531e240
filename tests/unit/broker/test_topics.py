from pathlib import Path

import msgspec
import pytest

from tanist.broker.topics import TopicTable
from tanist.errors import ResponseError
from tanist.model.data_version import DataVersion
from tanist.model.topics import AUTO_CREATE_TOPIC, TopicConfig, TopicFilterType
from tanist.protocol.bodies.sync import TopicConfigTable
from tanist.protocol.codes import ResponseCode
from tanist.store.config_table import ConfigTable
from tanist.store.disk import Disk
from tests.support.broker_tables import SETTINGS, open_topics
from tests.support.clocks import FakeClock
from tests.support.failing_disk import FailingDisk

ORDERS = TopicConfig(topic_name="Orders", read_queue_count=4, write_queue_count=4)
NO_AUTO_CREATE = msgspec.structs.replace(SETTINGS, auto_create_topic_enable=False)


@pytest.fixture
def topics(tmp_path: Path) -> TopicTable:
    return open_topics(tmp_path)


def _saved(root: Path) -> TopicConfigTable:
    return ConfigTable(Disk(), root, TopicConfigTable).load()


def test_a_first_start_makes_the_system_topics_in_one_change(tmp_path: Path) -> None:
    topics = open_topics(tmp_path)
    assert {AUTO_CREATE_TOPIC, "SELF_TEST_TOPIC", "DefaultCluster", "broker-a"} <= topics.table.topics.keys()
    assert topics.data_version.counter == 1
    assert _saved(tmp_path) == topics.table


def test_a_second_start_changes_nothing(tmp_path: Path) -> None:
    first = open_topics(tmp_path)
    first.put(ORDERS)
    later = FakeClock(now_ms=1_800_000_000_000)
    assert open_topics(tmp_path, clock=later).table == first.table


def test_what_was_saved_of_a_system_topic_stays(tmp_path: Path) -> None:
    kept = TopicConfig(topic_name=AUTO_CREATE_TOPIC, read_queue_count=2, write_queue_count=2, perm=7)
    ConfigTable(Disk(), tmp_path, TopicConfigTable).save(TopicConfigTable(topics={AUTO_CREATE_TOPIC: kept}))
    assert open_topics(tmp_path).find(AUTO_CREATE_TOPIC) == kept


def test_a_new_topic_is_found_saved_and_has_its_own_version(tmp_path: Path, topics: TopicTable) -> None:
    before = topics.data_version
    topics.put(ORDERS)
    assert topics.find("Orders") == ORDERS
    assert topics.data_version.counter == before.counter + 1
    assert _saved(tmp_path) == topics.table


def test_the_same_settings_again_are_no_change(topics: TopicTable) -> None:
    topics.put(ORDERS)
    table = topics.table
    topics.put(msgspec.structs.replace(ORDERS))
    assert topics.table is table


def test_a_change_keeps_the_epoch_of_the_version(tmp_path: Path) -> None:
    version = DataVersion(state_version=3, counter=8, timestamp_ms=5)
    ConfigTable(Disk(), tmp_path, TopicConfigTable).save(TopicConfigTable(data_version=version))
    topics = open_topics(tmp_path, clock=FakeClock(now_ms=77))
    assert topics.data_version == DataVersion(state_version=3, counter=9, timestamp_ms=77)


def test_a_reader_keeps_the_whole_table_it_saw(topics: TopicTable) -> None:
    seen = topics.table
    names = set(seen.topics)
    topics.put(ORDERS)
    topics.delete("SELF_TEST_TOPIC")
    assert set(seen.topics) == names


def test_a_deleted_topic_is_gone_after_a_restart(tmp_path: Path, topics: TopicTable) -> None:
    topics.put(ORDERS)
    version = topics.data_version
    assert topics.delete("Orders")
    assert topics.data_version.counter == version.counter + 1
    assert open_topics(tmp_path).find("Orders") is None


def test_deleting_what_is_not_there_is_no_change(topics: TopicTable) -> None:
    table = topics.table
    assert not topics.delete("Orders")
    assert topics.table is table


def test_a_change_that_can_not_be_saved_is_not_made(tmp_path: Path) -> None:
    disk = FailingDisk()
    topics = open_topics(tmp_path, disk=disk)
    table = topics.table
    disk.is_sync_broken = True
    with pytest.raises(OSError, match="Input/output error"):
        topics.put(ORDERS)
    assert topics.table is table


def test_listeners_hear_of_every_change_once_it_is_made(topics: TopicTable) -> None:
    heard: list[int] = []
    topics.on_change(lambda: heard.append(topics.data_version.counter))
    topics.put(ORDERS)
    topics.put(ORDERS)
    topics.create_for_send("New", default_topic=AUTO_CREATE_TOPIC, queue_count=4)
    topics.delete("Orders")
    assert heard == [2, 3, 4]


def test_a_first_send_creates_the_topic_from_the_template(topics: TopicTable) -> None:
    created = topics.create_for_send("New", default_topic=AUTO_CREATE_TOPIC, queue_count=4, sys_flag=1)
    assert created == topics.find("New")
    assert created == TopicConfig(
        topic_name="New", read_queue_count=4, write_queue_count=4, perm=6, topic_sys_flag=1
    )
    assert created is not None
    assert type(created.perm) is int, "every pull asks it, and to ask a flag takes ten times as long"


@pytest.mark.parametrize(("asked", "got"), [(100, 8), (8, 8), (0, 0), (-3, 0)])
def test_a_new_topic_has_no_more_queues_than_its_template(topics: TopicTable, asked: int, got: int) -> None:
    created = topics.create_for_send("New", default_topic=AUTO_CREATE_TOPIC, queue_count=asked)
    assert created is not None
    assert (created.read_queue_count, created.write_queue_count) == (got, got)


def test_a_new_topic_takes_permission_and_filter_from_its_template(topics: TopicTable) -> None:
    template = TopicConfig(topic_name="Mould", perm=5, topic_filter_type=TopicFilterType.MULTI_TAG)
    topics.put(template)
    created = topics.create_for_send("New", default_topic="Mould", queue_count=1)
    assert created is not None
    assert (created.perm, created.topic_filter_type) == (4, TopicFilterType.MULTI_TAG)


def test_a_topic_that_is_there_is_not_created_again(topics: TopicTable) -> None:
    topics.put(ORDERS)
    table = topics.table
    assert topics.create_for_send("Orders", default_topic="Missing", queue_count=1) == ORDERS
    assert topics.table is table


def test_a_template_without_the_inherit_bit_creates_nothing(topics: TopicTable) -> None:
    topics.put(ORDERS)
    assert topics.create_for_send("New", default_topic="Orders", queue_count=1) is None
    assert topics.create_for_send("New", default_topic="Missing", queue_count=1) is None
    assert topics.find("New") is None


def test_a_template_left_from_an_earlier_start_creates_nothing(tmp_path: Path) -> None:
    open_topics(tmp_path)
    topics = open_topics(tmp_path, NO_AUTO_CREATE)
    assert topics.find(AUTO_CREATE_TOPIC) is not None
    assert topics.create_for_send("New", default_topic=AUTO_CREATE_TOPIC, queue_count=1) is None


def test_a_send_does_not_create_a_topic_with_a_bad_name(topics: TopicTable) -> None:
    with pytest.raises(ResponseError) as refusal:
        topics.create_for_send("../up", default_topic=AUTO_CREATE_TOPIC, queue_count=1)
    assert refusal.value.code == ResponseCode.INVALID_PARAMETER


def test_a_groups_retry_topic_is_made_once(topics: TopicTable) -> None:
    made = topics.ensure_retry_topic("G", queue_count=2, sys_flag=2)
    assert made == TopicConfig(
        topic_name="%RETRY%G", read_queue_count=2, write_queue_count=2, perm=6, topic_sys_flag=2
    )
    table = topics.table
    assert topics.ensure_retry_topic("G", queue_count=5) == made
    assert topics.table is table


def test_a_dead_letter_topic_has_one_queue(topics: TopicTable) -> None:
    made = topics.ensure_dead_letter_topic("G")
    assert made == TopicConfig(topic_name="%DLQ%G", read_queue_count=1, write_queue_count=1, perm=6)


def test_the_topic_of_transactions_that_nobody_ended_has_one_queue(topics: TopicTable) -> None:
    made = topics.ensure_given_up_topic()
    assert (made.topic_name, made.read_queue_count, made.perm) == ("TRANS_CHECK_MAX_TIME_TOPIC", 1, 6)
    assert topics.ensure_given_up_topic() is made


def test_a_group_name_that_makes_no_topic_makes_none(topics: TopicTable) -> None:
    with pytest.raises(ResponseError):
        topics.ensure_retry_topic("a/b", queue_count=1)


@pytest.mark.parametrize("topic", ["TBW102", "DefaultCluster", "broker-a", "rmq_sys_anything"])
def test_the_brokers_own_topics_are_known(topics: TopicTable, topic: str) -> None:
    assert topics.is_system(topic)
    assert not topics.is_system("Orders")


# How many there may be


def test_so_many_topics_there_may_be_and_no_more(tmp_path: Path) -> None:
    count = len(open_topics(tmp_path).table.topics)
    topics = open_topics(tmp_path, msgspec.structs.replace(SETTINGS, max_topic_count=count + 2))
    topics.put(ORDERS)
    topics.ensure_retry_topic("G", queue_count=1)
    with pytest.raises(ResponseError, match="maxTopicCount") as refusal:
        topics.create_for_send("One", default_topic=AUTO_CREATE_TOPIC, queue_count=4)
    assert refusal.value.code == ResponseCode.TOPIC_NOT_EXIST
    for create in (
        lambda: topics.ensure_retry_topic("H", queue_count=1),
        lambda: topics.put(TopicConfig(topic_name="T")),
    ):
        with pytest.raises(ResponseError, match="maxTopicCount"):
            create()


def test_many_topics_come_in_one_change_or_none_of_them_does(tmp_path: Path) -> None:
    topics = open_topics(tmp_path)
    topics.put(ORDERS)
    before = topics.table
    topics.settings = msgspec.structs.replace(SETTINGS, max_topic_count=len(before.topics) + 2)
    changed = msgspec.structs.replace(ORDERS, perm=4)
    new = [TopicConfig(topic_name=name) for name in "ABC"]
    with pytest.raises(ResponseError, match=f"topic C .* there are {len(before.topics)} already"):
        topics.put(changed, *new)
    assert topics.table is before
    topics.put(changed, *new[:2])
    assert topics.data_version.counter == before.data_version.counter + 1
    assert topics.table.topics == {**before.topics, "Orders": changed, "A": new[0], "B": new[1]}


def test_topics_that_are_there_can_be_used_changed_and_deleted_when_there_is_no_room(tmp_path: Path) -> None:
    topics = open_topics(tmp_path)
    topics.put(ORDERS)
    topics.settings = msgspec.structs.replace(SETTINGS, max_topic_count=1)
    assert topics.create_for_send("Orders", default_topic=AUTO_CREATE_TOPIC, queue_count=4) == ORDERS
    topics.put(msgspec.structs.replace(ORDERS, perm=4))
    assert topics.delete("Orders")


def test_a_touched_table_is_newer_and_the_same(topics: TopicTable) -> None:
    before = topics.table
    topics.touch()
    assert topics.table.topics == before.topics
    assert topics.data_version > before.data_version


def test_a_new_reign_gives_the_table_a_version_that_is_later_than_any_of_the_reign_before(
    tmp_path: Path, topics: TopicTable
) -> None:
    topics.use_epoch(3)
    before = topics.table
    topics.put(ORDERS)
    last_of_the_third = topics.data_version
    assert last_of_the_third.state_version == 3

    slave = open_topics(tmp_path / "slave")
    slave.follow(before)
    heard: list[list[str]] = []
    slave.watchers.append(lambda changed: heard.append(list(changed)))
    slave.use_epoch(4)

    assert slave.data_version > last_of_the_third
    assert slave.data_version.counter == before.data_version.counter + 1
    assert slave.table.topics == before.topics
    assert heard == [[]]
    assert _saved(tmp_path / "slave") == slave.table
