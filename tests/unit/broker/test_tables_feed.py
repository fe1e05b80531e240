"""The feed of a master's link and the sink of a slave, one behind the other, without a link."""

from collections.abc import Callable
from errno import ENOSPC
from pathlib import Path

import msgspec
import pytest

from tanist.broker.consumer_group import Client
from tanist.broker.queue_look import queue_bounds
from tanist.broker.resets.carrying import on_members
from tanist.broker.resets.order import ResetOrder
from tanist.broker.resets.order_file import SavedOrder
from tanist.broker.settings import BrokerRole
from tanist.broker.state import BrokerState
from tanist.broker.tables_feed import TablesFeed
from tanist.broker.tables_sink import TablesSink
from tanist.errors import RemoteProtocolError
from tanist.model.groups import SubscriptionGroupConfig
from tanist.model.offsets import QueueOffset
from tanist.model.topics import TopicConfig
from tanist.protocol import ha_tables
from tanist.protocol.bodies.reset import (
    ClientReceipt,
    QueueTarget,
    ReceiptState,
    ResetOrderView,
    ResetState,
)
from tanist.protocol.bodies.sync import SubscriptionGroupTable, TopicConfigTable
from tanist.protocol.codes import RequestCode
from tanist.protocol.ha_tables import (
    OffsetEntry,
    TableKind,
    TablePiece,
    decode_entries,
    decode_piece,
    encode_piece,
)
from tests.support.broker_tables import join, open_state
from tests.support.clocks import FakeClock
from tests.support.fake_connection import FakeConnection
from tests.support.messages import make_message
from tests.support.slave_consume_views import PlayedView, serving_master


class _Pair:
    """A master and its slave, whose link carries what ``move`` is told to."""

    def __init__(self, root: Path) -> None:
        self.master = open_state(root / "master")
        # Another time, so that no two tables have the same version by chance.
        self.slave = open_state(root / "slave", clock=FakeClock(now_ms=1_600_000_000_000))
        self.woken = 0
        self.is_read = False
        """Whether the slave owns the offsets."""
        self.connect()

    def connect(self) -> None:
        self.feed = TablesFeed(self.master, self._wake)
        self.sink = TablesSink(self.slave, lambda: self.is_read)
        self.sink.begin()

    def _wake(self) -> None:
        self.woken += 1

    def move(self) -> list[TablePiece]:
        """Bring the slave all that there is; what it was."""
        pieces: list[TablePiece] = []
        while (change := self.feed.take()) is not None:
            self.sink.apply(change)
            pieces.append(decode_piece(change))
        return pieces

    def grow_logs(self, *, master: int = 0, slave: int = 0) -> None:
        for state, count in ((self.master, master), (self.slave, slave)):
            for _ in range(count):
                state.store.append(make_message())
        self.sink.on_appended()


@pytest.fixture
def pair(tmp_path: Path) -> _Pair:
    return _Pair(tmp_path)


def _tables(state: BrokerState) -> tuple[object, ...]:
    return (
        state.topics.table,
        state.offsets.table(),
        state.delays.levels.table(),
        state.groups.table,
    )


def _bounds(state: BrokerState, topic: str) -> tuple[int, int]:
    state.store.dispatch()
    return queue_bounds(state.store, topic, make_message().queue_id)


def _fill(state: BrokerState) -> None:
    state.topics.put(TopicConfig(topic_name="Orders", write_queue_count=4, attributes={"+k": "v"}))
    state.groups.put(SubscriptionGroupConfig(group_name="Billing", retry_max_times=3))
    state.offsets.commit("Billing", "Orders", 0, 17)
    state.offsets.commit("Billing", "Orders", 3, 2**40)
    state.delays.levels.on_delivered(3, 9)


def test_after_the_first_turn_all_four_tables_and_their_versions_are_the_masters(pair: _Pair) -> None:
    _fill(pair.master)
    pair.slave.topics.put(TopicConfig(topic_name="OnlyHere"))
    pair.slave.offsets.commit("Gone", "OnlyHere", 0, 5)
    pair.move()
    assert _tables(pair.slave) == _tables(pair.master)


