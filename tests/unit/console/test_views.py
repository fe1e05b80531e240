"""What pages show of what a look at the cluster found."""

import pytest
from msgspec.structs import replace

from tanist.config import HIDDEN
from tanist.console.views.base import Level, worst
from tanist.console.views.brokers import broker_page, brokers_view, settings_of
from tanist.console.views.digests import digests
from tanist.console.views.groups import group_page, groups_of_topic, groups_view
from tanist.console.views.overview import overview
from tanist.console.views.replication import replication_view
from tanist.console.views.slave_consumption import slave_consumption_view
from tanist.console.views.topics import TopicKind, kind_of, topic_page, topic_row, topics_view
from tanist.model.groups import MessageModel, SubscriptionGroupConfig
from tanist.model.offsets import LogOffset, QueueOffset
from tanist.model.route import BrokerData, MessageQueue, QueueData, TopicRouteData
from tanist.model.topics import TopicConfig
from tanist.protocol.bodies.client import Connection, ConsumerConnections
from tanist.protocol.bodies.replication import (
    OPEN_END,
    ControlledView,
    EpochCache,
    EpochView,
    HAClientView,
    HARefusedView,
    HARuntimeInfo,
)
from tanist.protocol.bodies.stats import QueueStats, TopicStatsTable
from tanist.protocol.java_json import ObjectKeyed
from tests.support.console_views import (
    CONSUMERS,
    NOW_MS,
    TOPIC,
    consume_stats,
    dead_master,
    master,
    slave,
    snapshot,
    tables,
)
from tests.support.slave_consume_views import GROUP, MASTER, SLAVE, waiting_master


def test_the_worst_level_counts() -> None:
    assert worst(Level.GOOD, Level.BAD, Level.WARN) is Level.BAD
    assert worst() is Level.GOOD


def test_all_is_well_with_a_pair_in_step() -> None:
    view = overview(snapshot())
    assert (view.headline, view.level, view.notices) == ("All is well", Level.GOOD, [])
    assert (view.up_count, view.broker_count, view.backlog) == (2, 2, 10)
    assert (view.in_per_second, view.out_per_second) == (12.5, 14.0)
    (card,) = view.groups
    assert (card.reader, card.worst_lag_bytes, card.worst_lag_ms) == (MASTER, 10, 3)


def test_a_dead_master_is_told_and_leads_to_the_page_that_says_more() -> None:
    view = overview(dead_master())
    assert view.headline == "2 things to look at"
    assert [(notice.level, notice.path) for notice in view.notices] == [
        (Level.BAD, f"/slave-consumption#{GROUP}"),
        (Level.BAD, f"/brokers/{MASTER}"),
    ]
    (card,) = view.groups
    assert (card.master, card.reader, card.up_count) == (None, SLAVE, 1)


def test_an_empty_cluster_is_not_well_but_empty() -> None:
    view = overview(replace(snapshot(), brokers=()))
    assert (view.headline, view.groups) == ("No broker is known here", [])


def test_a_name_server_that_does_not_answer_is_the_first_thing_to_look_at() -> None:
    view = overview(snapshot(failure="refused"))
    assert view.notices[0].text == "no name server answers: refused"


def test_a_full_disk_is_told() -> None:
    full = master(runtime={**master().runtime, "commitLogDiskRatio": "0.91"})
    assert "its disk is 91% full" in overview(snapshot(full, slave())).notices[0].text


def test_settings_that_are_not_as_by_default_come_first() -> None:
    page = broker_page(snapshot(), MASTER)
    assert page is not None
    changed = {setting.key: setting.is_changed for setting in page.settings}
    assert changed == {"brokerName": True, "fileReservedTime": True, "listenPort": False, "theirs": False}
    assert [setting.is_changed for setting in page.settings] == [True, True, False, False]
    assert {setting.key: setting.default for setting in page.settings}["theirs"] is None


