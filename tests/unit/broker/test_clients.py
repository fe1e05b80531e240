"""Who is connected, what they want, and who is told about it."""

from typing import Any

import pytest

from tanist.broker import client_limits
from tanist.broker.clients import (
    SILENCE_LIMIT_MS,
    Action,
    AskForSubscriptions,
    ClientTable,
    CloseConnection,
    EnsureGroup,
    NotifyMembers,
)
from tanist.broker.consumer_group import Client
from tanist.errors import ResponseError
from tanist.model.groups import ConsumeFromWhere, ConsumeType, MessageModel
from tanist.model.subscription import SubscriptionData, subscribe
from tanist.protocol.bodies import decode_java_json
from tanist.protocol.bodies.client import ConsumerData, HeartbeatData, ProducerData
from tanist.protocol.codes import ResponseCode
from tests.support import golden
from tests.support.fake_connection import FakeConnection

NOW = 1_700_000_000_000


def consumer(group: str = "G", *topics: str | SubscriptionData, **fields: Any) -> ConsumerData:
    """A group that wants everything of each topic; version 1 unless it is given whole."""
    wanted = [subscribe(one, "*", sub_version=1) if isinstance(one, str) else one for one in topics]
    defaults: dict[str, Any] = {
        "consume_type": ConsumeType.PASSIVELY,
        "message_model": MessageModel.CLUSTERING,
        "consume_from_where": ConsumeFromWhere.LAST_OFFSET,
    }
    return ConsumerData(group_name=group, subscription_data_set=wanted, **(defaults | fields))


class Room:
    """A table and the clients that talk to it."""

    def __init__(self, *, is_master: bool = True) -> None:
        self.table = ClientTable(is_master=is_master)

    def beat(
        self,
        connection: FakeConnection,
        *consumers: ConsumerData,
        producers: tuple[str, ...] = (),
        client_id: str = "",
        now_ms: int = NOW,
        **fields: Any,
    ) -> list[Action]:
        """One heartbeat. A connection that names no client id has its peer for one."""
        heartbeat = HeartbeatData(
            client_id=client_id or connection.peer,
            consumer_data_set=list(consumers),
            producer_data_set=[ProducerData(group_name=group) for group in producers],
            **fields,
        )
        client = Client(connection, heartbeat.client_id, "JAVA", 479)
        return self.table.on_heartbeat(client, heartbeat, now_ms=now_ms)

    def subscription(self, topic: str, *, sub_version: int = 1) -> SubscriptionData:
        return self.table.subscription("G", topic, sub_version=sub_version, is_broadcast_allowed=True)


@pytest.fixture
def room() -> Room:
    return Room()


@pytest.fixture
def first() -> FakeConnection:
    return FakeConnection("127.0.0.1:1")


@pytest.fixture
def second() -> FakeConnection:
    return FakeConnection("127.0.0.1:2")


def notices(actions: list[Action]) -> list[Action]:
    return [action for action in actions if isinstance(action, NotifyMembers)]


# Coming.


def test_what_a_real_client_says_of_itself_is_known_afterwards(first: FakeConnection) -> None:
    body = golden.load("bodies")["heartbeat_data"]["text"].encode()
    heartbeat = decode_java_json(body, HeartbeatData)
    table = ClientTable()
    table.on_heartbeat(Client(first, heartbeat.client_id, "JAVA", 479), heartbeat, now_ms=NOW)
    assert table.member_ids("GroupA") == ["10.0.0.5@1234#5678"]
    found = table.subscription("GroupA", "TopicA", sub_version=1700000000000, is_broadcast_allowed=False)
    assert found.tags == {"TagA", "TagB"}
    connections = table.consumer_connections("GroupA")
    assert connections is not None
    assert connections.message_model is MessageModel.CLUSTERING
    assert connections.consume_type is ConsumeType.PASSIVELY
    assert connections.consume_from_where is ConsumeFromWhere.LAST_OFFSET
    assert list(connections.subscription_table) == ["TopicA"]
    assert [one.client_addr for one in connections.connections] == ["127.0.0.1:1"]
    producers = table.producer_connections("ProducerA")
    assert producers is not None
    assert [one.client_id for one in producers.connections] == ["10.0.0.5@1234#5678"]


