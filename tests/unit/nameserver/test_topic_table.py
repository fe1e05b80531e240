"""Topics by broker."""

from tanist.model.topics import TopicConfig, TopicSysFlag
from tanist.nameserver.topic_table import TopicTable


def table_with_flags() -> TopicTable:
    table = TopicTable()
    for topic, flag in (("Plain", 0), ("Unit", 1), ("Sub", 2), ("Both", 3)):
        table.take("a", TopicConfig(topic_name=topic, topic_sys_flag=flag))
    return table


def test_topics_are_listed_by_their_flags() -> None:
    table = table_with_flags()
    assert table.with_sys_flag(has=TopicSysFlag.UNIT) == {"Unit", "Both"}
    assert table.with_sys_flag(has=TopicSysFlag.UNIT_SUB) == {"Sub", "Both"}
    assert table.with_sys_flag(has=TopicSysFlag.UNIT_SUB, has_not=TopicSysFlag.UNIT) == {"Sub"}


def test_a_topic_goes_with_its_last_broker_and_its_mapping_too() -> None:
    table = TopicTable()
    for broker_name in ("a", "b"):
        table.take(broker_name, TopicConfig(topic_name="T"))
        table.put_mapping("T", broker_name, {"bname": broker_name})

    table.forget_broker("a")
    assert table.queues("T").keys() == {"b"}
    assert table.mappings("T") == {"b": {"bname": "b"}}

    table.forget_broker("b")
    assert table.names == frozenset()
    assert table.mappings("T") is None


def test_a_forgotten_topic_has_nothing_left() -> None:
    table = TopicTable()
    table.take("a", TopicConfig(topic_name="T"))
    table.put_mapping("T", "a", {})
    table.forget_topic("T")
    table.forget_topic("Unknown")
    assert (table.names, table.mappings("T")) == (frozenset(), None)