@pytest.mark.parametrize(
    "key",
    [
        "haSecret",
        "innerClientAuthenticationCredentials",
        "initAuthenticationUser",
        "tlsServerKeyPassword",
        "accessKey",
    ],
)
def test_a_secret_among_the_settings_is_hidden_whosever_broker_it_is(key: str) -> None:
    (setting,) = settings_of({key: "the secret"})
    assert (setting.key, setting.value) == (key, HIDDEN)
    assert settings_of({key: ""})[0].value == ""


def test_a_broker_that_nobody_knows_has_no_page() -> None:
    assert broker_page(snapshot(), "10.9.9.9:1") is None


def test_a_slave_that_is_read_is_listed_by_its_own_id() -> None:
    rows = {row.address: row for row in brokers_view(dead_master()).brokers}
    assert (rows[SLAVE].broker_id, rows[SLAVE].role, rows[SLAVE].state) == (
        1,
        "SLAVE",
        "is read in its master's place",
    )
    assert rows[MASTER].state == "does not answer: cannot connect: refused"


@pytest.mark.parametrize(
    ("look", "level", "state"),
    [
        (master(slave_consume=waiting_master()), Level.BAD, "serves no consumers"),
        (
            slave(ha=HARuntimeInfo(is_master=False, client=HAClientView(reason="no way"))),
            Level.WARN,
            "no way",
        ),
        (
            slave(ha=HARuntimeInfo(is_master=False, client=HAClientView(reason="no", is_refused=True))),
            Level.BAD,
            "no",
        ),
        (master(place=replace(master().place, is_registered=False)), Level.WARN, "not in the name server"),
        (master(ha=None, slave_consume=None, runtime={}), Level.GOOD, "serves"),
    ],
)
def test_how_a_broker_is_said_in_words(look: object, level: Level, state: str) -> None:
    (row,) = brokers_view(snapshot(look)).brokers  # pyright: ignore[reportArgumentType]
    assert row.level is level
    assert state in row.state


def test_replication_tells_who_follows_whom_and_how_far_behind() -> None:
    (group,) = replication_view(snapshot()).groups
    assert (group.mode, group.level, group.master) == ("fixed roles", Level.GOOD, MASTER)
    (link,) = group.slaves
    assert (link.lag_bytes, link.lag_ms, link.is_in_sync, link.counts) == (10, 3, True, True)
    assert [(each.address, each.follows) for each in group.replicas] == [
        (MASTER, None),
        (SLAVE, "10.0.0.1:10912"),
    ]


def test_it_is_shown_how_slaves_prove_who_they_are() -> None:
    ha = master().ha
    assert ha is not None
    look = master(ha=replace(ha, authentication="none"))
    (group,) = replication_view(snapshot(look, slave())).groups
    assert group.authentication == "none"


def test_a_slave_that_is_away_or_late_asks_for_somebody() -> None:
    ha = master().ha
    assert ha is not None
    alone = master(ha=replace(ha, slaves=[]))
    late = master(ha=replace(ha, slaves=[replace(ha.slaves[0], lag_ms=60_000)]))
    for look in (alone, late):
        (group,) = replication_view(snapshot(look, slave())).groups
        assert group.level is Level.WARN


def test_under_a_controller_epochs_set_and_lease_are_shown() -> None:
    ha = master().ha
    assert ha is not None
    controlled = ControlledView(
        state="reigning", role="master", epoch=2, sync_state_set=[1, 2], lease_ms=900, reasons=["no quorum"]
    )
    epochs = EpochCache(
        cluster_name="pairs",
        broker_name=GROUP,
        broker_id=0,
        log_end=LogOffset(400),
        epochs=[
            EpochView(epoch=1, start=LogOffset(0), end=LogOffset(100)),
            EpochView(epoch=2, start=LogOffset(100), end=OPEN_END),
        ],
    )
    refused = HARefusedView(addr="10.6.6.6:1", reason="no proof", received="00", at_ms=NOW_MS)
    look = master(
        ha=replace(ha, controlled=controlled, refused=[refused], refused_counts={"proof": 3}),
        tables=tables(epochs=epochs),
    )
    (group,) = replication_view(snapshot(look, slave())).groups
    assert (group.mode, group.epoch, group.sync_state_set, group.lease_ms) == ("auto-switch", 2, [1, 2], 900)
    assert [(row.epoch, row.end, row.share) for row in group.epochs] == [(1, 100, 0.25), (2, None, 0.75)]
    assert group.refused[0].reason == "no proof"
    assert group.refused_counts == {"proof": 3}
    assert group.reasons == ["no quorum"]


