"""The key-value table."""

from tanist.nameserver.kv_config import KVConfig


def test_a_change_makes_another_table() -> None:
    empty = KVConfig()
    table = empty.with_value("N", "k", "1").with_value("N", "l", "2").with_value("M", "k", "3")

    assert empty.values("N") is None
    assert table.values("N") == {"k": "1", "l": "2"}
    assert (table.value("M", "k"), table.value("M", "l"), table.value("O", "k")) == ("3", None, None)


def test_a_value_is_replaced() -> None:
    assert KVConfig().with_value("N", "k", "1").with_value("N", "k", "2").values("N") == {"k": "2"}


def test_an_emptied_namespace_stays() -> None:
    table = KVConfig().with_value("N", "k", "1").without("N", "k")
    assert table.values("N") == {}


def test_deleting_what_is_not_there_changes_nothing() -> None:
    table = KVConfig().with_value("N", "k", "1")
    assert table.without("N", "other") is table
    assert table.without("M", "k") is table