def _order(order_id: str = "o1", state: ResetState = ResetState.APPLIED) -> ResetOrder:
    told = ClientReceipt(client_id="c1", address="10.0.0.1:4000", state=ReceiptState.TOLD, told_ms=5)
    view = ResetOrderView(
        order_id=order_id,
        topic="Orders",
        group="Billing",
        broker_name="broker-a",
        state=state,
        caller="ann",
        caller_address="10.9.9.9:1",
        created_ms=5,
        expires_ms=2**50,
        targets=[QueueTarget(queue_id=0, expected_offset=QueueOffset(17), target=QueueOffset(3))],
        receipts=[told],
        is_broadcast=True,
    )
    return ResetOrder.restored(SavedOrder(view=view))


def test_a_slave_knows_the_orders_and_leaves_them_to_its_master_until_it_is_one(pair: _Pair) -> None:
    pair.master.resets.add(_order(state=ResetState.WAITING), now_ms=5)
    pair.slave.settings = msgspec.structs.replace(
        pair.slave.settings, broker_role=BrokerRole.SLAVE, broker_id=1
    )
    pair.move()
    pair.master.resets.follow([_order().saved()], [], is_ours=False)
    pair.move()
    followed = pair.slave.resets.find("o1")
    assert followed is not None
    assert [receipt.state for receipt in followed.view().receipts] == [ReceiptState.PENDING]
    assert pair.slave.resets.unsaved() == []
    returned = FakeConnection("10.0.0.1:4001")
    client = Client(returned, "c1", "PYTHON", 479)
    join(pair.slave, "Billing", client_id="c1", connection=returned, is_broadcast=True)
    on_members(pair.slave, client, ["Billing"])
    assert returned.take_sent() == []
    pair.slave.settings = pair.master.settings
    on_members(pair.slave, client, ["Billing"])
    assert [sent.code for sent in returned.take_sent()] == [RequestCode.RESET_CONSUMER_CLIENT_OFFSET]


def test_orders_that_a_slave_gave_while_it_was_read_are_not_lost(pair: _Pair) -> None:
    pair.move()
    pair.is_read = True
    pair.slave.resets.add(_order("ours", ResetState.WAITING), now_ms=5)
    pair.master.resets.add(_order("theirs", ResetState.WAITING), now_ms=5)
    pair.move()
    assert [order.order_id for order in pair.slave.resets.orders()] == ["ours", "theirs"]


def test_a_deposed_master_forgets_the_orders_that_its_successor_never_had(pair: _Pair) -> None:
    lost, of_slave = _order("lost"), _order("given while it was read")
    of_slave.is_of_slave = True
    pair.slave.resets.follow([lost.saved()], [], is_ours=False)
    pair.slave.resets.add(of_slave, now_ms=5)
    pair.master.resets.add(_order("theirs", ResetState.WAITING), now_ms=5)
    assert "Billing" in pair.slave.resets.watched_groups
    pair.move()
    assert [order.order_id for order in pair.slave.resets.orders()] == ["given while it was read", "theirs"]
    assert "Billing" not in pair.slave.resets.watched_groups


def test_mappings_and_what_groups_are_forbidden_come_along(pair: _Pair) -> None:
    pair.master.topics.table = msgspec.structs.replace(
        pair.master.topics.table, mappings={"TBW102": {"scope": "s"}}
    )
    pair.master.groups.table = msgspec.structs.replace(
        pair.master.groups.table, forbidden_table={"TOOLS_CONSUMER": {"T": 1}}
    )
    pair.move()
    assert pair.slave.topics.table.mappings == {"TBW102": {"scope": "s"}}
    assert pair.slave.groups.table.forbidden_table == {"TOOLS_CONSUMER": {"T": 1}}


@pytest.mark.behaviour("S1-16")
def test_tables_of_the_same_version_are_not_taken_over_again(pair: _Pair) -> None:
    _fill(pair.master)
    pair.move()
    topics, groups = pair.slave.topics.table, pair.slave.groups.table
    pair.connect()
    pair.move()
    assert pair.slave.topics.table is topics
    assert pair.slave.groups.table is groups


