import asyncio
import logging
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tanist.broker import writer as writer_module
from tanist.broker.handlers import all_routes
from tanist.broker.handlers.pull import PullHandler
from tanist.broker.handlers.send import SendHandler
from tanist.broker.transactions.keeper import TransactionKeeper
from tanist.broker.writer import LogWriter
from tanist.errors import CorruptRecord, DiskFull, DivergedLog, NotWritable, OffsetOutOfRange
from tanist.model.message import Message
from tanist.protocol.batch import encode_batch
from tanist.protocol.codes import RequestCode
from tanist.protocol.headers.common import QueueOffsetResponse
from tanist.protocol.headers.offsets import GetMaxOffsetRequest
from tanist.store import MessageStore
from tanist.store.dispatch import BATCH_RECORDS
from tanist.store.diverged import diverged_folders, read_report
from tests.support.broker_tables import Asker
from tests.support.conditions import turns, until
from tests.support.messages import SMALL, TOPIC, append_all, bodies, make_message, numbered, open_store
from tests.support.working_broker import working_broker


def max_offset(store: MessageStore) -> int:
    queue = store.queues.find(TOPIC, 0)
    return queue.max_offset if queue is not None else 0


def test_what_one_turn_of_the_loop_appends_is_dispatched_together(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            told: list[int] = []
            broker.state.store.dispatcher.listeners.append(lambda _topic, _queue, end: told.append(end))
            for number in range(5):
                broker.state.writer.append(make_message(number))
            packed = encode_batch([(0, b"five", b""), (0, b"six", b"")])
            broker.state.writer.append_packed(Message(topic=TOPIC, queue_id=0, body=packed))
            assert max_offset(broker.state.store) == 0
            await asyncio.sleep(0)
            assert max_offset(broker.state.store) == 7
            assert told == [7]

    asyncio.run(scenario())


def test_after_a_run_dispatch_rests_and_whoever_asks_meanwhile_sees_all(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            store, writer = broker.state.store, LogWriter(broker.state.store, broker.flusher, pause_s=60)
            seen: list[int] = []
            for number in range(4):
                writer.append(make_message(2 * number))
                writer.append(make_message(2 * number + 1))
                await turns(3)
                seen.append(max_offset(store))
            assert seen == [2, 2, 2, 2]
            writer.catch_up()
            assert max_offset(store) == 8

    asyncio.run(scenario())


def test_a_message_that_comes_alone_is_dispatched_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            store, writer = broker.state.store, LogWriter(broker.state.store, broker.flusher, pause_s=60)
            seen: list[int] = []
            for number in range(3):
                writer.append(make_message(number))
                await turns(3)
                seen.append(max_offset(store))
            assert seen == [1, 2, 3]

    asyncio.run(scenario())


def test_while_nobody_waits_for_messages_dispatch_rests_after_each_and_whoever_asks_sees_all(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            store, writer = broker.state.store, LogWriter(broker.state.store, broker.flusher, pause_s=60)
            writer.is_awaited = lambda: False
            seen: list[int] = []
            for number in range(3):
                writer.append(make_message(number))
                await turns(3)
                seen.append(max_offset(store))
            writer.catch_up()
            assert [*seen, max_offset(store)] == [1, 1, 1, 3]

    asyncio.run(scenario())


def test_what_others_wrote_into_the_log_is_told_and_dispatched_within_the_call(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            store, writer = broker.state.store, broker.state.writer
            told: list[int] = []
            writer.on_appended.append(lambda: told.append(store.log.log_end))
            for number in range(3):
                # As a lane does it: nobody has noted these for dispatch.
                store.log.append(make_message(number))
            writer.on_taken(3)
            assert told == [store.log.log_end]
            assert max_offset(store) == 3

    asyncio.run(scenario())


def test_slaves_have_a_message_before_its_sender_waits_and_dispatch_comes_last(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            store, writer = broker.state.store, broker.state.writer
            seen: list[tuple[str, int]] = []
            writer.on_appended.append(lambda: seen.append(("slaves", max_offset(store))))
            store.log.append(make_message(0))
            writer.on_taken(1, lambda: seen.append(("wait", max_offset(store))))
            assert seen == [("slaves", 0), ("wait", 0)]
            assert max_offset(store) == 1

    asyncio.run(scenario())


def test_a_sender_waits_for_its_answer_though_a_listener_fails(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            store, writer = broker.state.store, broker.state.writer
            waiting: list[int] = []

            def fail() -> None:
                raise LookupError

            writer.on_appended.append(fail)
            store.log.append(make_message(0))
            with pytest.raises(LookupError):
                writer.on_taken(1, lambda: waiting.append(store.log.log_end))
            assert waiting == [store.log.log_end]
            writer.on_appended.remove(fail)

    asyncio.run(scenario())


def test_whoever_asks_sees_all_though_it_is_more_than_one_step_of_dispatch(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            store, writer = broker.state.store, broker.state.writer
            count = 3 * BATCH_RECORDS
            for number in range(count):
                store.log.append(make_message(number))
            writer.on_taken(count)
            before = max_offset(store)
            writer.catch_up()
            assert (before < count, max_offset(store)) == (True, count)

    asyncio.run(scenario())


def test_whoever_asks_before_the_turn_is_over_sees_all_too(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            broker.state.writer.append(make_message(0))
            broker.state.writer.catch_up()
            assert max_offset(broker.state.store) == 1

    asyncio.run(scenario())


def test_what_is_confirmed_while_a_turn_is_due_is_not_passed_by(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            store, writer = broker.state.store, LogWriter(broker.state.store, broker.flusher, pause_s=60)
            for number in range(2):
                writer.append(make_message(number))
            writer.confirm_to(store.log.log_end)
            await turns(3)
            writer.append(make_message(2))
            confirmed_to = store.log.log_end
            await turns(3)
            writer.append(make_message(3))
            writer.catch_up()
            writer.confirm_to(confirmed_to)
            await turns(3)
            assert max_offset(store) == 2
            writer.catch_up()
            assert max_offset(store) == 3

    asyncio.run(scenario())


def test_a_writer_that_closed_catches_up_with_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            store, writer = broker.state.store, LogWriter(broker.state.store, broker.flusher, pause_s=60)
            for count in (2, 1):
                for number in range(count):
                    writer.append(make_message(number))
                await turns(3)
            await writer.close(5)
            writer.catch_up()
            assert max_offset(store) == 2

    asyncio.run(scenario())


def test_dispatch_goes_on_by_itself_when_it_has_rested(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            store, writer = broker.state.store, LogWriter(broker.state.store, broker.flusher)
            runs: list[int] = []
            store.dispatcher.listeners.append(lambda _topic, _queue, end: runs.append(end))
            for number in range(100):
                writer.append(make_message(2 * number))
                writer.append(make_message(2 * number + 1))
                await turns(1)
            await until(lambda: max_offset(store) == 200)
            assert len(runs) < 100

    asyncio.run(scenario())


def test_a_request_finds_what_was_acknowledged_before_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            state = broker.state
            state.writer = LogWriter(state.store, broker.flusher, pause_s=60)
            asker = Asker(all_routes(state, SendHandler(state), PullHandler(state), TransactionKeeper(state)))
            for count in (2, 1):
                for number in range(count):
                    state.writer.append(make_message(number))
                await turns(3)
            answer = asker.ask(RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequest(topic=TOPIC, queue_id=0))
            assert answer.header(QueueOffsetResponse).queue_offset == 3

    asyncio.run(scenario())


def test_a_dispatch_that_lacks_room_is_tried_again_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(writer_module, "_RETRY_S", 0.01)

    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            store, calls = broker.state.store, 0
            really_dispatch = store.dispatch_some

            def dispatch() -> bool:
                nonlocal calls
                calls += 1
                if calls < 3:
                    raise DiskFull("a queue", 20)
                return really_dispatch()

            monkeypatch.setattr(store, "dispatch_some", dispatch)
            broker.state.writer.append(make_message())
            await until(lambda: max_offset(store) == 1)
            assert calls == 3
            assert store.log.refusal is None

    asyncio.run(scenario())
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2


def test_a_log_that_can_not_be_read_back_takes_no_more_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            store = broker.state.store

            def dispatch() -> bool:
                raise CorruptRecord("commitlog/0", 17, "no record")

            monkeypatch.setattr(store, "dispatch_some", dispatch)
            broker.state.writer.append(make_message())
            await asyncio.sleep(0)
            with pytest.raises(NotWritable, match="no record"):
                broker.state.writer.append(make_message())

    asyncio.run(scenario())


def test_a_writer_that_closes_takes_nothing_more(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            await broker.state.writer.close(5)
            with pytest.raises(NotWritable, match="stops"):
                broker.state.writer.append(make_message())

    asyncio.run(scenario())


def test_what_a_master_sent_is_dispatched_over_several_turns_of_the_loop(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SMALL, mapped_file_size_commit_log=1 << 20)
    count = 2 * BATCH_RECORDS + 9

    async def scenario() -> None:
        with open_store(tmp_path / "master", settings) as master:
            append_all(master, (make_message(number) for number in range(count)))
            async with working_broker(tmp_path, store_settings=settings) as broker:
                broker.state.store.truncate_to(0)
                sent = master.log.read_ahead(0, 1 << 20)
                assert broker.state.writer.append_raw(0, sent) == len(sent)
                seen = [max_offset(broker.state.store)]
                while seen[-1] < count:
                    await asyncio.sleep(0)
                    seen.append(max_offset(broker.state.store))
                assert seen == sorted(set(seen))
                assert len(seen) > 3
                with pytest.raises(OffsetOutOfRange):
                    broker.state.writer.append_raw(0, sent)

    asyncio.run(scenario())


def test_a_slave_that_catches_up_takes_the_log_first_and_dispatches_the_rest_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = msgspec.structs.replace(SMALL, mapped_file_size_commit_log=1 << 20)
    count = 3 * BATCH_RECORDS
    monkeypatch.setattr(writer_module, "_MUCH_BYTES", 1)
    monkeypatch.setattr(writer_module, "_CATCHING_UP_S", 0.05)

    async def scenario() -> None:
        with open_store(tmp_path / "master", settings) as master:
            append_all(master, (make_message(number) for number in range(count)))
            async with working_broker(tmp_path, store_settings=settings) as broker:
                store = broker.state.store
                store.truncate_to(0)
                broker.state.writer.append_raw(0, master.log.read_ahead(0, 1 << 20))
                await turns()
                first = max_offset(store)
                assert 0 < first < count
                await until(lambda: max_offset(store) == count)

    asyncio.run(scenario())


def test_a_writer_that_closed_leaves_the_rest_of_the_dispatch_to_the_store(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SMALL, mapped_file_size_commit_log=1 << 20)
    count = 2 * BATCH_RECORDS + 9

    async def scenario() -> None:
        failures: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: failures.append(context))
        with open_store(tmp_path / "master", settings) as master:
            append_all(master, (make_message(number) for number in range(count)))
            async with working_broker(tmp_path, store_settings=settings) as broker:
                store = broker.state.store
                store.truncate_to(0)
                # The last record is not whole: whoever asks the closed store for it would fail.
                broker.state.writer.append_raw(0, master.log.read_ahead(0, master.log.log_end - 1))
                await asyncio.sleep(0)
                assert 0 < max_offset(store) < count - 1
                await broker.state.writer.close(5)
                store.close()
                assert max_offset(store) == count - 1
                await turns()
        assert failures == []

    asyncio.run(scenario())


def test_slaves_get_also_what_was_appended_last_before_the_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            ends: list[int] = []
            broker.state.writer.on_appended.append(lambda: ends.append(broker.state.store.log.log_end))
            appended = broker.state.writer.append(make_message())
            await broker.state.writer.close(5)
            assert ends == [appended.end]

    asyncio.run(scenario())


# Cutting


def test_a_cut_takes_the_dispatch_that_was_due_with_it_and_keeps_what_it_cuts(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            store, writer = broker.state.store, broker.state.writer
            places = [writer.append(make_message(number)).log_offset for number in range(10)]
            await asyncio.sleep(0)
            writer._due_dispatch = asyncio.get_running_loop().call_later(60, writer._dispatch)
            due = writer._due_dispatch
            await writer.truncate_to(places[4])
            assert due.cancelled()
            assert store.log.log_end == places[4]
            await turns(3)
            assert max_offset(store) == 4
            (folder,) = diverged_folders(store.root)
            report = read_report(folder)
            assert report is not None
            assert (report.start, report.message_count, report.topics) == (places[4], 6, {TOPIC: 6})
            writer.append(make_message(10))
            await turns(3)
            assert bodies(store) == numbered(0, 1, 2, 3, 10)

    asyncio.run(scenario())


def test_what_is_not_dispatched_yet_is_so_after_a_cut_behind_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            store, writer = broker.state.store, broker.state.writer
            places = [writer.append(make_message(number)).log_offset for number in range(10)]
            await writer.truncate_to(places[4])
            await turns(3)
            assert bodies(store) == numbered(0, 1, 2, 3)

    asyncio.run(scenario())


def test_what_is_confirmed_is_not_cut_whoever_asks(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            store, writer = broker.state.store, broker.state.writer
            places = [writer.append(make_message(number)).log_offset for number in range(10)]
            writer.confirm_to(places[5])
            log_end = store.log.log_end
            with pytest.raises(DivergedLog, match=f"confirmed up to {places[5]}"):
                await writer.truncate_to(places[4])
            assert store.log.log_end == log_end
            assert diverged_folders(store.root) == []
            await writer.truncate_to(places[5])
            assert store.log.log_end == places[5]

    asyncio.run(scenario())


@pytest.mark.parametrize("is_whole", [True, False], ids=["whole here", "torn here"])
def test_a_record_of_which_only_a_part_is_confirmed_may_be_cut(tmp_path: Path, is_whole: bool) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            store, writer = broker.state.store, broker.state.writer
            places = [writer.append(make_message(number)).log_offset for number in range(10)]
            last, log_end = places[-1], store.log.log_end
            if not is_whole:
                record = bytes(store.log.read(last, log_end - last - 10))
                store.truncate_to(last)
                writer.append_raw(last, memoryview(record))
            writer.confirm_to(last + 50)
            with pytest.raises(DivergedLog, match=f"confirmed up to {last} "):
                await writer.truncate_to(places[-2])
            await writer.truncate_to(last)
            assert store.log.log_end == store.dispatcher.confirmed_to == last

    asyncio.run(scenario())


def test_what_was_confirmed_stays_so_though_the_next_master_does_not_know_it_yet(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            store, writer = broker.state.store, broker.state.writer
            places = [writer.append(make_message(number)).log_offset for number in range(10)]
            writer.confirm_to(places[5])
            writer.confirm_to(places[2])
            assert store.dispatcher.confirmed_to == places[5]

    asyncio.run(scenario())


def _held_copies(store: MessageStore, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Copies of what is cut end when this event is set, or when nobody wants them."""
    is_let_go = threading.Event()
    keep = store.keep_diverged

    def keep_slowly(log_offset: int, *, is_dropped: Callable[[], bool]) -> None:
        while not (is_let_go.is_set() or is_dropped()):
            is_let_go.wait(0.001)
        keep(log_offset, is_dropped=is_dropped)

    monkeypatch.setattr(store, "keep_diverged", keep_slowly)
    return is_let_go


def test_others_are_served_while_what_is_cut_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            store, writer = broker.state.store, broker.state.writer
            places = [writer.append(make_message(number)).log_offset for number in range(10)]
            is_let_go = _held_copies(store, monkeypatch)
            cutting = broker.tasks.create_task(writer.truncate_to(places[4]))
            await turns(3)
            assert bodies(store) == numbered(*range(10))
            is_let_go.set()
            await cutting
            assert bodies(store) == numbered(*range(4))

    asyncio.run(scenario())


def test_a_cut_that_nobody_wants_any_more_leaves_the_log_and_no_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            store, writer = broker.state.store, broker.state.writer
            places = [writer.append(make_message(number)).log_offset for number in range(10)]
            log_end = store.log.log_end
            _held_copies(store, monkeypatch)
            cutting = broker.tasks.create_task(writer.truncate_to(places[4]))
            await turns(3)
            cutting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cutting
            assert store.log.log_end == log_end
            assert diverged_folders(store.root) == []

    asyncio.run(scenario())


@pytest.mark.parametrize("is_confirmed", [True, False], ids=["confirmed", "grown"])
def test_a_log_that_has_changed_while_it_was_copied_is_not_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_confirmed: bool
) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            store, writer = broker.state.store, broker.state.writer
            places = [writer.append(make_message(number)).log_offset for number in range(10)]
            is_let_go = _held_copies(store, monkeypatch)
            cutting = asyncio.ensure_future(writer.truncate_to(places[4]))
            await turns(3)
            if is_confirmed:
                writer.confirm_to(places[5])
            else:
                writer.append(make_message(10))
            is_let_go.set()
            with pytest.raises(DivergedLog, match="is confirmed" if is_confirmed else "has grown"):
                await cutting
            assert len(bodies(store)) >= 10

    asyncio.run(scenario())


def test_a_cut_that_was_refused_leaves_dispatch_at_work(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            store, writer = broker.state.store, broker.state.writer
            places = [writer.append(make_message(number)).log_offset for number in range(3)]
            with pytest.raises(OffsetOutOfRange):
                await writer.truncate_to(places[1] + 1)
            await turns(3)
            assert max_offset(store) == 3

    asyncio.run(scenario())
