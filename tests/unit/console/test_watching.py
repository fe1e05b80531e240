"""Looking at a cluster: who is asked what, what is remembered, and who is told."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, cast

from msgspec.structs import replace

from tanist.client.session.wire import Wire
from tanist.console.watching.gathering import QUICK_CALLS, TABLE_CALLS, Gatherer
from tanist.console.watching.history import Recorder
from tanist.console.watching.lookups import Lookups
from tanist.console.watching.snapshot import Snapshot, speaker_of
from tanist.console.watching.watcher import Watcher
from tanist.errors import ConnectFailed, MQError, RequestTimeout, ResponseError
from tanist.model.route import ClusterInfo
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.config_text import encode_config
from tanist.protocol.bodies.sync import SubscriptionGroupTable, TopicConfigTable
from tanist.protocol.bodies.tables import KVTable
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tests.support.clocks import FakeClock
from tests.support.console_views import (
    NOW_MS,
    TOPIC,
    consume_stats,
    dead_master,
    master,
    slave,
    snapshot,
    tables,
)
from tests.support.slave_consume_views import (
    MASTER,
    SLAVE,
    PlayedView,
    PlayedWire,
    following_slave,
    reading_slave,
    route_of,
    serving_master,
    switch_entry,
)

NAMES = "10.0.0.9:9876"


class PlayedCluster:
    """A name server and brokers that answer a console."""

    def __init__(self, route: ClusterInfo, *views: PlayedView) -> None:
        self.route: ClusterInfo | None = route
        self.wire = PlayedWire(*views)
        self.asked: list[tuple[str, int]] = []

    async def ask(self, address: str, command: Command, *, timeout_s: float | None = None) -> Command:
        self.asked.append((address, command.code))
        if address == NAMES:
            if self.route is None:
                raise ConnectFailed(address, "refused")
            return command.reply(body=encode_body(self.route))
        if address not in self.wire.views:
            raise ConnectFailed(address, "refused")
        known = tables()
        is_master = address == MASTER
        answers: dict[int, bytes] = {
            RequestCode.GET_BROKER_RUNTIME_INFO: encode_body(KVTable(table={"putTps": "1.0"})),
            RequestCode.GET_BROKER_HA_STATUS: encode_body((master() if is_master else slave()).ha),
            RequestCode.GET_BROKER_CONFIG: encode_config(known.config or {}),
            RequestCode.GET_ALL_TOPIC_CONFIG: encode_body(TopicConfigTable(topics=known.topics)),
            RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: encode_body(
                SubscriptionGroupTable(groups=known.groups)
            ),
            RequestCode.GET_BROKER_CONSUME_STATS: encode_body(consume_stats()),
        }
        if command.code in answers:
            return command.reply(body=answers[command.code])
        return await self.wire.ask(address, command, timeout_s=timeout_s)

    def codes(self, address: str) -> list[int]:
        return [code for asked, code in self.asked if asked == address]


def pair() -> PlayedCluster:
    return PlayedCluster(
        route_of(MASTER, SLAVE), PlayedView(serving_master()), PlayedView(following_slave(), switch_entry())
    )


def gatherer(cluster: PlayedCluster, clock: FakeClock | None = None) -> Gatherer:
    return Gatherer(cast("Wire", cluster), [NAMES], clock or FakeClock(now_ms=NOW_MS))


def test_a_quick_look_asks_each_broker_three_things() -> None:
    cluster = pair()
    seen = asyncio.run(gatherer(cluster).look(is_thorough=False))
    assert [look.address for look in seen.brokers] == [MASTER, SLAVE]
    assert seen.call_count == len(cluster.asked) == 1 + 2 * QUICK_CALLS
    assert all(look.is_up for look in seen.brokers)


def test_a_thorough_look_asks_a_bounded_number_more_and_tables_of_one_broker_alone() -> None:
    cluster = pair()
    seen = asyncio.run(gatherer(cluster).look(is_thorough=True))
    assert seen.call_count <= 1 + 2 * (QUICK_CALLS + TABLE_CALLS)
    assert RequestCode.GET_BROKER_CONSUME_STATS not in cluster.codes(SLAVE)
    found = {look.address: look.tables for look in seen.brokers}
    assert TOPIC in found[MASTER].topics
    assert found[SLAVE].topics == {}
    ledger = found[SLAVE].ledger
    assert ledger is not None
    assert len(ledger.entries) == 1


def test_tables_stay_from_one_thorough_look_to_the_next() -> None:
    async def look_twice() -> Snapshot:
        looks = gatherer(pair())
        await looks.look(is_thorough=True)
        return await looks.look(is_thorough=False)

    seen = asyncio.run(look_twice())
    assert TOPIC in seen.brokers[0].tables.topics


def test_a_broker_that_vanishes_is_remembered_as_what_it_was_and_forgotten_later() -> None:
    cluster, clock = pair(), FakeClock(now_ms=NOW_MS)

    async def watch() -> tuple[Snapshot, Snapshot]:
        looks = gatherer(cluster, clock)
        await looks.look(is_thorough=True)
        del cluster.wire.views[MASTER]
        cluster.wire.views[SLAVE].told = reading_slave(brokers=[])
        cluster.route = route_of(SLAVE)
        gone = await looks.look(is_thorough=True)
        clock.advance_ms(600_001)
        return gone, await looks.look(is_thorough=True)

    gone, later = asyncio.run(watch())
    first = gone.find(MASTER)
    assert first is not None
    assert (first.is_up, first.is_master, first.place.is_registered) == (False, True, False)
    read = gone.find(SLAVE)
    assert read is not None
    assert read.is_read_slave
    assert TOPIC in read.tables.topics
    assert later.find(MASTER) is None


def test_a_broker_that_only_another_one_names_is_looked_at() -> None:
    cluster = pair()
    cluster.route = route_of(MASTER)

    async def look_twice() -> Snapshot:
        looks = gatherer(cluster)
        await looks.look(is_thorough=False)
        return await looks.look(is_thorough=False)

    seen = asyncio.run(look_twice())
    found = seen.find(SLAVE)
    assert found is not None
    assert (found.is_up, found.place.is_registered) == (True, False)


def test_without_a_name_server_the_brokers_that_were_known_are_still_looked_at() -> None:
    cluster = pair()

    async def look_twice() -> Snapshot:
        looks = gatherer(cluster)
        await looks.look(is_thorough=False)
        cluster.route = None
        return await looks.look(is_thorough=False)

    seen = asyncio.run(look_twice())
    assert seen.failure is not None
    assert [look.is_up for look in seen.brokers] == [True, True]


def test_who_is_read_speaks_for_its_group_and_else_the_master() -> None:
    assert speaker_of(list(snapshot().brokers)) == master()
    found = speaker_of(list(dead_master().brokers))
    assert found is not None
    assert found.address == SLAVE
    assert speaker_of([master(failure="gone")]) is None


def test_charts_have_a_row_a_look_and_null_where_nothing_was_known() -> None:
    recorder = Recorder(kept_rows=2)
    for each in (snapshot(), snapshot(), dead_master()):
        recorder.on_snapshot(each)
    history = recorder.history()
    assert len(history.times_s) == 2
    assert history.columns["in"] == [12.5, 0]
    assert history.columns["lag bytes broker-a 1"] == [10, None]
    assert history.columns["lag ms broker-a 1"] == [3, None]


def test_figures_that_make_no_sense_count_as_nothing() -> None:
    recorder = Recorder()
    recorder.on_snapshot(snapshot(master(runtime={"putTps": "NaNa", "getTransferredTps": ""})))
    assert recorder.history().columns["in"] == [0]


def test_who_asks_the_same_at_once_waits_for_one_answer() -> None:
    clock, asked = FakeClock(), list[str]()

    async def ask() -> str:
        asked.append("asked")
        await asyncio.sleep(0)
        return "answer"

    async def look() -> list[str]:
        lookups = Lookups(clock, kept_s=3)
        first = await asyncio.gather(*(lookups.find(("a",), ask) for _ in range(5)))
        clock.advance_ms(2_000)
        await lookups.find(("a",), ask)
        clock.advance_ms(2_000)
        await lookups.find(("a",), ask)
        return first

    assert asyncio.run(look()) == ["answer"] * 5
    assert len(asked) == 2


def test_a_failure_is_not_kept() -> None:
    answers: list[Callable[[], Awaitable[str]]] = []

    async def fail() -> str:
        raise RequestTimeout("a", 1, 1)

    async def answer() -> str:
        return "answer"

    answers += [fail, answer]

    async def look() -> list[object]:
        lookups = Lookups(FakeClock())
        found: list[object] = []
        for each in answers:
            try:
                found.append(await lookups.find(("a",), each))
            except MQError as error:
                found.append(type(error))
        return found

    assert asyncio.run(look()) == [RequestTimeout, "answer"]


def test_who_listens_is_told_at_once_and_when_something_has_changed() -> None:
    seen = [snapshot(), dead_master()]
    told: list[Any] = []

    async def watch() -> None:
        clock = FakeClock(now_ms=NOW_MS)
        looks = iter(seen)

        async def look(*, is_thorough: bool) -> Snapshot:
            del is_thorough
            found = next(looks, None)
            if found is None:
                await asyncio.Event().wait()
            assert found is not None
            return found

        watcher = Watcher(look, lambda found: {"all": str(len([b for b in found.brokers if b.is_up]))}, clock)
        assert watcher.lack() is not None
        async with watcher.watching():
            await watcher.wait_first(5)
            assert watcher.lack() is None
            async with aclosing(watcher.changes(heartbeat_s=5)) as changes:
                async for digests in changes:
                    told.append(digests)
                    watcher.look_soon()
                    if len(told) == 2:
                        break

    asyncio.run(watch())
    assert told == [{"all": "2"}, {"all": "1"}]


def test_a_look_that_is_old_or_reached_no_name_server_is_not_ready() -> None:
    clock = FakeClock(now_ms=NOW_MS)

    async def lack_of(found: Snapshot) -> str | None:
        async def look(*, is_thorough: bool) -> Snapshot:
            del is_thorough
            return found

        watcher = Watcher(look, lambda _: {}, clock)
        async with watcher.watching():
            await watcher.wait_first(5)
            return watcher.lack()

    assert asyncio.run(lack_of(snapshot(failure="refused"))) == "no name server answers: refused"
    assert "too old" in (asyncio.run(lack_of(replace(snapshot(), taken_ms=NOW_MS - 60_000))) or "")


def test_a_question_that_a_broker_refuses_leaves_a_gap_and_no_failure() -> None:
    cluster = pair()

    async def refuse(address: str, command: Command, *, timeout_s: float | None = None) -> Command:
        if command.code in {RequestCode.GET_BROKER_HA_STATUS, RequestCode.GET_SLAVE_CONSUME_STATUS}:
            raise ResponseError(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, "not supported")
        return await PlayedCluster.ask(cluster, address, command, timeout_s=timeout_s)

    cluster.ask = refuse
    seen = asyncio.run(gatherer(cluster).look(is_thorough=True))
    assert [(look.is_up, look.ha, look.no_slave_consume) for look in seen.brokers] == [
        (True, None, "not supported")
    ] * 2