def test_every_heartbeat_of_a_consumer_wants_its_group_to_exist(room: Room, first: FakeConnection) -> None:
    assert EnsureGroup("G") in room.beat(first, consumer("G", "T"))
    assert room.beat(first, consumer("G", "T")) == [EnsureGroup("G")]
    assert EnsureGroup("U", is_unit_mode=True) in room.beat(first, consumer("U", is_unit_mode=True))


def test_a_producer_needs_nothing_and_tells_nobody(room: Room, first: FakeConnection) -> None:
    assert room.beat(first, producers=("P",)) == []


def test_all_members_are_told_when_one_joins_the_new_one_too(
    room: Room, first: FakeConnection, second: FakeConnection
) -> None:
    assert notices(room.beat(first, consumer("G", "T"))) == [NotifyMembers("G", (first,))]
    assert notices(room.beat(second, consumer("G", "T"))) == [NotifyMembers("G", (first, second))]
    assert room.table.member_ids("G") == [first.peer, second.peer]


def test_a_heartbeat_that_changes_nothing_tells_nobody(room: Room, first: FakeConnection) -> None:
    room.beat(first, consumer("G", "T"))
    assert notices(room.beat(first, consumer("G", "T"), now_ms=NOW + 30_000)) == []


def test_members_are_told_when_a_topic_comes_or_goes(room: Room, first: FakeConnection) -> None:
    room.beat(first, consumer("G", "T"))
    assert notices(room.beat(first, consumer("G", "T", "U"))) == [NotifyMembers("G", (first,))]
    assert notices(room.beat(first, consumer("G", "U"))) == [NotifyMembers("G", (first,))]


def test_another_expression_for_the_same_topics_tells_nobody(room: Room, first: FakeConnection) -> None:
    room.beat(first, consumer("G", "T"))
    assert notices(room.beat(first, consumer("G", subscribe("T", "A", sub_version=2)))) == []


def test_members_of_a_broadcasting_group_are_not_told(
    room: Room, first: FakeConnection, second: FakeConnection
) -> None:
    group = consumer("G", "T", message_model=MessageModel.BROADCASTING)
    assert notices(room.beat(first, group) + room.beat(second, group)) == []
    assert room.table.on_lost(second) == []


def test_a_slave_knows_subscriptions_but_creates_and_tells_nothing(
    first: FakeConnection, second: FakeConnection
) -> None:
    room = Room(is_master=False)
    assert room.beat(first, consumer("G", "T")) == []
    assert room.beat(second, consumer("G", "T")) == []
    assert room.subscription("T").topic == "T"
    assert room.table.on_lost(second) == []


def test_a_slave_that_becomes_master_tells_and_creates_from_then_on(first: FakeConnection) -> None:
    room = Room(is_master=False)
    room.beat(first, consumer("G", "T"))
    room.table.is_master = True
    assert room.beat(first, consumer("G", "T", "U")) == [EnsureGroup("G"), NotifyMembers("G", (first,))]


def test_two_connections_of_one_client_id_are_two_members_and_one_id(
    room: Room, first: FakeConnection, second: FakeConnection
) -> None:
    room.beat(first, consumer("G", "T"), client_id="host@DEFAULT")
    joined = room.beat(second, consumer("G", "T"), client_id="host@DEFAULT")
    assert notices(joined) == []
    assert room.table.member_ids("G") == ["host@DEFAULT"]
    assert room.table.on_lost(first) == []
    assert room.table.member_ids("G") == ["host@DEFAULT"]


