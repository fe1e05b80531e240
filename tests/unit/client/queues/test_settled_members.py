from tanist.client.queues.settled_members import SETTLE_S, SettledMembers


def test_members_are_those_that_a_broker_lists() -> None:
    members = SettledMembers()
    assert members.take("T", ["a", "b"], 1000.0) == (["a", "b"], True)
    assert members.take("T", ["a"], 1001.0) == (["a"], True)


def test_who_was_a_member_counts_for_a_while_where_a_group_is_read_next() -> None:
    members = SettledMembers()
    members.take("T", ["a", "b"], 1000.0)
    members.on_reader(1001.0)
    assert members.take("T", ["a"], 1001.1) == (["a", "b"], False)
    assert members.take("T", ["a", "c"], 1002.0) == (["a", "c", "b"], False)
    assert members.take("T", ["c", "a", "b"], 1003.0) == (["c", "a", "b"], True)
    assert members.take("T", ["a"], 1001.0 + SETTLE_S) == (["a"], True)


def test_each_topic_has_members_of_its_own() -> None:
    members = SettledMembers()
    members.take("T", ["a", "b"], 1000.0)
    members.on_reader(1001.0)
    assert members.take("U", ["a"], 1001.0) == (["a"], True)
