import asyncio
import logging
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tanist.broker.delays import delivered as delivered_module
from tanist.broker.delays import delivery as delivery_module
from tanist.broker.delays.delivery import Delivery
from tanist.broker.operating.stats import Stat
from tanist.broker.settings import BrokerSettings
from tanist.broker.state import BrokerState
from tanist.model.message import Message
from tanist.model.topics import HALF_TOPIC, SCHEDULE_TOPIC, TIMER_TOPIC
from tanist.protocol.properties import decode_properties, encode_properties
from tanist.protocol.record import Record
from tanist.store import StoreSettings
from tests.support.broker_tables import SETTINGS
from tests.support.clocks import FakeClock, HastyClock
from tests.support.conditions import turns, until
from tests.support.messages import SMALL
from tests.support.working_broker import WorkingBroker, working_broker

START_MS = 1_700_000_000_000
STORE = msgspec.structs.replace(SMALL, mapped_file_size_commit_log=64 << 10, max_index_num=4096)


@dataclass
class Waiting:
    """A broker with delayed messages, and what came of them."""

    broker: WorkingBroker
    delivery: Delivery
    clock: FakeClock

    @property
    def state(self) -> BrokerState:
        return self.broker.state

    async def send(self, body: str, *, queue_id: int = 0, topic: str = "T", **properties: str) -> None:
        named = {"UNIQ_KEY": f"id-{body}", **properties}
        message = Message(
            topic=topic,
            queue_id=queue_id,
            body=body.encode(),
            properties=encode_properties({name: value for name, value in named.items() if value}),
            born_timestamp_ms=self.clock.now_ms(),
        )
        self.state.writer.append(self.state.placing.place(message, self.clock.now_ms()))
        await turns(2)

    async def lay(self, body: str, topic: str, **properties: str) -> None:
        """Put a record where messages wait, as somebody else would have written it."""
        raw = encode_properties({"UNIQ_KEY": f"id-{body}", **properties})
        self.state.writer.append(Message(topic=topic, queue_id=0, body=body.encode(), properties=raw))
        await turns(2)

    async def pass_ms(self, elapsed_ms: int) -> None:
        self.clock.advance_ms(elapsed_ms)
        await self.deliver()

    async def deliver(self) -> None:
        while self.delivery.turn():
            await turns(1)
        await turns(2)

    def bodies(self, topic: str = "T", queue_id: int = 0) -> list[str]:
        if self.state.store.queues.find(topic, queue_id) is None:
            return []
        return [bytes(one.body).decode() for one in self.state.store.records(topic, queue_id, 0, 10_000)]

    def properties(self, queue_offset: int) -> dict[str, str]:
        (record,) = self.state.store.records("T", 0, queue_offset, 1)
        return decode_properties(record.properties)


@asynccontextmanager
async def waiting(
    root: Path, clock: FakeClock, settings: BrokerSettings = SETTINGS, store_settings: StoreSettings = STORE
) -> AsyncGenerator[Waiting]:
    """Until the end of the block, which is a kill."""
    async with working_broker(root, settings, store_settings=store_settings, clock=clock) as broker:
        delivery = Delivery(broker.state)
        broker.state.store.dispatcher.listeners.append(delivery.on_indexed)
        yield Waiting(broker, delivery, clock)


def run(
    root: Path, *scenarios: Callable[[Waiting], Awaitable[None]], store_settings: StoreSettings = STORE
) -> None:
    """Run scenarios one after the other on the same store, each in a process that is killed at its end."""
    clock = FakeClock(START_MS)

    async def one(scenario: Callable[[Waiting], Awaitable[None]]) -> None:
        async with waiting(root, clock, store_settings=store_settings) as broker:
            await scenario(broker)

    for scenario in scenarios:
        asyncio.run(one(scenario))


def save(broker: Waiting) -> None:
    for finish in (broker.state.delays.start_save_levels(), broker.state.delays.start_save_timers()):
        if finish is not None:
            finish()


