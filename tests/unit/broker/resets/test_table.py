import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tanist.broker.consumer_group import Client
from tanist.broker.resets import table as tables
from tanist.broker.resets.actions import TellClient
from tanist.broker.resets.moment import Moment
from tanist.broker.resets.order import GroupStanding, ResetOrder
from tanist.broker.resets.order_file import OrderFile, decode_order, encode_order
from tanist.broker.resets.table import OrderTable
from tanist.broker.resets.watch import PATIENCE_MS, Commit
from tanist.errors import ResponseError
from tanist.model.offsets import QueueOffset
from tanist.protocol.bodies.reset import QueueTarget, ReceiptState, ResetOrderView, ResetState
from tanist.store.disk import Disk
from tests.support.fake_connection import FakeConnection

NOBODY = GroupStanding(
    stands_at=lambda _queue_id: 8,
    move=lambda _targets: None,
    members=[],
    is_broadcast=False,
    is_model_known=True,
    readable_count=1,
    is_server_side=False,
)


def _order(
    order_id: str,
    state: ResetState = ResetState.APPLIED,
    group: str = "G",
    queues: Sequence[int] = (0,),
) -> ResetOrder:
    return ResetOrder(
        ResetOrderView(
            order_id=order_id,
            topic="T",
            group=group,
            broker_name="broker-a",
            state=state,
            caller="ann",
            caller_address="10.9.9.9:1",
            created_ms=0,
            expires_ms=10**9,
            targets=[
                QueueTarget(queue_id=queue_id, expected_offset=QueueOffset(8), target=QueueOffset(3))
                for queue_id in queues
            ],
        )
    )


def _apply(table: OrderTable, order: ResetOrder, now_ms: int = 0) -> None:
    table.apply(table.add(order, now_ms), NOBODY, Moment(now_ms, now_ms))


def test_the_oldest_order_that_is_done_with_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_ORDERS", 2)
    table = OrderTable()
    _apply(table, _order("done"))
    table.add(_order("waiting", ResetState.WAITING), 0)
    table.on_tick(Moment(0, PATIENCE_MS + 1))
    assert table.watched == {}
    _apply(table, _order("new"))
    assert [order.order_id for order in table.orders()] == ["waiting", "new"]


def test_an_order_for_which_there_is_no_room_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_ORDERS", 2)
    table = OrderTable()
    table.add(_order("waiting", ResetState.WAITING), 0)
    _apply(table, _order("watched"))
    with pytest.raises(ResponseError, match="2 orders are under way"):
        table.add(_order("new", group="Other"), 0)
    assert [order.order_id for order in table.orders()] == ["waiting", "watched"]


def test_offsets_for_which_there_is_no_room_leave_no_order_behind() -> None:
    def move(_targets: object) -> None:
        raise ResponseError(2, "[OVERLOAD] groups have too many offsets")

    table = OrderTable()
    order = table.add(_order("o1"), 0)
    standing = GroupStanding(
        stands_at=NOBODY.stands_at,
        move=move,
        members=[],
        is_broadcast=False,
        is_model_known=True,
        readable_count=1,
        is_server_side=False,
    )
    with pytest.raises(ResponseError, match="OVERLOAD"):
        table.apply(order, standing, Moment(0, 0))
    assert (table.orders(), table.watched) == ([], {})


def test_the_version_grows_with_each_change_and_watchers_hear_which() -> None:
    table = OrderTable()
    heard: list[str] = []
    table.watchers.append(heard.extend)
    before = table.version
    _apply(table, _order("o1"))
    assert table.version > before
    assert set(heard) == {"o1"}


def test_nothing_is_held_back_for_a_client_that_was_told_by_another_process() -> None:
    client = Client(FakeConnection("10.0.0.1:1"), "c1", "JAVA", 479)
    standing = dataclasses.replace(NOBODY, members=[(client, False)])
    table = OrderTable()
    order = table.add(_order("o1"), 0)
    table.apply(order, standing, Moment(10**12, 0))
    watch = ResetOrder.restored(order.saved()).watch
    assert watch is not None
    stale = Commit(FakeConnection("10.0.0.1:2"), 0, 8, is_one_way=True)
    assert watch.may_commit(stale, Moment(0, 1), lambda: None)[0]


