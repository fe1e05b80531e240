import pytest

from tanist.broker.slave_reads import is_behind, suggested_broker_id
from tanist.model.groups import SubscriptionGroupConfig

GROUP = SubscriptionGroupConfig(group_name="G", broker_id=2, slow_broker_id=3)


@pytest.mark.parametrize(("read_to", "expected"), [(899, True), (900, False), (1000, False), (None, False)])
def test_who_reads_what_memory_does_not_hold_is_behind(read_to: int | None, expected: bool) -> None:
    assert is_behind(read_to=read_to, log_end=1000, hot_bytes=100) is expected


@pytest.mark.parametrize(
    ("is_enabled", "is_late", "expected"),
    [(False, False, 0), (False, True, 0), (True, False, 2), (True, True, 3)],
)
def test_a_group_says_where_to_go_if_slaves_may_be_read(
    is_enabled: bool, is_late: bool, expected: int
) -> None:
    found = suggested_broker_id(GROUP, is_slave_read_enabled=is_enabled, is_behind=is_late)
    assert found == expected


def test_by_default_a_slow_group_goes_to_the_first_slave_and_a_quick_one_to_the_master() -> None:
    group = SubscriptionGroupConfig(group_name="G")
    found = [suggested_broker_id(group, is_slave_read_enabled=True, is_behind=late) for late in (False, True)]
    assert found == [0, 1]
