import pytest

from tanist.broker.controlled.group_view import GroupView
from tanist.broker.controlled.orders import MasterOrder, SetOrder, SlaveOrder
from tanist.broker.controlled.role_orders import Elect, RoleOrders
from tanist.broker.master_place import MasterPlace

ME, OTHER = 2, 1
AT = "10.0.0.1:10911"
HA_AT = "10.0.0.1:10912"


def _master(
    epoch: int, master_id: int = ME, *members: int, set_epoch: int = 1, ha: str | None = HA_AT
) -> GroupView:
    return GroupView(epoch, master_id, AT, ha, frozenset(members or (master_id,)), set_epoch)


def _orders(*views: GroupView) -> RoleOrders:
    orders = RoleOrders(ME)
    for view in views:
        orders.on_view(view, log_epoch=0)
    return orders


@pytest.mark.behaviour("S2-45")
def test_who_is_named_is_master_and_nobody_else() -> None:
    orders = RoleOrders(ME)
    assert not orders.is_master
    assert orders.on_view(_master(1, ME, 1, 2, set_epoch=4), log_epoch=0) == MasterOrder(
        1, frozenset({1, 2}), 4
    )
    assert orders.is_master
    assert orders.on_view(_master(2, OTHER), log_epoch=0) == SlaveOrder(2, OTHER, MasterPlace(AT, HA_AT), AT)
    assert not orders.is_master


@pytest.mark.behaviour("S2-45")
def test_without_a_master_the_controller_is_asked_to_choose_and_the_role_stays() -> None:
    orders = _orders(_master(3))
    assert orders.on_view(GroupView(4), log_epoch=0) == Elect()
    assert (orders.epoch, orders.is_master) == (3, True)


def test_who_registers_while_nobody_is_master_is_told_no_epoch_and_offers_itself() -> None:
    assert RoleOrders(ME).on_view(GroupView(0), log_epoch=7) == Elect()


def test_where_slaves_connect_is_left_to_name_servers_if_the_controller_does_not_tell() -> None:
    order = RoleOrders(ME).on_view(_master(1, OTHER, ha=None), log_epoch=0)
    assert order == SlaveOrder(1, OTHER, None, AT)


@pytest.mark.behaviour("S2-46")
@pytest.mark.known_bug("RMQ #9689", "RMQ #9942")
def test_the_same_master_begins_a_new_reign_with_a_new_epoch() -> None:
    assert _orders(_master(3)).on_view(_master(4), log_epoch=3) == MasterOrder(4, frozenset({ME}), 1)
    slave = _orders(_master(3, OTHER))
    assert slave.on_view(_master(4, OTHER), log_epoch=3) == SlaveOrder(4, OTHER, MasterPlace(AT, HA_AT), AT)


def test_what_is_known_is_no_order() -> None:
    assert _orders(_master(3)).on_view(_master(3), log_epoch=3) is None
    assert _orders(_master(3, OTHER)).on_view(_master(3, OTHER, set_epoch=9), log_epoch=3) is None


@pytest.mark.behaviour("S2-48")
@pytest.mark.parametrize("view", [_master(2), _master(2, OTHER), GroupView(2)])
def test_an_order_of_a_lower_epoch_is_refused_and_counted(view: GroupView) -> None:
    orders = _orders(_master(3))
    assert orders.on_view(view, log_epoch=3) is None
    assert (orders.epoch, orders.is_master, orders.refused_count) == (3, True, 1)
    assert orders.refusal is not None
    assert "epoch 2 after 3" in orders.refusal


@pytest.mark.behaviour("S2-48")
def test_a_new_process_refuses_an_epoch_that_is_lower_than_its_logs() -> None:
    orders = RoleOrders(ME)
    assert orders.on_view(_master(1), log_epoch=7) is None
    assert orders.refusal is not None
    assert "our log has 7" in orders.refusal
    assert orders.on_view(_master(7), log_epoch=7) == MasterOrder(7, frozenset({ME}), 1)
    assert orders.refusal is None


def test_two_masters_of_one_epoch_are_refused() -> None:
    orders = _orders(_master(3, OTHER))
    assert orders.on_view(_master(3), log_epoch=3) is None
    assert (orders.is_master, orders.refused_count) == (False, 1)


def test_a_master_is_told_of_a_newer_set_and_of_no_older_one() -> None:
    orders = _orders(_master(3, set_epoch=2))
    assert orders.on_view(_master(3, ME, 1, 2, set_epoch=3), log_epoch=3) == SetOrder(3, frozenset({1, 2}), 3)
    assert orders.on_view(_master(3, ME, 1, 2, set_epoch=3), log_epoch=3) is None
    orders.on_set_altered(5)
    assert orders.on_view(_master(3, ME, 1, 2, set_epoch=4), log_epoch=3) is None
    assert orders.refused_count == 1


def test_a_set_without_its_master_is_refused() -> None:
    orders = RoleOrders(ME)
    assert orders.on_view(_master(3, ME, OTHER), log_epoch=0) is None
    assert (orders.epoch, orders.refused_count) == (0, 1)
