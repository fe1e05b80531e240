from pathlib import Path

import msgspec
import pytest

from tanist.broker.groups import GroupTable
from tanist.errors import ResponseError
from tanist.model.groups import SubscriptionGroupConfig
from tanist.protocol.bodies.sync import SubscriptionGroupTable
from tanist.store.config_table import ConfigTable
from tanist.store.disk import Disk
from tests.support import golden
from tests.support.broker_tables import SETTINGS, open_groups
from tests.support.clocks import FakeClock
from tests.support.failing_disk import FailingDisk

BILLING = SubscriptionGroupConfig(group_name="Billing", retry_max_times=3)
NO_AUTO_CREATE = msgspec.structs.replace(SETTINGS, auto_create_subscription_group=False)


@pytest.fixture
def groups(tmp_path: Path) -> GroupTable:
    return open_groups(tmp_path)


def _saved(root: Path) -> SubscriptionGroupTable:
    return ConfigTable(Disk(), root, SubscriptionGroupTable).load()


def test_the_system_groups_are_those_of_a_new_rocketmq_broker(groups: GroupTable) -> None:
    kept = golden.load("config_files")["subscription_group"]["value"]["subscriptionGroupTable"]
    kept.pop("GroupA")  # The one group in the kept file that an operator made.
    assert groups.table.groups.keys() == kept.keys()


def test_a_first_start_is_one_change_and_a_second_none(tmp_path: Path) -> None:
    first = open_groups(tmp_path)
    assert first.data_version.counter == 1
    assert _saved(tmp_path) == first.table
    assert open_groups(tmp_path, clock=FakeClock(now_ms=1_800_000_000_000)).table == first.table


def test_a_group_is_found_saved_and_has_its_own_version(tmp_path: Path, groups: GroupTable) -> None:
    before = groups.data_version
    groups.put(BILLING)
    assert groups.find("Billing") == BILLING
    assert groups.data_version.counter == before.counter + 1
    assert _saved(tmp_path) == groups.table


def test_many_groups_come_in_one_change_or_none_of_them_does(groups: GroupTable) -> None:
    groups.put(BILLING)
    before = groups.table
    groups.settings = msgspec.structs.replace(SETTINGS, max_subscription_group_count=len(before.groups) + 2)
    changed = msgspec.structs.replace(BILLING, retry_max_times=3)
    new = [SubscriptionGroupConfig(group_name=name) for name in ("one", "two", "three")]
    with pytest.raises(ResponseError, match=f"group three .* there are {len(before.groups)} already"):
        groups.put(changed, *new)
    assert groups.table is before
    groups.put(changed, *new[:2])
    assert groups.data_version.counter == before.data_version.counter + 1
    assert groups.table.groups == {**before.groups, "Billing": changed, "one": new[0], "two": new[1]}


def test_the_same_settings_again_are_no_change(groups: GroupTable) -> None:
    groups.put(BILLING)
    table = groups.table
    groups.put(msgspec.structs.replace(BILLING))
    assert groups.table is table


def test_a_change_that_can_not_be_saved_is_not_made(tmp_path: Path) -> None:
    disk = FailingDisk()
    groups = open_groups(tmp_path, disk=disk)
    table = groups.table
    disk.is_sync_broken = True
    with pytest.raises(OSError, match="Input/output error"):
        groups.put(BILLING)
    assert groups.table is table


def test_a_group_comes_by_itself_when_it_is_needed(tmp_path: Path, groups: GroupTable) -> None:
    before = groups.data_version
    assert groups.ensure("New") == SubscriptionGroupConfig(group_name="New")
    assert groups.ensure("New") == groups.find("New")
    assert groups.data_version.counter == before.counter + 1
    assert _saved(tmp_path) == groups.table


def test_no_group_comes_by_itself_where_that_is_off(tmp_path: Path) -> None:
    groups = open_groups(tmp_path, NO_AUTO_CREATE)
    assert groups.ensure("New") is None
    groups.put(BILLING)
    assert groups.ensure("Billing") == BILLING


@pytest.mark.parametrize("group", ["", "a b", "a@b", "g" * 121])
def test_no_group_comes_with_a_name_it_may_not_have(groups: GroupTable, group: str) -> None:
    assert groups.ensure(group) is None
    assert groups.find(group) is None


def test_a_deleted_group_takes_along_what_it_was_forbidden(tmp_path: Path) -> None:
    table = SubscriptionGroupTable(
        groups={"Billing": BILLING}, forbidden_table={"Billing": {"Orders": 1}, "Other": {"Orders": 1}}
    )
    ConfigTable(Disk(), tmp_path, SubscriptionGroupTable).save(table)
    groups = open_groups(tmp_path)
    version = groups.data_version
    assert groups.delete("Billing")
    assert groups.find("Billing") is None
    assert groups.table.forbidden_table == {"Other": {"Orders": 1}}
    assert groups.data_version.counter == version.counter + 1
    assert _saved(tmp_path) == groups.table


def test_deleting_what_is_not_there_is_no_change(groups: GroupTable) -> None:
    table = groups.table
    assert not groups.delete("Billing")
    assert groups.table is table


def test_so_many_groups_there_may_be_and_no_more(tmp_path: Path) -> None:
    count = len(open_groups(tmp_path).table.groups)
    groups = open_groups(tmp_path, msgspec.structs.replace(SETTINGS, max_subscription_group_count=count + 1))
    assert "create it first" in groups.absence("New")
    groups.put(BILLING)
    assert groups.ensure("New") is None
    assert "maxSubscriptionGroupCount" in groups.absence("New")
    with pytest.raises(ResponseError, match="maxSubscriptionGroupCount"):
        groups.put(SubscriptionGroupConfig(group_name="New"))
    assert groups.ensure("Billing") == BILLING
    groups.put(msgspec.structs.replace(BILLING, retry_max_times=4))
    groups.delete("Billing")
    assert groups.ensure("New") is not None