def test_a_message_comes_when_its_level_says(tmp_path: Path) -> None:
    async def scenario(broker: Waiting) -> None:
        await broker.send("five", DELAY="2", TAGS="A")
        await broker.send("one", DELAY="1")
        await broker.pass_ms(999)
        assert broker.bodies() == []
        await broker.pass_ms(1)
        assert broker.bodies() == ["one"]
        await broker.pass_ms(4_000)
        assert broker.bodies() == ["one", "five"]
        assert broker.properties(1) == {
            "UNIQ_KEY": "id-five",
            "TAGS": "A",
            "DELAY": "2",
            "REAL_TOPIC": "T",
            "REAL_QID": "0",
        }

    run(tmp_path, scenario)


def test_a_timer_message_never_comes_early_and_at_most_a_slot_late(tmp_path: Path) -> None:
    async def scenario(broker: Waiting) -> None:
        broker.clock.set_now_ms(START_MS + 400)
        await broker.send("timed", TIMER_DELAY_MS="2300")
        await broker.deliver()
        await broker.pass_ms(2_300)
        assert broker.bodies() == []
        await broker.pass_ms(300)
        assert broker.bodies() == ["timed"]
        assert broker.properties(0)["TIMER_DEQUEUE_MS"] == str(START_MS + 3_000)

    run(tmp_path, scenario)


def test_what_a_timer_takes_in_and_gives_out_is_counted_once_also_over_a_kill(tmp_path: Path) -> None:
    def counted(broker: Waiting) -> tuple[dict[str, int], dict[str, int]]:
        counters = broker.state.counters
        return counters.values(Stat.TIMER_ENQUEUE_NUMS), counters.values(Stat.TIMER_DEQUEUE_NUMS)

    async def first(broker: Waiting) -> None:
        await broker.send("soon", TIMER_DELAY_MS="2000")
        await broker.send("later", TIMER_DELAY_MS="60000")
        await broker.send("level", DELAY="1")
        await broker.deliver()
        assert counted(broker) == ({"T": 2}, {})
        await broker.pass_ms(5_000)
        assert counted(broker) == ({"T": 2}, {"T": 1})
        save(broker)

    async def after_a_kill(broker: Waiting) -> None:
        await broker.pass_ms(60_000)
        assert sorted(broker.bodies()) == ["later", "level", "soon"]
        assert counted(broker) == ({}, {"T": 1})

    run(tmp_path, first, after_a_kill)


def test_each_message_goes_to_its_own_queue_also_if_its_topic_is_gone(tmp_path: Path) -> None:
    async def scenario(broker: Waiting) -> None:
        await broker.send("two", queue_id=2, DELAY="1")
        await broker.send("three", topic="Gone", queue_id=3, TIMER_DELAY_SEC="1")
        assert broker.state.topics.find("Gone") is None
        await broker.pass_ms(5_000)
        assert broker.bodies(queue_id=2) == ["two"]
        assert broker.bodies("Gone", 3) == ["three"]

    run(tmp_path, scenario)


def test_what_waits_survives_a_kill_and_comes_once(tmp_path: Path) -> None:
    async def before(broker: Waiting) -> None:
        for number in range(3):
            await broker.send(f"level-{number}", DELAY="3")
            await broker.send(f"timer-{number}", TIMER_DELAY_SEC=str(10 + number))

    async def after(broker: Waiting) -> None:
        await broker.pass_ms(9_999)
        assert broker.bodies() == []
        await broker.pass_ms(10_000)
        assert sorted(broker.bodies()) == [f"{kind}-{n}" for kind in ("level", "timer") for n in range(3)]

    run(tmp_path, before, after)


