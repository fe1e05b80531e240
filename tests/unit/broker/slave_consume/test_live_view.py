"""Who consumed at the broker that was read before."""

import msgspec

from tanist.broker.clients import ClientTable, NotifyMembers
from tanist.broker.consumer_group import Client
from tanist.broker.locks import LOCK_LIFE_MS, QueueLocks
from tanist.broker.slave_consume.live_view import ExpectedMembers, HeldLock, LiveView, bounded
from tanist.model.groups import ConsumeFromWhere, ConsumeType, MessageModel
from tanist.model.route import MessageQueue
from tanist.protocol.bodies.client import ConsumerData, HeartbeatData, ProducerData
from tests.support.fake_connection import FakeConnection

Q0, Q1 = (MessageQueue(topic="Orders", broker_name="broker-a", queue_id=number) for number in range(2))


def _come(
    table: ClientTable,
    client_id: str,
    *groups: str,
    model: MessageModel = MessageModel.CLUSTERING,
    producer: str | None = None,
) -> FakeConnection:
    connection = FakeConnection()
    consumers = [
        ConsumerData(
            group_name=group,
            consume_type=ConsumeType.PASSIVELY,
            message_model=model,
            consume_from_where=ConsumeFromWhere.LAST_OFFSET,
        )
        for group in groups
    ]
    producers = [] if producer is None else [ProducerData(group_name=producer)]
    heartbeat = HeartbeatData(client_id=client_id, consumer_data_set=consumers, producer_data_set=producers)
    table.on_heartbeat(Client(connection, client_id, "JAVA", 479), heartbeat, now_ms=0)
    return connection


def test_a_view_survives_its_way_to_the_other_broker() -> None:
    view = LiveView(
        members={"billing": ("a", "b")},
        locks={"billing": (HeldLock(queue=Q0, client_id="a", left_ms=5),)},
    )
    assert msgspec.json.decode(msgspec.json.encode(view), type=LiveView) == view


def test_what_is_told_is_bounded_and_leaves_out_whole_groups() -> None:
    many = tuple(f"client-{number}" for number in range(100))
    lock = HeldLock(queue=Q0, client_id="a", left_ms=5)
    view = LiveView(
        members={"large": many, "wide": ("a",), "small": ("a",)},
        topics={"wide": many, "small": ("T",)},
        locks={"large": (lock,) * 50, "small": (lock,)},
    )
    assert bounded(view, max_bytes=180) == LiveView(
        members={"small": ("a",)}, topics={"small": ("T",)}, locks={"small": (lock,)}
    )
    assert bounded(view) == view


def test_only_groups_that_share_their_queues_are_told() -> None:
    table = ClientTable()
    _come(table, "b", "billing")
    _come(table, "a", "billing", "audit")
    _come(table, "c", "news", model=MessageModel.BROADCASTING)
    assert table.members() == {"billing": ("a", "b"), "audit": ("a",)}


def test_the_first_to_come_sees_the_others_in_the_list_until_they_have_come() -> None:
    table = ClientTable()
    table.expect({"billing": ["a", "b", "c"]})
    assert table.member_ids("billing") == []
    _come(table, "b", "billing")
    assert table.member_ids("billing") == ["a", "b", "c"]
    _come(table, "a", "billing")
    here = _come(table, "c", "billing")
    assert table.member_ids("billing") == ["a", "b", "c"]
    table.on_lost(here)
    assert table.member_ids("billing") == ["a", "b"]


def test_whoever_came_before_the_view_did_is_not_waited_for() -> None:
    table = ClientTable()
    here = _come(table, "a", "billing")
    _come(table, "b", "billing")
    table.expect({"billing": ["a", "b"]})
    table.on_lost(here)
    assert table.member_ids("billing") == ["b"]


def test_those_who_are_there_are_told_when_nobody_is_expected_any_more() -> None:
    table = ClientTable()
    table.expect({"billing": ["a", "gone"], "empty": ["gone"], "whole": ["a"]})
    here = _come(table, "a", "billing", "whole")
    assert table.on_expected_over() == [NotifyMembers("billing", (here,))]
    assert table.member_ids("billing") == ["a"]
    assert table.on_expected_over() == []


def test_whoever_was_not_expected_changes_nothing() -> None:
    expected = ExpectedMembers()
    expected.expect({"billing": ["a"]})
    expected.on_came("billing", "stranger")
    expected.on_came("audit", "a")
    assert expected.missing("billing") == {"a"}
    assert expected.missing("audit") == set()


def test_all_consumers_go_at_once_and_producers_stay() -> None:
    def nobody(_client: Client) -> bool:
        return False

    table = ClientTable()
    consuming = _come(table, "a", "billing", "audit")
    both = _come(table, "b", "billing", producer="orders")
    _come(table, "c", producer="orders")
    assert table.forget_consumers(nobody) == [consuming, both]
    assert table.members() == {}
    producers = table.producer_connections("orders")
    assert producers is not None
    assert {one.client_id for one in producers.connections} == {"b", "c"}
    assert table.on_lost(consuming) == table.on_lost(both) == []
    assert table.forget_consumers(nobody) == []


def test_locks_are_taken_over_for_the_time_that_they_have_left() -> None:
    before, after = QueueLocks(), QueueLocks()
    before.lock("billing", [Q0], client_id="a", now_ms=1_000)
    before.lock("billing", [Q1], client_id="b", now_ms=-LOCK_LIFE_MS)
    held = before.held(now_ms=21_000)
    assert held == {"billing": (HeldLock(queue=Q0, client_id="a", left_ms=LOCK_LIFE_MS - 20_000),)}
    # The other broker's clock is another one.
    after.seed(held, now_ms=500_000)
    assert after.lock("billing", [Q0], client_id="b", now_ms=540_000) == []
    assert after.lock("billing", [Q0], client_id="b", now_ms=540_001) == [Q0]


def test_a_lock_that_was_given_here_since_stays() -> None:
    locks = QueueLocks()
    locks.lock("billing", [Q0], client_id="here", now_ms=0)
    locks.seed({"billing": (HeldLock(queue=Q0, client_id="before", left_ms=9_000),)}, now_ms=0)
    assert locks.lock("billing", [Q0], client_id="before", now_ms=1) == []
    assert len(locks) == 1


def test_nobody_holds_a_lock_that_was_forgotten() -> None:
    locks = QueueLocks()
    locks.lock("billing", [Q0], client_id="a", now_ms=0)
    locks.clear()
    assert (len(locks), locks.held(now_ms=0)) == (0, {})