def _put_topic(state: BrokerState) -> None:
    state.topics.put(TopicConfig(topic_name="New"))


def _delete_topic(state: BrokerState) -> None:
    assert state.topics.delete("Orders")


def _put_group(state: BrokerState) -> None:
    state.groups.put(SubscriptionGroupConfig(group_name="Audit"))


def _delete_group(state: BrokerState) -> None:
    assert state.groups.delete("Billing")


def _commit(state: BrokerState) -> None:
    state.offsets.commit("Billing", "Orders", 0, 18)


def _go_back(state: BrokerState) -> None:
    state.offsets.commit("Billing", "Orders", 0, 3)


def _delete_offsets(state: BrokerState) -> None:
    state.offsets.delete_group("Billing")


def _clone(state: BrokerState) -> None:
    state.offsets.clone("Billing", "Copy", ["Orders"])


def _deliver(state: BrokerState) -> None:
    state.delays.levels.on_delivered(5, 1)


@pytest.mark.parametrize(
    "change",
    [
        *(_put_topic, _delete_topic, _put_group, _delete_group, _commit, _go_back),
        *(_delete_offsets, _clone, _deliver),
    ],
)
def test_each_change_wakes_the_link_once_and_arrives(
    pair: _Pair, change: Callable[[BrokerState], None]
) -> None:
    _fill(pair.master)
    pair.move()
    assert pair.feed.take() is None
    change(pair.master)
    assert pair.woken == 1
    pair.move()
    assert _tables(pair.slave) == _tables(pair.master)


def test_a_new_version_alone_arrives(pair: _Pair) -> None:
    pair.move()
    pair.master.topics.touch()
    (piece,) = pair.move()
    assert (piece.kind, piece.entries) == (TableKind.TOPICS, [])
    assert pair.slave.topics.data_version == pair.master.topics.data_version


def test_a_change_of_a_large_table_sends_that_change_and_no_more(pair: _Pair) -> None:
    pair.master.topics.add_several(
        [TopicConfig(topic_name=f"T{number}") for number in range(5000)], max_new=5000
    )
    for number in range(5000):
        pair.master.offsets.commit("G", f"T{number}", 0, number)
    assert len(pair.move()) > 4
    pair.master.topics.put(TopicConfig(topic_name="T17", write_queue_count=1))
    pair.master.offsets.commit("G", "T18", 0, 99_999)
    topics, offsets = pair.move()
    assert (len(topics.entries), len(offsets.entries)) == (1, 1)
    assert _tables(pair.slave) == _tables(pair.master)


def test_several_commits_of_one_group_travel_as_the_last(pair: _Pair) -> None:
    pair.move()
    for offset in (5, 9, 7):
        pair.master.offsets.commit("G", "T", 0, offset)
    (piece,) = pair.move()
    assert len(piece.entries) == 1
    assert pair.slave.offsets.find("G", "T", 0) == 7


@pytest.mark.behaviour("S1-19")
def test_no_reader_sees_a_table_before_its_last_piece_is_there(
    pair: _Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ha_tables.batches, "__kwdefaults__", {"batch_bytes": 100})
    _fill(pair.master)
    before = _tables(pair.slave)
    states = [before]
    while (change := pair.feed.take()) is not None:
        pair.sink.apply(change)
        if _tables(pair.slave) != states[-1]:
            assert decode_piece(change).is_last
            states.append(_tables(pair.slave))
    # Of deletions and of orders there are none.
    assert len(states) == 1 + len(TableKind) - 2
    assert states[-1] == _tables(pair.master)


def test_what_changes_between_two_pieces_of_a_whole_table_is_not_lost(
    pair: _Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ha_tables.batches, "__kwdefaults__", {"batch_bytes": 100})
    _fill(pair.master)
    count = 0
    while (change := pair.feed.take()) is not None:
        pair.sink.apply(change)
        if count < 40:
            pair.master.topics.put(TopicConfig(topic_name="TBW102", write_queue_count=count))
            pair.master.offsets.commit("Billing", "Orders", 0, count)
            count += 1
    assert count == 40
    assert _tables(pair.slave) == _tables(pair.master)