@pytest.mark.parametrize("is_saved", [True, False], ids=["written down", "only in the log"])
def test_a_message_of_nearly_three_days_is_taken_and_comes_on_the_third_day_over_a_restart(
    tmp_path: Path, *, is_saved: bool
) -> None:
    day_ms = 86_400_000

    async def before(broker: Waiting) -> None:
        await broker.send("far", TIMER_DELAY_SEC=str(3 * 86_400 - 60))
        await broker.pass_ms(day_ms)
        if is_saved:
            save(broker)

    async def after(broker: Waiting) -> None:
        await broker.pass_ms(2 * day_ms - 62_000)
        assert broker.bodies() == []
        await broker.pass_ms(4_000)
        assert broker.bodies() == ["far"]

    run(tmp_path, before, after)


def test_what_was_delivered_and_not_written_down_is_not_delivered_again(tmp_path: Path) -> None:
    async def before(broker: Waiting) -> None:
        for number in range(5):
            await broker.send(f"level-{number}", DELAY="1")
            await broker.send(f"timer-{number}", TIMER_DELAY_SEC="1")
        await broker.send("later", DELAY="2")
        await broker.send("late", TIMER_DELAY_SEC="5")
        await broker.pass_ms(3_000)
        assert len(broker.bodies()) == 10

    async def after(broker: Waiting) -> None:
        await broker.deliver()
        assert len(broker.bodies()) == 10
        assert broker.delivery.found_count == 10
        await broker.pass_ms(10_000)
        assert broker.bodies()[10:] == ["late", "later"]

    run(tmp_path, before, after)


def test_what_was_written_down_is_not_even_looked_for(tmp_path: Path) -> None:
    async def before(broker: Waiting) -> None:
        await broker.send("level", DELAY="1")
        await broker.send("timer", TIMER_DELAY_SEC="1")
        await broker.pass_ms(3_000)
        save(broker)

    async def after(broker: Waiting) -> None:
        await broker.pass_ms(10_000)
        assert sorted(broker.bodies()) == ["level", "timer"]
        assert broker.delivery.found_count == 0

    run(tmp_path, before, after)


def test_two_messages_that_are_alike_are_both_delivered_across_a_kill(tmp_path: Path) -> None:
    async def before(broker: Waiting) -> None:
        for _ in range(2):
            await broker.send("same", DELAY="1")
        await broker.send("same", TIMER_DELAY_SEC="600")
        await broker.pass_ms(1_000)

    async def after(broker: Waiting) -> None:
        await broker.pass_ms(1_000_000)
        assert broker.bodies() == ["same"] * 3

    run(tmp_path, before, after)


@pytest.mark.parametrize("is_saved", [True, False])
@pytest.mark.parametrize("delay", [{"DELAY": "1"}, {"TIMER_DELAY_SEC": "1"}])
def test_of_two_messages_that_are_alike_the_one_that_is_missing_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delay: dict[str, str], *, is_saved: bool
) -> None:
    async def before(broker: Waiting) -> None:
        for _ in range(2):
            await broker.send("same", **delay)  # pyright: ignore[reportArgumentType]
        await broker.deliver()
        broker.clock.advance_ms(3_000)
        with monkeypatch.context() as patch:
            patch.setattr(delivery_module, "_TURN_MESSAGES", 1)
            broker.delivery.turn()
        await turns(2)
        assert broker.bodies() == ["same"]
        if is_saved:
            save(broker)

    async def after(broker: Waiting) -> None:
        await broker.pass_ms(5_000)
        assert broker.bodies() == ["same", "same"]

    async def later(broker: Waiting) -> None:
        await broker.pass_ms(5_000)
        assert broker.bodies() == ["same", "same"]

    run(tmp_path, before, after, later)


def test_progress_is_written_only_after_the_log_is_on_disk(tmp_path: Path) -> None:
    async def scenario(broker: Waiting) -> None:
        await broker.send("level", DELAY="1")
        await broker.send("timer", TIMER_DELAY_SEC="1")
        await broker.pass_ms(3_000)
        broker.broker.disk.synced.clear()
        save(broker)
        names = [path.parent.name for path in broker.broker.disk.synced]
        assert names[0] == "commitlog"
        assert "config" in names
        assert broker.state.store.log.flushed_to == broker.state.store.log.log_end

    run(tmp_path, scenario)


