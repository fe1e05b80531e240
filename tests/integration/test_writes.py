"""A write that is made once, over a master that is killed, its successor, and a start anew."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa  # pyright: ignore[reportMissingTypeStubs]
import pytest

from tanist.broker import handlers
from tanist.broker.handlers import writes
from tanist.errors import MQError
from tanist.spark.errors import SparkError
from tanist.spark.rocketmq.cluster import look_up, wired
from tanist.spark.rocketmq.options import read_options
from tanist.spark.sink.brokers import Brokers
from tanist.spark.sink.lanes import RowsDiffer, Task
from tanist.spark.sink.options import SinkOptions, read_sink_options
from tanist.spark.sink.task_writing import TaskWriter, Written, say_once
from tanist.testing import EmbeddedBroker
from tests.support.attacked import wait_until
from tests.support.requests import TOPIC, send_request
from tests.support.tanist_group import GroupProcess
from tests.support.wire import Wire

ROWS = 3000


def _write(options: SinkOptions, row_count: int, *, batch: int = 0, text: str = "row") -> Written:
    """One attempt of the only partition of a batch."""

    async def attempt() -> Written:
        async with wired(options.client_settings) as wire:
            counts = await Brokers(options, wire).find()
            writer = TaskWriter(options, Task("query", batch, 0), counts, wire)
            await writer.open()
            for first in range(0, row_count, 100):
                bodies = [f"{text} {batch} {number} {'.' * 2000}" for number in range(first, first + 100)]
                await writer.add(pa.record_batch({"body": bodies}))
            return await writer.finish()

    return asyncio.run(attempt())


def _options(namesrv: str, topic: str = TOPIC) -> SinkOptions:
    return read_sink_options({"namesrv": namesrv, "topic": topic})


def test_a_master_that_takes_over_knows_what_the_dead_one_took(tmp_path: Path) -> None:
    with GroupProcess(tmp_path) as group, ThreadPoolExecutor(1) as threads:
        old = group.master()
        with Wire(old.address) as wire:
            wire.ask(send_request(b"makes the topic"))
        options = _options(group.names.address)
        assert _write(options, 500).skipped == 0
        before = _stored_count(group.names.address)
        slow = replace(options, max_rows_per_s=ROWS)
        writing = threads.submit(_write, slow, ROWS, batch=1)
        wait_until(lambda: _stored_count(group.names.address) > before)
        old.kill()
        group.wait_for_master(besides=old)
        try:
            writing.result()
        except MQError:
            # As Spark does: a task that fails is tried again.
            _write(options, ROWS, batch=1)
        assert _write(options, ROWS, batch=1).skipped == ROWS
        assert _stored_count(group.names.address) == before + ROWS


def test_a_broker_that_starts_again_refuses_what_it_has_and_what_is_not_the_same(tmp_path: Path) -> None:
    for attempt in range(3):
        with EmbeddedBroker(topics={"Orders": 3}, store=tmp_path / "store") as broker:
            done = _write(_options(broker.namesrv, "Orders"), 700)
            assert done.skipped == (0 if attempt == 0 else 700)
            with pytest.raises(RowsDiffer, match="sortWithinPartitions"):
                _write(_options(broker.namesrv, "Orders"), 700, text="other")
            with pytest.raises(SparkError, match="are not those that were written before"):
                _write(_options(broker.namesrv, "Orders"), 100)


def test_a_broker_that_does_not_know_the_question_is_written_at_least_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As one of RocketMQ: it refuses the code, and takes no batches for retry topics."""
    monkeypatch.setattr(handlers, "_FAMILIES", tuple(one for one in handlers._FAMILIES if one is not writes))  # pyright: ignore[reportPrivateUsage]
    say_once.cache_clear()
    with EmbeddedBroker(topics={TOPIC: 2, "%RETRY%group": 1}) as broker, caplog.at_level("WARNING"):
        for _ in range(2):
            done = _write(_options(broker.namesrv), 600)
            assert (done.skipped, done.is_exactly_once) == (0, False)
        assert _stored_count(broker.namesrv) == 1200
        _write(_options(broker.namesrv, "%RETRY%group"), 100)
        assert _stored_count(broker.namesrv, "%RETRY%group") == 100
    told = [record.getMessage() for record in caplog.records if "at least once" in record.getMessage()]
    assert len(told) == 2
    assert told[0].startswith(f"topic {TOPIC} is written at least once: embedded keep no track of writes")


def _stored_count(namesrv: str, topic: str = TOPIC) -> int:
    return sum(state.max_offset for state in look_up(read_options({"namesrv": namesrv, "subscribe": topic})))