def test_a_connection_that_changes_its_client_id_changes_the_membership(
    room: Room, first: FakeConnection
) -> None:
    room.beat(first, consumer("G", "T"), client_id="old")
    assert notices(room.beat(first, consumer("G", "T"), client_id="new")) == [NotifyMembers("G", (first,))]
    assert room.table.member_ids("G") == ["new"]


def test_too_many_groups_on_one_connection_are_refused_whole(
    room: Room, first: FakeConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_limits, "MAX_GROUPS_PER_CONNECTION", 2)
    room.beat(first, consumer("G", "T"), producers=("P",))
    with pytest.raises(ResponseError, match="3 groups on one connection"):
        room.beat(first, consumer("H", "T"))
    assert room.table.member_ids("H") == []
    room.beat(first, consumer("G", "T"), producers=("P",))


# Subscriptions.


def test_more_members_than_there_is_room_for_are_told_that_we_are_busy(
    room: Room, first: FakeConnection, second: FakeConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_limits, "MAX_MEMBERS", 2)
    room.beat(first, consumer("G", "T"), producers=("P",))
    with pytest.raises(ResponseError) as refusal:
        room.beat(second, consumer("G", "T"))
    assert refusal.value.code == ResponseCode.SYSTEM_BUSY
    assert room.table.member_ids("G") == [first.peer]
    # A member goes on, and makes room when it goes.
    room.beat(first, consumer("G", "T"), producers=("P",))
    room.table.on_unregister(first, consumer_group=None, producer_group="P")
    room.beat(second, consumer("G", "T"))
    room.table.on_lost(first)
    room.beat(second, consumer("G", "T"), producers=("P",))
    assert room.table.member_ids("G") == [second.peer]


def test_more_subscriptions_than_there_is_room_for_are_told_that_we_are_busy(
    room: Room, first: FakeConnection, second: FakeConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_limits, "MAX_SUBSCRIPTION_BYTES", 10_000)
    many = subscribe("T", " || ".join(f"tag-{number}" for number in range(50)), sub_version=1)
    room.beat(first, consumer("G", many))
    with pytest.raises(ResponseError) as refusal:
        room.beat(second, consumer("H", many))
    assert refusal.value.code == ResponseCode.SYSTEM_BUSY
    assert room.table.member_ids("H") == []
    # Neither the same again nor a second member of the group takes more; the last one takes all with it.
    room.beat(first, consumer("G", many))
    room.beat(second, consumer("G", many))
    room.table.on_lost(first)
    room.table.on_lost(second)
    room.beat(second, consumer("H", many))
    assert room.table.member_ids("H") == [second.peer]


def test_room_for_subscriptions_is_not_gained_by_what_a_heartbeat_only_seems_to_give_up(
    room: Room, first: FakeConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_limits, "MAX_SUBSCRIPTION_BYTES", 10_000)
    many = subscribe("T", " || ".join(f"tag-{number}" for number in range(50)), sub_version=2)
    room.beat(first, consumer("G", many))
    for decoys in (
        [consumer("G", subscribe("T", "a", sub_version=1))],  # Older than what the group keeps.
        [consumer("G"), consumer("G"), consumer("G", many)],
    ):
        with pytest.raises(ResponseError) as refusal:
            room.beat(first, *decoys, consumer("H", many))
        assert refusal.value.code == ResponseCode.SYSTEM_BUSY
        assert set(room.table.subscriptions("G")) == {"T"}


@pytest.mark.parametrize(
    "heartbeat",
    [
        {"client_id": "x" * 1025},
        {"producers": ("x" * 256,)},
        {"consumers": ("x" * 256, "T")},
        {"consumers": ("G", "x" * 256)},
    ],
    ids=["client id", "producer group", "consumer group", "topic"],
)
def test_names_longer_than_names_are_refused(
    room: Room, first: FakeConnection, heartbeat: dict[str, Any]
) -> None:
    consumers = [consumer(*names)] if (names := heartbeat.pop("consumers", None)) else []
    with pytest.raises(ResponseError, match="characters: at most"):
        room.beat(first, *consumers, **heartbeat)
    assert room.table.on_lost(first) == []