def test_while_the_log_takes_nothing_deliveries_wait_and_none_is_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_module, "_RETRY_S", 0.01)

    async def scenario(broker: Waiting) -> None:
        for number in range(3):
            await broker.send(f"level-{number}", DELAY="1")
            await broker.send(f"timer-{number}", TIMER_DELAY_SEC="1")
        broker.state.store.log.refusal = "the disk is full"
        broker.clock.advance_ms(10_000)
        task = asyncio.create_task(broker.delivery.run())
        await until(lambda: "delayed messages wait" in caplog.text)
        assert broker.bodies() == []
        broker.state.store.log.refusal = None
        await until(lambda: len(broker.bodies()) == 6)
        task.cancel()
        assert caplog.text.count("delayed messages wait") == 1

    with caplog.at_level(logging.WARNING):
        run(tmp_path, scenario)


def test_the_task_sleeps_until_the_earliest_is_due_and_wakes_up_for_a_new_one(tmp_path: Path) -> None:
    async def scenario(broker: Waiting) -> None:
        task = asyncio.create_task(broker.delivery.run())
        await turns(5)
        counted = 0
        turn = broker.delivery.turn

        def counting() -> bool:
            nonlocal counted
            counted += 1
            return turn()

        broker.delivery.turn = counting  # type: ignore[method-assign]
        await broker.send("far", DELAY="18")
        await until(lambda: counted >= 1)
        await turns(50)
        seen = counted
        await turns(50)
        assert counted == seen
        broker.clock.advance_ms(7_200_000)
        await broker.send("wakes", DELAY="1")
        await until(lambda: broker.bodies() == ["far"])
        task.cancel()

    run(tmp_path, scenario)


def test_a_great_many_are_delivered_in_small_turns(tmp_path: Path) -> None:
    async def scenario(broker: Waiting) -> None:
        for number in range(200):
            await broker.send(f"{number}", DELAY="1")
            await broker.send(f"t{number}", TIMER_DELAY_SEC="1")
        while broker.delivery.turn():
            pass
        broker.clock.advance_ms(5_000)
        before = broker.state.store.log.next_queue_offsets.get(("T", 0), 0)
        assert broker.delivery.turn()
        first = broker.state.store.log.next_queue_offsets["T", 0] - before
        assert 0 < first <= 64
        await broker.deliver()
        bodies = broker.bodies()
        assert [body for body in bodies if body[0] != "t"] == [f"{n}" for n in range(200)]
        assert [body for body in bodies if body[0] == "t"] == [f"t{n}" for n in range(200)]

    run(tmp_path, scenario)


def test_a_shortened_level_delivers_at_once_what_would_wait_longer(tmp_path: Path) -> None:
    async def before(broker: Waiting) -> None:
        await broker.send("an hour", DELAY="1")
        broker.state.store.checkpoint()

    async def after(broker: Waiting) -> None:
        await broker.send("a second", DELAY="1")
        await broker.deliver()
        assert broker.bodies() == ["an hour"]
        await broker.pass_ms(1_000)
        assert broker.bodies() == ["an hour", "a second"]

    run(tmp_path, before, store_settings=msgspec.structs.replace(STORE, message_delay_level="1h"))
    run(tmp_path, after, store_settings=msgspec.structs.replace(STORE, message_delay_level="1s"))


def test_a_level_that_is_no_more_still_delivers_what_it_holds(tmp_path: Path) -> None:
    async def before(broker: Waiting) -> None:
        await broker.send("third", DELAY="3")
        broker.state.store.checkpoint()

    async def after(broker: Waiting) -> None:
        await broker.pass_ms(9_999)
        assert broker.bodies() == []
        await broker.pass_ms(1)
        assert broker.bodies() == ["third"]

    run(tmp_path, before, store_settings=msgspec.structs.replace(STORE, message_delay_level="1s 5s 10s"))
    run(tmp_path, after, store_settings=msgspec.structs.replace(STORE, message_delay_level="1s"))