def test_an_order_goes_on_with_the_queues_that_a_newer_one_leaves_it() -> None:
    client, late = (Client(FakeConnection(f"10.0.0.{n}:1"), f"c{n}", "JAVA", 479) for n in (1, 2))
    standing = dataclasses.replace(NOBODY, members=[(client, False), (late, False)])
    table, now = OrderTable(), Moment(0, 0)
    first, second = _order("o1", queues=(0, 1)), _order("o2", queues=(1, 2))
    table.apply(table.add(first, 0), standing, now)
    assert first.watch is not None
    first.watch.on_standing(client.connection, {0: 8, 1: 8}, now)
    first.watch.on_standing(late.connection, {1: 8}, now)
    table.apply(table.add(second, 0), standing, now)
    assert (first.record.state, first.watch.targets) == (ResetState.APPLIED, {0: 3})
    assert first.watch in table.watched["G", "T"]
    assert [it.state for it in first.watch.receipts] == [ReceiptState.TOLD, ReceiptState.FAILED]
    restored = ResetOrder.restored(first.saved()).watch
    assert restored is not None
    assert restored.targets == {0: 3}
    table.apply(table.add(_order("o3", queues=(0,)), 0), standing, now)
    assert first.record.state is ResetState.EXPIRED


def test_who_comes_is_told_of_the_queues_that_a_newer_order_leaves() -> None:
    member, late = (Client(FakeConnection(f"10.0.0.{n}:1"), f"c{n}", "JAVA", 479) for n in (1, 2))
    # The group's last pulls had ended where it is ordered to.
    standing = dataclasses.replace(
        NOBODY, members=[(member, False)], is_broadcast=True, pulled_to={0: 3, 1: 3}.get
    )
    table, now = OrderTable(), Moment(0, 0)
    first, second = _order("o1", queues=(0, 1)), _order("o2", queues=(1,))
    for order in (first, second):
        table.apply(table.add(order, 0), standing, now)
    assert first.watch is not None
    told = first.watch.on_member(late, now, is_broadcast=True)
    assert [action.watch.targets for action in told if isinstance(action, TellClient)] == [{0: 3}]


def test_a_group_has_only_so_many_orders_that_go_on_beside_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tables, "MAX_GROUP_ORDERS", 2)
    table = OrderTable()
    table.add(_order("waiting", ResetState.WAITING, queues=(1,)), 0)
    _apply(table, _order("watched"))
    with pytest.raises(ResponseError, match="group G has 2 orders under way"):
        table.add(_order("new", queues=(1,)), 0)
    _apply(table, _order("of another group", group="Other"))
    _apply(table, _order("supersedes"))


def _restarted(table: OrderTable) -> OrderTable:
    """A table that knows these orders from before it was there."""
    later = OrderTable()
    kept = [encode_order(order.saved()) for order in table.orders()]
    later.follow([decode_order(order) for order in kept], (), is_ours=True)
    return later


def _told(table: OrderTable, client: Client, now: Moment) -> list[str]:
    """The orders that a member is told which comes, and pulls from elsewhere than any says."""
    watches = [*table.watched.get(("G", "T"), ())]
    for watch in watches:
        watch.on_member(client, now, is_broadcast=False)
    actions = [
        action
        for watch in watches
        for action in watch.on_pull(client.connection, 0, 9, 9, now=now, find_member=lambda: client)
    ]
    return [action.watch.order_id for action in actions if isinstance(action, TellClient)]