def test_a_subscription_is_replaced_only_by_a_newer_one(room: Room, first: FakeConnection) -> None:
    room.beat(first, consumer("G", subscribe("T", "A", sub_version=5)))
    room.beat(first, consumer("G", subscribe("T", "B", sub_version=5)))
    assert room.subscription("T").expression == "A"
    room.beat(first, consumer("G", subscribe("T", "B", sub_version=4)))
    assert room.subscription("T").expression == "A"
    room.beat(first, consumer("G", subscribe("T", "B", sub_version=6)))
    assert room.subscription("T").expression == "B"


def test_a_topic_named_twice_counts_with_its_newest_subscription(room: Room, first: FakeConnection) -> None:
    room.beat(
        first, consumer("G", subscribe("T", "new", sub_version=6), subscribe("T", "old", sub_version=5))
    )
    assert room.subscription("T").expression == "new"


def test_a_topic_that_a_heartbeat_leaves_out_is_not_subscribed_any_more(
    room: Room, first: FakeConnection
) -> None:
    room.beat(first, consumer("G", "T", "U"))
    room.beat(first, consumer("G", "U"))
    with pytest.raises(ResponseError) as refused:
        room.subscription("T")
    assert refused.value.code == ResponseCode.SUBSCRIPTION_NOT_EXIST
    assert room.subscription("U").topic == "U"


def test_a_pull_before_any_heartbeat_has_no_subscription(room: Room) -> None:
    with pytest.raises(ResponseError) as refused:
        room.subscription("T")
    assert refused.value.code == ResponseCode.SUBSCRIPTION_NOT_EXIST


def test_a_pull_ahead_of_its_heartbeat_has_to_wait_for_it(room: Room, first: FakeConnection) -> None:
    room.beat(first, consumer("G", subscribe("T", "*", sub_version=5)))
    assert room.subscription("T", sub_version=5).sub_version == 5
    assert room.subscription("T", sub_version=4).sub_version == 5
    with pytest.raises(ResponseError) as refused:
        room.subscription("T", sub_version=6)
    assert refused.value.code == ResponseCode.SUBSCRIPTION_NOT_LATEST


def test_a_group_broadcasts_only_where_that_is_allowed(room: Room, first: FakeConnection) -> None:
    room.beat(first, consumer("G", "T", message_model=MessageModel.BROADCASTING))
    assert room.subscription("T").topic == "T"
    with pytest.raises(ResponseError) as refused:
        room.table.subscription("G", "T", sub_version=1, is_broadcast_allowed=False)
    assert refused.value.code == ResponseCode.NO_PERMISSION


# Short heartbeats.


def test_a_short_heartbeat_keeps_what_the_full_one_said(room: Room, first: FakeConnection) -> None:
    room.beat(first, consumer("G", "T"), heartbeat_fingerprint=9)
    short = room.beat(first, consumer("G"), heartbeat_fingerprint=9, is_without_sub=True)
    assert short == [EnsureGroup("G")]
    assert room.subscription("T").topic == "T"


def test_a_short_heartbeat_after_a_restart_makes_a_member_and_asks_for_the_rest(
    room: Room, first: FakeConnection
) -> None:
    short = room.beat(first, consumer("G"), heartbeat_fingerprint=9, is_without_sub=True)
    assert AskForSubscriptions("G") in short
    assert room.table.member_ids("G") == [first.peer]
    room.beat(first, consumer("G", "T"), heartbeat_fingerprint=9)
    assert room.subscription("T").topic == "T"


@pytest.mark.parametrize("fingerprint", [0, 8])
def test_a_short_heartbeat_asks_for_the_rest_if_another_member_changed_the_subscriptions(
    room: Room, first: FakeConnection, second: FakeConnection, fingerprint: int
) -> None:
    room.beat(first, consumer("G", "T"), heartbeat_fingerprint=9)
    room.beat(second, consumer("G", "U"), heartbeat_fingerprint=fingerprint)
    short = room.beat(first, consumer("G"), heartbeat_fingerprint=9, is_without_sub=True)
    assert AskForSubscriptions("G") in short


