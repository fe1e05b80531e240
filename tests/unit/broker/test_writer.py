import asyncio
import logging
from pathlib import Path

import pytest

from tanist.broker import writer as writer_module
from tanist.errors import CorruptRecord, DiskFull, NotWritable
from tanist.model.message import Message
from tanist.protocol.batch import encode_batch
from tanist.store import MessageStore
from tests.support.conditions import until
from tests.support.messages import TOPIC, make_message
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


def test_a_dispatch_that_lacks_room_is_tried_again_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(writer_module, "_RETRY_S", 0.01)

    async def scenario() -> None:
        async with working_broker(tmp_path) as broker:
            store, calls = broker.state.store, 0
            really_dispatch = store.dispatch

            def dispatch() -> int:
                nonlocal calls
                calls += 1
                if calls < 3:
                    raise DiskFull("a queue", 20)
                return really_dispatch()

            monkeypatch.setattr(store, "dispatch", dispatch)
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

            def dispatch() -> int:
                raise CorruptRecord("commitlog/0", 17, "no record")

            monkeypatch.setattr(store, "dispatch", dispatch)
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