def test_a_group_whose_master_is_read_is_well() -> None:
    (group,) = slave_consumption_view(snapshot()).groups
    assert (group.level, group.reader, group.ending) == (Level.GOOD, MASTER, None)
    (checks,) = group.checks
    assert (checks.count, checks.needed, len(checks.conditions)) == (1, 3, 2)


def test_slave_consumption_shows_who_is_read_and_the_ledger() -> None:
    (group,) = slave_consumption_view(dead_master()).groups
    assert (group.level, group.reader, group.term, group.checks) == (Level.WARN, SLAVE, 3, [])
    assert [(part.address, part.permission) for part in group.parts] == [(MASTER, "NONE"), (SLAVE, "READ")]
    assert [(entry.event.value, entry.duplicates_at_most) for entry in group.ledger] == [("SWITCH", 7)]


def test_nobody_read_tells_why_the_way_out_and_what_may_come_twice() -> None:
    look = master(slave_consume=waiting_master())
    gone = slave(failure="refused", runtime={})
    (group,) = slave_consumption_view(snapshot(look, gone)).groups
    assert (group.level, group.reader) == (Level.BAD, None)
    assert any("endSlaveConsume" in way for way in group.ways_out)
    assert group.ending is not None
    assert (group.ending.master, group.ending.duplicates) == (MASTER, {"orders": 7, "bills": 30})


def test_a_group_without_a_registry_says_why() -> None:
    without = master(slave_consume=None, no_slave_consume="set coordinator on all brokers")
    view = slave_consumption_view(snapshot(without))
    assert (view.groups, view.without) == ([], {GROUP: "set coordinator on all brokers"})


@pytest.mark.parametrize(
    ("topic", "kind"),
    [
        ("OrderTopic", TopicKind.NORMAL),
        ("%RETRY%a", TopicKind.RETRY),
        ("%DLQ%a", TopicKind.DEAD_LETTERS),
        ("TBW102", TopicKind.SYSTEM),
        ("rmq_sys_x", TopicKind.SYSTEM),
        ("pairs_REPLY_TOPIC", TopicKind.SYSTEM),
        ("RMQ_SYS_TRACE_TOPIC", TopicKind.SYSTEM),
    ],
)
def test_a_topics_name_tells_what_it_is_for(topic: str, kind: TopicKind) -> None:
    assert kind_of(topic) is kind


def test_topics_are_listed_without_the_systems_own_unless_asked_for() -> None:
    assert [row.topic for row in topics_view(snapshot()).topics] == [TOPIC]
    assert [row.topic for row in topics_view(snapshot(), are_all_shown=True).topics] == [
        "%RETRY%billing",
        TOPIC,
        "TBW102",
    ]
    assert topics_view(snapshot(), search="nothing").topics == []
    assert topics_view(snapshot(), search="order").total_count == 3


def test_a_topic_on_two_groups_has_the_queues_of_both() -> None:
    other = master(
        place=replace(master().place, address="10.0.1.1:10911", name="broker-b"),
        slave_consume=None,
        tables=tables(topics={TOPIC: TopicConfig(topic_name=TOPIC, read_queue_count=2, write_queue_count=0)}),
    )
    row = topic_row(snapshot(master(), slave(), other), TOPIC)
    assert row is not None
    assert (row.brokers, row.read_queue_count, row.write_queue_count) == ([GROUP, "broker-b"], 6, 4)