def test_a_heartbeat_without_fingerprint_is_never_a_short_one(room: Room, first: FakeConnection) -> None:
    room.beat(first, consumer("G", "T"))
    room.beat(first, consumer("G"), is_without_sub=True)
    with pytest.raises(ResponseError):
        room.subscription("T")


# Going.


def test_the_others_are_told_when_a_member_says_goodbye(
    room: Room, first: FakeConnection, second: FakeConnection
) -> None:
    room.beat(first, consumer("G", "T"))
    room.beat(second, consumer("G", "T"))
    left = room.table.on_unregister(first, consumer_group="G", producer_group=None)
    assert left == [NotifyMembers("G", (second,))]
    assert room.table.member_ids("G") == [second.peer]


def test_a_goodbye_to_one_group_leaves_the_others(room: Room, first: FakeConnection) -> None:
    room.beat(first, consumer("G", "T"), consumer("H", "T"), producers=("P", "Q"))
    assert room.table.on_unregister(first, consumer_group="G", producer_group="P") == []
    assert room.table.member_ids("G") == []
    assert room.table.member_ids("H") == [first.peer]
    assert room.table.producer_connections("P") is None
    assert room.table.producer_connections("Q") is not None


def test_a_goodbye_of_a_stranger_changes_nothing(
    room: Room, first: FakeConnection, second: FakeConnection
) -> None:
    room.beat(first, consumer("G", "T"), producers=("P",))
    assert room.table.on_unregister(second, consumer_group="G", producer_group="P") == []
    assert room.table.on_unregister(first, consumer_group="no", producer_group=None) == []
    assert room.table.member_ids("G") == [first.peer]


def test_a_lost_connection_takes_all_its_registrations_with_it(
    room: Room, first: FakeConnection, second: FakeConnection
) -> None:
    room.beat(first, consumer("G", "T"), consumer("H", "T"), producers=("P",))
    room.beat(second, consumer("G", "T"))
    assert room.table.on_lost(first) == [NotifyMembers("G", (second,))]
    assert room.table.member_ids("H") == []
    assert room.table.producer_connections("P") is None
    assert room.table.find_producer(first.peer) is None
    assert room.table.on_lost(first) == []


def test_a_group_forgets_its_subscriptions_with_its_last_member(room: Room, first: FakeConnection) -> None:
    room.beat(first, consumer("G", subscribe("T", "A", sub_version=9)))
    room.table.on_lost(first)
    assert room.table.consumer_connections("G") is None
    room.beat(first, consumer("G", subscribe("T", "B", sub_version=1)))
    assert room.subscription("T").expression == "B"


def test_silent_clients_are_forgotten_and_closed_after_two_minutes(
    room: Room, first: FakeConnection, second: FakeConnection
) -> None:
    room.beat(first, consumer("G", "T"), producers=("P",))
    room.beat(second, consumer("G", "T"), now_ms=NOW + 1)
    assert room.table.on_tick(NOW + SILENCE_LIMIT_MS) == []
    expired = room.table.on_tick(NOW + SILENCE_LIMIT_MS + 1)
    assert expired == [NotifyMembers("G", (second,)), CloseConnection(first, "no heartbeat for 120 s")]
    assert room.table.producer_connections("P") is None


def test_members_that_expire_together_cause_one_notice_to_those_who_stay(
    room: Room, first: FakeConnection, second: FakeConnection
) -> None:
    third = FakeConnection("127.0.0.1:3")
    for connection in (first, second):
        room.beat(connection, consumer("G", "T"))
    room.beat(third, consumer("G", "T"), now_ms=NOW + 60_000)
    expired = room.table.on_tick(NOW + SILENCE_LIMIT_MS + 1)
    assert notices(expired) == [NotifyMembers("G", (third,))]