def test_a_topic_of_very_many_queues_comes_in_several_entries(pair: _Pair) -> None:
    for queue_id in range(10_000):
        pair.master.offsets.commit("G", "T", queue_id, queue_id)
    pieces = pair.move()
    assert max(len(piece.entries) for piece in pieces if piece.kind is TableKind.OFFSETS) == 3
    assert pair.slave.offsets.table() == pair.master.offsets.table()


# Offsets and the log


def test_offsets_wait_until_the_slave_has_the_log_in_which_they_were_made(pair: _Pair) -> None:
    pair.grow_logs(master=2)
    _fill(pair.master)
    pair.move()
    assert pair.slave.topics.table == pair.master.topics.table
    assert pair.slave.offsets.find("Billing", "Orders", 0) is None
    assert pair.slave.delays.levels.next_offset(3) == 0
    pair.grow_logs(slave=1)
    assert pair.slave.offsets.find("Billing", "Orders", 0) is None
    pair.grow_logs(slave=1)
    assert _tables(pair.slave) == _tables(pair.master)


@pytest.mark.behaviour("S3-69")
def test_a_slave_that_may_be_read_hears_how_far_pulls_have_come_before_the_next_commit(pair: _Pair) -> None:
    pair.master.slave_consume = PlayedView(serving_master())
    pair.connect()
    pair.master.offsets.commit("Billing", "Orders", 0, 4)
    pair.move()
    pair.master.pull_progress.note("Billing", "Orders", 0, 9)
    pair.master.pull_progress.note("Nobody", "Orders", 0, 9)
    (piece,) = pair.move()
    assert decode_entries(piece) == [OffsetEntry("Orders@Billing", {0: QueueOffset(4)}, {0: 9})]
    twice = pair.slave.delivered_twice
    twice.begin()
    twice.on_pulled("Billing", "Orders", 0, start=4, end=20, message_count=16)
    assert twice.counts == {"Billing": 5}


def test_when_the_master_is_gone_offsets_that_wait_for_its_log_count_as_far_as_the_queues_go(
    pair: _Pair,
) -> None:
    message = make_message()
    key = f"{message.topic}@Billing"
    pair.grow_logs(master=9, slave=4)
    pair.slave.store.dispatch()
    pair.move()
    for group, offset in (("Billing", 3), ("Audit", 8)):
        pair.master.offsets.commit(group, message.topic, message.queue_id, offset)
    pair.move()
    pair.master.offsets.commit("Billing", message.topic, message.queue_id, 2)
    pair.move()
    assert pair.slave.offsets.table().offset_table == {}
    pair.sink.settle_offsets()
    assert pair.slave.offsets.queues_at(key) == {message.queue_id: 2}
    assert pair.slave.offsets.queues_at(f"{message.topic}@Audit") == {message.queue_id: 4}


def test_a_slave_that_is_always_a_little_behind_gets_offsets_all_the_same(pair: _Pair) -> None:
    pair.grow_logs(master=1)
    pair.move()
    seen: list[int | None] = []
    for offset in range(1, 6):
        pair.grow_logs(master=1)
        pair.master.offsets.commit("G", "T", 0, offset)
        pair.move()
        pair.grow_logs(slave=1)
        seen.append(pair.slave.offsets.find("G", "T", 0))
    assert seen == [None, 1, 2, 3, 4]


def test_a_topic_that_was_deleted_and_made_again_begins_at_the_same_message_on_both(pair: _Pair) -> None:
    pair.move()
    pair.grow_logs(master=2, slave=1)
    topic = make_message().topic
    pair.master.store.delete_topics([topic])
    assert pair.woken == 1
    pair.move()
    assert _bounds(pair.slave, topic) == (0, 1)
    pair.grow_logs(slave=1)
    assert _bounds(pair.slave, topic) == (2, 2)
    pair.grow_logs(master=1, slave=1)
    assert _bounds(pair.slave, topic) == _bounds(pair.master, topic) == (2, 3)