def test_what_can_not_be_delivered_is_dropped_and_told_and_holds_nobody_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(broker: Waiting) -> None:
        await broker.lay("no target", SCHEDULE_TOPIC, DELAY="1")
        await broker.lay("half", SCHEDULE_TOPIC, DELAY="1", REAL_TOPIC=HALF_TOPIC, REAL_QID="0")
        await broker.lay("bad topic", SCHEDULE_TOPIC, DELAY="1", REAL_TOPIC="../..", REAL_QID="0")
        await broker.lay("bad queue", SCHEDULE_TOPIC, DELAY="1", REAL_TOPIC="T", REAL_QID="99999999")
        await broker.lay("no time", TIMER_TOPIC, REAL_TOPIC="T", REAL_QID="0")
        await broker.lay("timer to nowhere", TIMER_TOPIC, TIMER_OUT_MS=str(START_MS))
        await broker.send("sound", DELAY="1")
        await broker.send("sound too", TIMER_DELAY_SEC="1")
        await broker.pass_ms(10_000)
        assert sorted(broker.bodies()) == ["sound", "sound too"]
        assert broker.delivery.dropped_count == 6

    run(tmp_path, scenario)
    assert caplog.text.count("delayed message is dropped") == 6


def test_a_timer_message_can_be_taken_back(tmp_path: Path) -> None:
    async def before(broker: Waiting) -> None:
        at = str(START_MS + 5_000)
        await broker.send("kept", TIMER_DELIVER_MS=at)
        await broker.send("taken back", TIMER_DELIVER_MS=at)
        for number in range(50):
            await broker.send(f"{number}", TIMER_DELIVER_MS=at, topic="Other")
        await broker.send("order", TIMER_DELIVER_MS=at, TIMER_DEL_UNIQKEY="T+id-taken back")

    async def after(broker: Waiting) -> None:
        await broker.pass_ms(10_000)
        assert broker.bodies() == ["kept"]

    run(tmp_path, before, after)


def test_offsets_of_queues_that_are_gone_begin_anew(tmp_path: Path) -> None:
    config = tmp_path / "store" / "config"
    config.mkdir(parents=True)
    (config / "delayOffset.json").write_text('{"offsetTable":{1:7}}')
    (config / "timercheck").write_bytes(struct.pack(">7q", START_MS, 0, 7, 7, 0, 0, 0).ljust(4096, b"\0"))

    async def scenario(broker: Waiting) -> None:
        await broker.send("level", DELAY="1")
        await broker.send("timer", TIMER_DELAY_SEC="1")
        await broker.pass_ms(5_000)
        assert sorted(broker.bodies()) == ["level", "timer"]

    async def nothing_to_do(broker: Waiting) -> None:
        broker.delivery.turn()
        assert broker.state.delays.levels.next_wake_ms is None

    run(tmp_path, nothing_to_do, scenario)


def test_rocketmq_is_told_to_read_only_what_its_timer_log_lacks(tmp_path: Path) -> None:
    def queue_offset(broker: Waiting) -> int:
        return broker.state.delays.timer_point.last_timer_queue_offset

    async def before(broker: Waiting) -> None:
        for number in range(3):
            await broker.send(f"{number}", TIMER_DELAY_SEC="1")
        await broker.send("waits", TIMER_DELAY_SEC="100")
        await broker.pass_ms(5_000)
        save(broker)
        assert queue_offset(broker) == 4

    async def between(broker: Waiting) -> None:
        # The timer log is empty now, so RocketMQ would have to read the queue again.
        assert queue_offset(broker) == 0
        await broker.deliver()
        save(broker)
        assert queue_offset(broker) == 4
        await broker.pass_ms(200_000)
        save(broker)

    async def after(broker: Waiting) -> None:
        await broker.deliver()
        assert queue_offset(broker) == 4
        # RocketMQ does not say where to begin, so all is read again, and none of it waits.
        path = tmp_path / "store" / "config" / "timercheck"
        path.write_bytes(path.read_bytes()[:56].ljust(4096, b"\0"))

    async def last(broker: Waiting) -> None:
        assert queue_offset(broker) == 0
        await broker.deliver()
        save(broker)
        assert queue_offset(broker) == 4
        assert len(broker.bodies()) == 4

    run(tmp_path, before, between, after, last)


