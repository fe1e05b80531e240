import pytest

from tanist.broker.slave_reads import is_behind, suggested_broker_id
from tanist.model.groups import SubscriptionGroupConfig


@pytest.mark.parametrize(("read_to", "expected"), [(899, True), (900, False), (1000, False), (None, False)])
def test_who_reads_what_memory_does_not_hold_is_behind(read_to: int | None, *, expected: bool) -> None:
    assert is_behind(read_to=read_to, log_end=1000, hot_bytes=100) is expected


def test_a_group_says_where_its_members_go_when_they_are_behind_and_when_not() -> None:
    group = SubscriptionGroupConfig(group_name="G", broker_id=2, slow_broker_id=3)
    assert [suggested_broker_id(group, is_behind=late) for late in (False, True)] == [2, 3]


def test_by_default_a_slow_group_goes_to_the_first_slave_and_a_quick_one_to_the_master() -> None:
    group = SubscriptionGroupConfig(group_name="G")
    assert [suggested_broker_id(group, is_behind=late) for late in (False, True)] == [0, 1]