def test_a_deletion_that_the_disk_does_not_take_waits_for_the_next_time(
    pair: _Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.move()
    pair.grow_logs(master=2, slave=1)
    topic = make_message().topic
    pair.master.store.delete_topics([topic])
    pair.move()

    def refuse(_places: object) -> None:
        raise OSError(ENOSPC, "no space")

    with monkeypatch.context() as full:
        full.setattr(pair.slave.store, "follow_deletions", refuse)
        pair.grow_logs(slave=1)
    assert _bounds(pair.slave, topic) == (0, 2)
    pair.grow_logs(slave=1)
    assert _bounds(pair.slave, topic) == (2, 3)


def test_a_new_link_forgets_what_waits(pair: _Pair) -> None:
    pair.move()
    pair.grow_logs(master=1)
    pair.master.offsets.commit("G", "T", 0, 5)
    pair.move()
    pair.sink.begin()
    pair.grow_logs(slave=1)
    assert pair.slave.offsets.find("G", "T", 0) is None


# A slave that is read


def test_a_slave_that_is_read_takes_over_no_offsets_topics_and_groups_until_it_is_over(pair: _Pair) -> None:
    _fill(pair.master)
    before = (pair.slave.topics.table, pair.slave.groups.table)
    pair.is_read = True
    pair.slave.offsets.commit("Billing", "Orders", 0, 99)
    pair.move()
    pair.master.offsets.commit("Billing", "Orders", 1, 3)
    pair.master.offsets.delete_group("Shipping")
    pair.move()
    pair.grow_logs()
    assert pair.slave.offsets.table().offset_table == {"Orders@Billing": {0: 99}}
    # A group that came to be known without its offsets would begin anew.
    assert (pair.slave.topics.table, pair.slave.groups.table) == before
    assert pair.slave.delays.levels.next_offset(3) == 9
    assert pair.sink.told_kinds == frozenset(TableKind)
    pair.is_read = False
    assert pair.slave.offsets.find("Billing", "Orders", 0) == 99
    pair.sink.on_appended()
    assert _tables(pair.slave) == _tables(pair.master)


def test_topics_that_waited_on_a_link_that_ended_are_told_again_on_the_next(pair: _Pair) -> None:
    _fill(pair.master)
    pair.is_read = True
    pair.move()
    pair.sink.begin()
    pair.is_read = False
    pair.sink.on_appended()
    assert pair.slave.topics.find("Orders") is None
    pair.connect()
    pair.move()
    assert pair.slave.topics.table == pair.master.topics.table


def test_what_came_while_a_slave_was_read_counts_together_or_not_at_all(pair: _Pair) -> None:
    """Else its groups would stand for a while where the master had them before it adopted the slave's."""
    pair.master.offsets.commit("G", "T", 0, 5)
    pair.grow_logs(master=1)
    pair.is_read = True
    pair.move()
    pair.grow_logs(master=1)
    pair.slave.offsets.commit("G", "T", 0, 8)
    pair.master.offsets.adopt(pair.slave.offsets.changed_since({}))
    pair.master.offsets.commit("H", "T", 0, 1)
    pair.move()
    pair.is_read = False
    pair.grow_logs(slave=1)
    assert pair.slave.offsets.table().offset_table == {"T@G": {0: 8}}
    pair.grow_logs(slave=1)
    assert pair.slave.offsets.table().offset_table == {"T@G": {0: 8}, "T@H": {0: 1}}


def test_names_that_come_and_go_while_a_slave_is_read_take_no_room(pair: _Pair) -> None:
    pair.is_read = True
    pair.move()
    for number in range(20):
        pair.master.offsets.commit(f"G{number}", "T", 0, 5)
        pair.move()
        pair.master.offsets.delete_group(f"G{number}")
        pair.move()
    held = pair.sink._offsets.take(pair.slave.store.log.log_end)
    assert held is not None
    assert held.is_whole
    assert held.entries == {}


# The link


def test_a_closed_feed_costs_its_master_nothing_and_can_be_closed_again(pair: _Pair) -> None:
    pair.move()
    pair.feed.close()
    pair.feed.close()
    _fill(pair.master)
    assert pair.woken == 0
    assert not any(
        (
            pair.master.topics.watchers,
            pair.master.groups.watchers,
            pair.master.offsets.watchers,
            pair.master.delays.levels.watchers,
        )
    )


def test_a_table_that_changes_all_the_time_does_not_hold_up_the_others(pair: _Pair) -> None:
    pair.move()
    pair.master.topics.put(TopicConfig(topic_name="Before"))
    pair.master.offsets.commit("G", "T", 0, 1)
    kinds: list[TableKind] = []
    for number in range(3):
        change = pair.feed.take()
        assert change is not None
        kinds.append(decode_piece(change).kind)
        pair.master.topics.put(TopicConfig(topic_name=f"T{number}"))
    assert kinds == [TableKind.TOPICS, TableKind.OFFSETS, TableKind.TOPICS]


def _piece(kind: TableKind, *, is_whole: bool = True, is_first: bool = True, is_last: bool = True) -> bytes:
    return encode_piece(
        TablePiece(
            kind=kind,
            is_whole=is_whole,
            is_first=is_first,
            is_last=is_last,
            log_end=0,
            version=TopicConfigTable().data_version,
        )
    )


@pytest.mark.parametrize(
    "changes",
    [
        [b""],
        [b"\xc1"],
        [_piece(TableKind.TOPICS)[:-1]],
        [_piece(TableKind.TOPICS, is_first=False)],
        [_piece(TableKind.TOPICS, is_last=False), _piece(TableKind.TOPICS)],
        [_piece(TableKind.TOPICS, is_last=False), _piece(TableKind.GROUPS, is_first=False)],
        [_piece(TableKind.OFFSETS, is_whole=False)],
        [_piece(TableKind.DELAYS), _piece(TableKind.DELAYS, is_whole=False)],
    ],
)
def test_what_is_no_change_or_comes_out_of_turn_is_an_error_of_the_peer(
    pair: _Pair, changes: list[bytes]
) -> None:
    before = pair.slave.topics.table
    *earlier, last = changes
    for change in earlier:
        pair.sink.apply(change)
    with pytest.raises(RemoteProtocolError):
        pair.sink.apply(last)
    assert pair.slave.topics.table is before


def test_what_was_taken_over_is_saved_and_survives_a_restart(pair: _Pair, tmp_path: Path) -> None:
    _fill(pair.master)
    pair.move()
    for start_save in (
        pair.slave.topics.start_save,
        pair.slave.groups.start_save,
        pair.slave.offsets.start_save,
        pair.slave.delays.start_save_levels,
    ):
        finish = start_save()
        assert finish is not None
        finish()
        assert start_save() is None
    expected: tuple[SubscriptionGroupTable, object] = (pair.slave.groups.table, pair.slave.offsets.table())
    pair.slave.store.close()
    again = open_state(tmp_path / "slave")
    assert (again.groups.table, again.offsets.table()) == expected
    assert again.topics.table == pair.master.topics.table
    assert again.delays.levels.next_offset(3) == 9


def test_a_slave_is_asked_behind_all_that_has_changed_before(pair: _Pair) -> None:
    pair.move()
    pair.master.offsets.commit("Billing", "Orders", 0, 17)
    pair.feed.ask(5)
    pair.master.offsets.commit("Billing", "Orders", 0, 18)
    asked: list[int] = []
    while (change := pair.feed.take()) is not None:
        asked.append(pair.sink.apply(change))
        if asked[-1]:
            assert pair.slave.offsets.find("Billing", "Orders", 0) == 18
    assert [number for number in asked if number] == [5]


def test_a_slave_that_comes_while_somebody_waits_is_asked_too(pair: _Pair) -> None:
    pair.master.table_safety.asked = 3
    pair.connect()
    assert pair.move()[-1].question == 3