def test_a_message_that_rocketmq_has_put_into_the_queue_again_comes_once(tmp_path: Path) -> None:
    slot = {"TIMER_OUT_MS": str(START_MS + 5_000), "REAL_TOPIC": "T", "REAL_QID": "0"}

    async def before(broker: Waiting) -> None:
        await broker.lay("rolled", TIMER_TOPIC, **slot)
        await broker.lay("other", TIMER_TOPIC, **slot)
        await broker.lay("rolled", TIMER_TOPIC, TIMER_ROLL_TIMES="1", **slot)

    async def after(broker: Waiting) -> None:
        await broker.pass_ms(10_000)
        assert sorted(broker.bodies()) == ["other", "rolled"]

    run(tmp_path, before, after)


def test_a_backlog_that_a_restart_finds_is_taken_again_before_progress_is_written(tmp_path: Path) -> None:
    async def before(broker: Waiting) -> None:
        for number in range(150):
            await broker.send(f"{number}", TIMER_DELAY_SEC=str(60 + number % 7))
        await broker.deliver()
        save(broker)

    async def after(broker: Waiting) -> None:
        broker.delivery.turn()
        assert broker.state.delays.start_save_timers() is None
        await broker.deliver()
        assert len(broker.state.delays.timers) == 150
        assert broker.state.delays.start_save_timers() is not None
        await broker.pass_ms(100_000)
        assert sorted(map(int, broker.bodies())) == list(range(150))

    run(tmp_path, before, after)


def test_what_waits_comes_also_if_such_large_messages_are_not_taken_any_more(tmp_path: Path) -> None:
    async def before(broker: Waiting) -> None:
        await broker.send("l" * 2000, DELAY="1")
        await broker.send("t" * 2000, TIMER_DELAY_SEC="1")
        broker.state.store.checkpoint()

    async def after(broker: Waiting) -> None:
        await broker.pass_ms(3_000)
        assert sorted(body[0] for body in broker.bodies()) == ["l", "t"]
        assert broker.delivery.dropped_count == 0

    run(tmp_path, before)
    run(tmp_path, after, store_settings=msgspec.structs.replace(STORE, max_message_size=1_000))


def test_a_clock_that_is_set_back_stops_no_level(tmp_path: Path) -> None:
    async def scenario(broker: Waiting) -> None:
        await broker.send("before", DELAY="3")
        await broker.deliver()
        broker.clock.set_now_ms(START_MS - 3_600_000)
        await broker.deliver()
        assert broker.bodies() == ["before"]
        await broker.send("after", DELAY="3")
        await broker.pass_ms(9_999)
        assert broker.bodies() == ["before"]
        await broker.pass_ms(1)
        assert broker.bodies() == ["before", "after"]

    run(tmp_path, scenario)


def test_what_was_delivered_stays_so_when_its_topic_is_deleted(tmp_path: Path) -> None:
    async def before(broker: Waiting) -> None:
        await broker.send("level", DELAY="1")
        await broker.send("timer", TIMER_DELAY_SEC="1")
        await broker.deliver()
        await broker.pass_ms(3_000)
        assert len(broker.bodies()) == 2
        broker.state.store.delete_topics(["T"])
        await broker.send("new")

    async def after(broker: Waiting) -> None:
        await broker.pass_ms(1_000)
        queue = broker.state.store.queues.find("T", 0)
        assert queue is not None
        assert queue.max_offset - queue.min_offset == 1
        assert broker.delivery.found_count == 2

    run(tmp_path, before, after)