def test_a_member_that_was_not_there_when_its_broker_went_down_soon_after_an_order_is_told() -> None:
    table, client = OrderTable(), Client(FakeConnection("10.0.0.1:1"), "c1", "PYTHON", 479)
    _apply(table, _order("o1"))
    later = _restarted(table)
    # The steady clock begins anew, and to come up takes as long as it takes.
    later.on_tick(Moment(10**8, 4))
    assert _told(later, client, Moment(10**8, 5)) == ["o1"]


def test_a_crash_in_the_middle_of_a_newer_order_has_nobody_told_the_older_one(tmp_path: Path) -> None:
    client = Client(FakeConnection("10.0.0.1:1"), "c1", "PYTHON", 479)
    broadcasting = dataclasses.replace(NOBODY, is_broadcast=True)
    table = OrderTable(OrderFile(Disk(), tmp_path))
    for order_id in ("o1", "o2"):
        table.apply(table.add(_order(order_id), 0), broadcasting, Moment(0, 0))
    # What is done after the offsets are set is not saved yet.
    later = OrderTable(OrderFile(Disk(), tmp_path))
    watches = [*later.watched["G", "T"]]
    told = [
        action for watch in watches for action in watch.on_member(client, Moment(0, 5), is_broadcast=True)
    ]
    assert [action.watch.order_id for action in told if isinstance(action, TellClient)] == ["o2"]


def test_an_order_that_the_offsets_have_no_room_for_supersedes_none() -> None:
    def refuse(_targets: Mapping[int, int]) -> None:
        raise ResponseError(2, "no room")

    table, client = OrderTable(), Client(FakeConnection("10.0.0.1:1"), "c1", "PYTHON", 479)
    _apply(table, _order("o1"))
    with pytest.raises(ResponseError, match="no room"):
        table.apply(table.add(_order("o2"), 0), dataclasses.replace(NOBODY, move=refuse), Moment(0, 0))
    assert _told(_restarted(table), client, Moment(0, 5)) == ["o1"]


def test_a_member_is_told_when_its_broker_went_down_before_it_had_told_anybody(tmp_path: Path) -> None:
    class Crash(Exception):
        """The broker is gone in the moment in which the offsets are set."""

    def crash(_targets: Mapping[int, int]) -> None:
        raise Crash

    client = Client(FakeConnection("10.0.0.1:1"), "c1", "PYTHON", 479)
    table, order = OrderTable(OrderFile(Disk(), tmp_path)), _order("o1")
    with pytest.raises(Crash):
        table.apply(table.add(order, 0), dataclasses.replace(NOBODY, move=crash), Moment(0, 0))
    later = OrderTable(OrderFile(Disk(), tmp_path))
    later.on_tick(Moment(0, 4))
    assert _told(later, client, Moment(0, 5)) == ["o1"]


def test_after_a_restart_strangers_are_judged_for_no_longer_than_before() -> None:
    table, client = OrderTable(), Client(FakeConnection("10.0.0.1:1"), "c1", "PYTHON", 479)
    _apply(table, _order("o1"))
    later = _restarted(table)
    later.on_tick(Moment(0, 5))
    assert _told(later, client, Moment(0, PATIENCE_MS + 6)) == []


def test_when_the_time_to_judge_is_over_who_knows_the_order_too_hears_so() -> None:
    table, client = OrderTable(), Client(FakeConnection("10.0.0.1:1"), "c1", "PYTHON", 479)
    order = _order("o1")
    _apply(table, order)
    heard: list[str] = []
    table.watchers.append(heard.extend)
    for _ in range(2):
        table.on_tick(Moment(0, PATIENCE_MS + 1))
    assert heard == ["o1"]
    assert _told(_restarted(table), client, Moment(0, 5)) == []


def test_an_order_that_is_superseded_is_told_to_nobody_after_a_restart() -> None:
    table, client = OrderTable(), Client(FakeConnection("10.0.0.1:1"), "c1", "PYTHON", 479)
    _apply(table, _order("o1"))
    _apply(table, _order("o2"))
    assert _told(_restarted(table), client, Moment(0, 5)) == ["o2"]