def test_a_topics_page_has_its_route_and_what_its_queues_hold() -> None:
    row = topic_row(snapshot(), TOPIC)
    assert row is not None
    route = TopicRouteData(
        queue_datas=[QueueData(broker_name=GROUP, read_queue_count=4, write_queue_count=4, perm=6)],
        broker_datas=[BrokerData(cluster="pairs", broker_name=GROUP, broker_addrs={1: SLAVE, 0: MASTER})],
    )
    queue = MessageQueue(topic=TOPIC, broker_name=GROUP, queue_id=0)
    stats = TopicStatsTable(
        offset_table=ObjectKeyed({queue: QueueStats(min_offset=QueueOffset(5), max_offset=QueueOffset(105))})
    )
    page = topic_page(
        snapshot(), row, route, {GROUP: stats, "broker-b": "no answer"}, groups=[CONSUMERS], producers=[]
    )
    assert page.message_count == 100
    assert [(each.permission, each.addresses) for each in page.routes] == [("RW", {0: MASTER, 1: SLAVE})]
    assert page.queue_failures == ["broker-b: no answer"]
    lost = topic_page(snapshot(), row, "no route", {}, groups=[], producers=[])
    assert (lost.route_failure, lost.routes) == ("no route", [])


def test_groups_are_listed_by_how_far_they_are_behind() -> None:
    known = tables(
        groups={
            name: SubscriptionGroupConfig(group_name=name) for name in ("audit", CONSUMERS, "TOOLS_CONSUMER")
        }
    )
    view = groups_view(snapshot(master(tables=known), slave()))
    assert [(row.group, row.backlog, row.per_second) for row in view.groups] == [
        (CONSUMERS, 10, 7.0),
        ("audit", 0, 0),
    ]
    everything = groups_view(snapshot(master(tables=known), slave()), are_all_shown=True)
    assert "TOOLS_CONSUMER" in [row.group for row in everything.groups]


def test_a_group_that_is_long_behind_or_may_not_consume_asks_for_somebody() -> None:
    late = tables(consume=consume_stats(consumed_ms=NOW_MS - 120_000))
    disabled = tables(
        groups={CONSUMERS: SubscriptionGroupConfig(group_name=CONSUMERS, is_consume_enabled=False)}
    )
    for known in (late, disabled):
        (row,) = groups_view(snapshot(master(tables=known), slave())).groups
        assert row.level is Level.WARN


def test_a_groups_page_has_its_queues_and_members() -> None:
    client = Connection(client_id="c-1", client_addr="10.0.0.7:1", language="JAVA", version=479)
    members = ConsumerConnections(connections=[client], message_model=MessageModel.CLUSTERING)
    page = group_page(snapshot(), CONSUMERS, {GROUP: members, "broker-b": "nobody is online"})
    assert page is not None
    (queue,) = page.queues
    assert (queue.consumer_offset, queue.broker_offset, queue.backlog) == (90, 100, 10)
    assert [(row.client_id, row.version, row.brokers) for row in page.clients] == [("c-1", "5.3.3", [GROUP])]
    assert (page.message_model, page.client_notes) == ("CLUSTERING", ["broker-b: nobody is online"])
    assert group_page(snapshot(), "nobody", {}) is None


def test_a_group_of_which_there_are_offsets_alone_is_shown_too() -> None:
    look = snapshot(master(tables=tables(groups={})), slave())
    assert [row.group for row in groups_view(look).groups] == [CONSUMERS]
    assert groups_of_topic(look, TOPIC) == [CONSUMERS]
    assert groups_of_topic(look, "other") == []


def test_a_view_has_another_digest_when_it_shows_something_else_and_only_then() -> None:
    before, later = digests(snapshot()), digests(snapshot(taken_ms=NOW_MS + 2_000, call_count=9))
    assert before == later
    behind = digests(snapshot(master(tables=tables(consume=consume_stats(behind=11))), slave()))
    assert {name for name in before if before[name] != behind[name]} == {"groups", "overview"}
