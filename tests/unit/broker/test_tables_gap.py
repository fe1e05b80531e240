from pathlib import Path

from tanist.broker.tables_feed import TablesFeed
from tanist.broker.tables_gap import tables_gap
from tanist.broker.tables_sink import TablesSink
from tanist.protocol.ha_tables import TableKind
from tests.support.broker_tables import open_state

ALL = frozenset(TableKind)


def test_whole_tables_on_the_link_leave_no_gap() -> None:
    assert tables_gap(ALL, ["consumer offset"]) is None


def test_what_has_not_come_since_the_link_began_is_named() -> None:
    gap = tables_gap(ALL - {TableKind.OFFSETS, TableKind.TOPICS}, [])
    assert gap == "not come since the link began: topic config, consumer offset"


def test_every_table_has_a_name() -> None:
    gap = tables_gap(frozenset(), [])
    assert gap is not None
    assert len(gap.split(", ")) == len(ALL)


def test_without_a_link_that_brings_tables_those_count_that_were_asked_for() -> None:
    assert tables_gap(None, []) is None
    assert tables_gap(None, ["delay offset"]) == "not told by a master yet: delay offset"


def test_a_new_link_is_a_gap_until_its_tables_have_come(tmp_path: Path) -> None:
    master, slave = open_state(tmp_path / "master"), open_state(tmp_path / "slave")
    with master.store, slave.store:
        sink, feed = TablesSink(slave), TablesFeed(master, lambda: None)
        assert sink.told_kinds is None
        for _ in range(2):
            sink.begin()
            assert tables_gap(sink.told_kinds, []) is not None
            while (piece := feed.take()) is not None:
                sink.apply(piece)
            assert tables_gap(sink.told_kinds, []) is None
            feed.close()
            feed = TablesFeed(master, lambda: None)
