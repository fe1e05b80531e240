"""Consumer groups."""

import msgspec
import pytest

from tanist.model.groups import ConsumeFromWhere, SubscriptionGroupConfig


def test_a_new_group_has_rocketmqs_defaults() -> None:
    group = SubscriptionGroupConfig(group_name="G")
    assert msgspec.to_builtins(group) == {
        "groupName": "G",
        "consumeEnable": True,
        "consumeFromMinEnable": True,
        "consumeBroadcastEnable": True,
        "consumeMessageOrderly": False,
        "notifyConsumerIdsChangedEnable": True,
        "retryQueueNums": 1,
        "retryMaxTimes": 16,
        "brokerId": 0,
        "whichBrokerWhenConsumeSlowly": 1,
        "consumeTimeoutMinute": 15,
        "groupSysFlag": 0,
        "groupRetryPolicy": {"type": "CUSTOMIZED"},
        "subscriptionDataSet": None,
        "attributes": {},
    }


def test_two_groups_do_not_share_their_tables() -> None:
    one, other = SubscriptionGroupConfig(group_name="A"), SubscriptionGroupConfig(group_name="B")
    one.attributes["k"] = "v"
    one.group_retry_policy["type"] = "EXPONENTIAL"
    assert other == SubscriptionGroupConfig(group_name="B")


@pytest.mark.parametrize(
    "name",
    [
        "CONSUME_FROM_LAST_OFFSET",
        "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
        "CONSUME_FROM_MIN_OFFSET",
        "CONSUME_FROM_MAX_OFFSET",
    ],
)
def test_the_old_names_of_the_last_offset_still_mean_it(name: str) -> None:
    assert msgspec.convert(name, ConsumeFromWhere) is ConsumeFromWhere.LAST_OFFSET


def test_an_unknown_start_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert("CONSUME_FROM_THE_MOON", ConsumeFromWhere)
