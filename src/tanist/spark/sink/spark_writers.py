"""What Spark sees of a write: it is checked on the driver and done in the Python workers.

There is nothing to undo and so nothing to abort: a message that is written stays. To Spark a task is done
when its last packet was acknowledged, and a batch when all of its tasks are.
"""

import asyncio
import logging
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from tanist.errors import MQError
from tanist.model.writes import WRITE_ID
from tanist.spark.arrow import RecordBatch
from tanist.spark.errors import SparkError
from tanist.spark.rocketmq.cluster import wired
from tanist.spark.sink.brokers import Brokers
from tanist.spark.sink.lanes import Task
from tanist.spark.sink.options import SinkOptions, check_columns, read_sink_options
from tanist.spark.sink.plans import check_partitions
from tanist.spark.sink.task_writing import TaskWriter, Written

_log = logging.getLogger(__name__)

# Spark's own names for what it tells its tasks and not its sinks: MicroBatchExecution sets both.
_QUERY_PROPERTY = "sql.streaming.queryId"
_BATCH_PROPERTY = "streaming.sql.batchId"


@dataclass
class TaskWritten(WriterCommitMessage):
    """What a task tells the driver."""

    written: Written


class RocketMQWriter(DataSourceArrowWriter):
    """One batch write. It goes by a name of its own, unless it is given one to be continued by."""

    def __init__(self, given: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        self._options, self._counts = _checked(given, schema, overwrite=overwrite)
        self._query = self._options.query or f"write-{uuid.uuid4().hex}"

    def write(self, iterator: Iterator[RecordBatch]) -> TaskWritten:
        return _write(iterator, self._options, Task(self._query, 0, _context().partitionId()), self._counts)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        _tell(self._query, 0, messages)
        self._end_unnamed()
        _check(0, messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        _log.warning("write failed query=%s tasks=%d: what is written stays", self._query, len(messages))
        self._end_unnamed()

    def _end_unnamed(self) -> None:
        """Nobody can repeat a write that was given no name: the brokers may forget it."""
        if self._options.query is None:
            asyncio.run(_end(self._options, self._query))


class RocketMQStreamWriter(DataSourceStreamArrowWriter):
    """The batches of a stream. Its name and their numbers are in the checkpoint: a crash changes neither."""

    def __init__(self, given: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        self._options, self._counts = _checked(given, schema, overwrite=overwrite)
        if self._options.query is not None:
            raise SparkError(
                "queryId is for batch writes: a stream goes by the id in its checkpoint; leave it out"
            )

    def write(self, iterator: Iterator[RecordBatch]) -> TaskWritten:
        return _write(iterator, self._options, stream_task(), self._counts)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's.
        _tell("stream", batchId, messages)
        _check(batchId, messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        _log.warning("batch failed batch=%d tasks=%d: what is written stays", batchId, len(messages))


def stream_task() -> Task:
    """Which part of which batch the task is that asks."""
    context = _context()
    query, batch = context.getLocalProperty(_QUERY_PROPERTY), context.getLocalProperty(_BATCH_PROPERTY)
    if query is None or batch is None:
        raise SparkError("this Spark does not tell its tasks which batch of a stream they write; use 4.2")
    return Task(query, int(batch), context.partitionId())


def _context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise SparkError("rows are written by Spark's tasks, and this is none")
    return context


def _checked(
    given: Mapping[str, str], schema: StructType, *, overwrite: bool
) -> tuple[SinkOptions, Mapping[str, int]]:
    """The options, and the queues that there are now. All that can be wrong is said here, on the driver."""
    options = read_sink_options(given)
    check_columns([(one.name, one.dataType.simpleString()) for one in schema.fields], options.sharding_key)
    if overwrite:
        raise SparkError('a topic can not be overwritten, only added to; use mode("append")')
    counts = asyncio.run(_find(options))
    if not counts:
        raise SparkError(f"topic {options.topic} has no queue that takes messages; is it write-protected?")
    return options, counts


async def _find(options: SinkOptions) -> Mapping[str, int]:
    async with wired(options.client_settings) as wire:
        return await Brokers(options, wire).find()


async def _end(options: SinkOptions, query: str) -> None:
    async with wired(options.client_settings) as wire:
        brokers = Brokers(options, wire)
        try:
            await brokers.find()
            await brokers.end(query)
        except MQError as error:
            _log.info("brokers keep a finished write for a while query=%s reason=%s", query, error)


def _write(
    iterator: Iterator[RecordBatch], options: SinkOptions, task: Task, counts: Mapping[str, int]
) -> TaskWritten:
    with asyncio.Runner() as runner:
        connected = wired(options.client_settings)
        wire = runner.run(connected.__aenter__())
        try:
            writer = TaskWriter(options, task, counts, wire)
            runner.run(writer.open())
            for batch in iterator:
                runner.run(writer.add(batch))
            return TaskWritten(runner.run(writer.finish()))
        finally:
            runner.run(connected.__aexit__(None, None, None))


def _check(batch: int, messages: list[WriterCommitMessage | None]) -> None:
    """Only here is it known how many partitions there are: Spark tells no task, nor the driver before."""
    found = [message.written for message in messages if isinstance(message, TaskWritten)]
    before = max((one.partition_count for one in found), default=0)
    check_partitions(batch, count=len(messages), before=before)


def _tell(query: str, batch: int, messages: list[WriterCommitMessage | None]) -> None:
    found = [message.written for message in messages if isinstance(message, TaskWritten)]
    if not all(one.is_exactly_once for one in found):
        _log.warning(
            "batch written at least once query=%s batch=%d: not all brokers keep track of writes; what is "
            "repeated has the same %s, and tanist spark dedup drops it",
            query,
            batch,
            WRITE_ID,
        )
    _log.info(
        "batch written query=%s batch=%d rows=%d body_bytes=%d skipped=%d",
        query,
        batch,
        sum(one.rows for one in found),
        sum(one.body_bytes for one in found),
        sum(one.skipped for one in found),
    )