def test_a_message_whose_copies_are_too_many_to_count_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(delivered_module, "_MAX_FOUND", 4)

    async def before(broker: Waiting) -> None:
        for number in range(12):
            await broker.send("same", DELAY="1", NUMBER=str(number))
        broker.clock.advance_ms(1_000)
        with monkeypatch.context() as patch:
            patch.setattr(delivery_module, "_TURN_MESSAGES", 6)
            broker.delivery.turn()
        await turns(2)
        assert len(broker.bodies()) == 6

    async def after(broker: Waiting) -> None:
        await broker.pass_ms(1_000)
        assert {broker.properties(offset)["NUMBER"] for offset in range(len(broker.bodies()))} == {
            str(number) for number in range(12)
        }
        broker.delivery._earlier.tell()

    run(tmp_path, before, after)
    assert caplog.text.count("may be delivered twice") == 1


def test_messages_without_an_id_are_told_of_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def before(broker: Waiting) -> None:
        for number in range(3):
            await broker.send(f"{number}", DELAY="1", UNIQ_KEY="")

    async def after(broker: Waiting) -> None:
        await broker.pass_ms(1_000)
        assert broker.bodies() == ["0", "1", "2"]
        broker.delivery._earlier.tell()
        broker.delivery._earlier.tell()

    run(tmp_path, before, after)
    assert caplog.text.count("may be delivered twice") == 1
    assert "count=3" in caplog.text


@pytest.mark.parametrize("delivered_count", [0, 30, 50])
def test_messages_that_are_alike_are_looked_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delivered_count: int
) -> None:
    async def before(broker: Waiting) -> None:
        for _ in range(50):
            await broker.send("same", DELAY="1")
        broker.clock.advance_ms(1_000)
        with monkeypatch.context() as patch:
            patch.setattr(delivery_module, "_TURN_MESSAGES", delivered_count)
            if delivered_count:
                broker.delivery.turn()
        await turns(2)
        assert len(broker.bodies()) == delivered_count

    async def after(broker: Waiting) -> None:
        store, looked_for = broker.state.store, list[str]()
        find_by_key = store.find_by_key

        def find(topic: str, *arguments: Any, **named: Any) -> list[Record]:
            looked_for.append(topic)
            return find_by_key(topic, *arguments, **named)

        monkeypatch.setattr(store, "find_by_key", find)
        await broker.pass_ms(1_000)
        assert len(broker.bodies()) == 50
        assert looked_for == (["T", SCHEDULE_TOPIC] if delivered_count else ["T"])
        assert broker.delivery.found_count == delivered_count

    run(tmp_path, before, after)


def test_a_turn_that_takes_long_ends_early(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with waiting(tmp_path, HastyClock(START_MS)) as broker:
            for number in range(4):
                await broker.send(f"{number}", DELAY="1")
                await broker.send(f"{number}", queue_id=1, TIMER_DELAY_SEC="1")
            while broker.delivery._take_timers():
                pass
            broker.clock.advance_ms(5_000)
            assert broker.delivery.turn()
            await turns(2)
            assert (broker.bodies(), broker.bodies(queue_id=1)) == (["0"], ["0"])
            await broker.deliver()
            assert len(broker.bodies() + broker.bodies(queue_id=1)) == 8

    asyncio.run(scenario())


def test_what_was_delivered_does_not_enter_the_timer_log_again(tmp_path: Path) -> None:
    async def before(broker: Waiting) -> None:
        await broker.send("long", TIMER_DELAY_SEC="600")
        for number in range(5):
            await broker.send(f"{number}", TIMER_DELAY_SEC="1")
        await broker.deliver()
        await broker.pass_ms(3_000)
        save(broker)

    async def after(broker: Waiting) -> None:
        await broker.deliver()
        assert len(broker.state.delays.timer_log._added) == 1

    run(tmp_path, before, after)