def test_a_connection_with_a_group_that_still_beats_stays_open(room: Room, first: FakeConnection) -> None:
    room.beat(first, consumer("G", "T"), consumer("H", "T"))
    room.beat(first, consumer("H", "T"), now_ms=NOW + 60_000)
    assert room.table.on_tick(NOW + SILENCE_LIMIT_MS + 1) == []
    assert room.table.member_ids("G") == []
    assert room.table.member_ids("H") == [first.peer]


# Finding.


def test_a_consumer_is_found_by_group_and_client_id(
    room: Room, first: FakeConnection, second: FakeConnection
) -> None:
    room.beat(first, consumer("G", "T"), client_id="same")
    room.beat(second, consumer("G", "T"), client_id="same", now_ms=NOW + 1)
    found = room.table.find_consumer("G", "same")
    assert found is not None
    assert found.connection is second
    assert room.table.find_consumer("G", "other") is None
    assert room.table.find_consumer("H", "same") is None


def test_what_a_group_wants_is_known_while_it_is_there(room: Room, first: FakeConnection) -> None:
    room.beat(first, consumer("G", "T", "U"), consumer("H", "T"))
    assert room.table.subscriptions("G").keys() == {"T", "U"}
    assert room.table.groups_of("T") == {"G", "H"}
    assert room.table.groups_of("U") == {"G"}
    room.table.on_lost(first)
    assert (room.table.subscriptions("G"), room.table.groups_of("T")) == ({}, set())


def test_a_producer_is_found_by_its_client_id_on_its_latest_connection(
    room: Room, first: FakeConnection, second: FakeConnection
) -> None:
    room.beat(first, producers=("P", "Q"), client_id="same")
    room.beat(second, producers=("P",), client_id="same")
    room.table.on_lost(first)
    found = room.table.find_producer("same")
    assert found is not None
    assert found.connection is second
    assert room.table.find_producer("other") is None


def test_a_client_is_found_until_its_last_producer_group_is_gone(room: Room, first: FakeConnection) -> None:
    room.beat(first, producers=("P", "Q"), client_id="one")
    room.table.on_unregister(first, consumer_group=None, producer_group="P")
    assert room.table.find_producer("one") is not None
    room.table.on_unregister(first, consumer_group=None, producer_group="Q")
    assert room.table.find_producer("one") is None


def test_the_producers_of_a_group_are_picked_in_turn(
    room: Room, first: FakeConnection, second: FakeConnection
) -> None:
    room.beat(first, producers=("P", "Q"))
    room.beat(second, producers=("P",))
    picked = [room.table.pick_producer("P", number) for number in range(4)]
    assert [client and client.connection for client in picked] == [first, second, first, second]
    room.table.on_lost(first)
    assert room.table.pick_producer("Q", 1) is None
    left = room.table.pick_producer("P", 0)
    assert left is not None
    assert left.connection is second


def test_a_consumer_without_producers_is_no_place_for_replies(room: Room, first: FakeConnection) -> None:
    room.beat(first, consumer("G", "T"))
    assert room.table.find_producer(first.peer) is None


def test_a_client_id_that_a_connection_gave_up_is_not_found(room: Room, first: FakeConnection) -> None:
    room.beat(first, producers=("P",), client_id="old")
    room.beat(first, producers=("P",), client_id="new")
    assert room.table.find_producer("old") is None
    assert room.table.find_producer("new") is not None


def test_all_producers_are_listed_with_the_time_of_their_last_heartbeat(
    room: Room, first: FakeConnection, second: FakeConnection
) -> None:
    room.beat(first, producers=("P", "Q"))
    room.beat(second, producers=("P",), now_ms=NOW + 1)
    listed = room.table.producer_table().producers
    assert [member.client_id for member in listed["P"]] == [first.peer, second.peer]
    assert [member.last_update_timestamp_ms for member in listed["P"]] == [NOW, NOW + 1]
    assert [member.remote_ip for member in listed["Q"]] == ["/127.0.0.1:1"]
