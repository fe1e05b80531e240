"""A task that writes to a broker which is a table of marks, and to a name server that forgets."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pyarrow as pa  # pyright: ignore[reportMissingTypeStubs]
import pytest
from pyspark.sql.datasource import WriterCommitMessage

from tanist.broker.writes.marks import Verdict, WriteMarks
from tanist.errors import ConnectionLost
from tanist.model.route import BrokerData, QueueData, TopicRouteData
from tanist.model.writes import WRITE_RUN, WriteId, WriteRun
from tanist.protocol.bodies import decode_java_json, encode_body
from tanist.protocol.bodies.writes import WritePlan
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.writes import GetWriteProgressRequest, PutWritePlanRequest
from tanist.spark.arrow import RecordBatch
from tanist.spark.errors import SparkError
from tanist.spark.rocketmq.cluster import wired
from tanist.spark.sink import spark_writers, task_writing
from tanist.spark.sink.brokers import Brokers
from tanist.spark.sink.lanes import RowsDiffer, Task
from tanist.spark.sink.options import read_sink_options
from tanist.spark.sink.spark_writers import RocketMQStreamWriter, RocketMQWriter, TaskWritten
from tanist.spark.sink.task_writing import TaskWriter, Written
from tests.support.clocks import FakeClock

TOPIC = "TopicA"
OPTIONS = read_sink_options({"namesrv": "127.0.0.1:1", "topic": TOPIC, "shardingKey": "key"})
TASK = Task("query", 0, 0)


@dataclass
class _Cluster:
    """One broker and its name server, as far as a task asks them."""

    queue_count: int = 1
    marks: WriteMarks = field(default_factory=WriteMarks)
    sent: list[int] = field(default_factory=list[int])
    """The sizes of the packets that came."""
    route_failures: list[ResponseCode | None] = field(default_factory=list[ResponseCode | None])
    """What the name server answers before it is well again; None: it does not answer."""
    lost_count: int = 0
    """So many packets are lost on their way."""

    async def request(self, _address: str, command: Command, **_limits: object) -> Command:
        match command.code:
            case RequestCode.GET_ROUTEINFO_BY_TOPIC:
                return self._route(command)
            case RequestCode.GET_WRITE_PROGRESS:
                asked = command.header(GetWriteProgressRequest)
                return self._told(command, asked.query, asked.partition)
            case RequestCode.PUT_WRITE_PLAN:
                asked = command.header(PutWritePlanRequest)
                self.marks.put_plan(asked.query, TOPIC, decode_java_json(command.body, WritePlan), 1)
                return self._told(command, asked.query, -1)
            case _:
                return self._take(command)

    def _route(self, command: Command) -> Command:
        if self.route_failures:
            code = self.route_failures.pop()
            if code is None:
                raise ConnectionLost("127.0.0.1:1", "it starts again")
            return command.reply(code)
        offered = QueueData(
            broker_name="a", read_queue_count=self.queue_count, write_queue_count=self.queue_count, perm=6
        )
        broker = BrokerData(cluster="c", broker_name="a", broker_addrs={0: "127.0.0.1:2"})
        return command.reply(body=encode_body(TopicRouteData(queue_datas=[offered], broker_datas=[broker])))

    def _told(self, command: Command, query: str, partition: int) -> Command:
        return command.reply(body=encode_body(self.marks.progress(query, TOPIC, partition)[0]))

    def _take(self, command: Command) -> Command:
        if self.lost_count:
            self.lost_count -= 1
            raise ConnectionLost("127.0.0.1:2", "it starts again")
        run, queue_id = WriteRun.parse(command.ext[WRITE_RUN]), int(command.ext["e"])
        self.sent.append(len(command.body))
        verdict, _mark = self.marks.judge(run, TOPIC, queue_id)
        if verdict is Verdict.REPEAT:
            return command.reply(remark="the log has it")
        assert verdict is Verdict.TAKE
        name = WriteId(run.query, run.batch, run.partition, run.last)
        self.marks.note(name, TOPIC, queue_id, total=run.sum, log_end=1, now_ms=1)
        return command.reply()


def _run(cluster: _Cluster, act: Callable[[TaskWriter], Awaitable[object]]) -> None:
    async def run() -> None:
        async with wired(OPTIONS.client_settings) as wire:
            wire.remoting.request = cluster.request  # pyright: ignore[reportAttributeAccessIssue]
            await act(TaskWriter(OPTIONS, TASK, {"a": cluster.queue_count}, wire))

    asyncio.run(run())


def _rows(*bodies: str) -> RecordBatch:
    keys = [str(number) for number in range(len(bodies))]
    return pa.record_batch({"body": list(bodies), "key": keys})  # pyright: ignore[reportUnknownVariableType]


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_writing, "WAITS_S", (0.0,) * 5)


def test_packets_that_are_not_full_are_bounded_over_all_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_writing, "_MAX_OPEN_BYTES", 10_000)
    cluster = _Cluster(queue_count=8)

    async def act(writer: TaskWriter) -> None:
        await writer.open()
        await writer.add(_rows(*["." * 1000] * 100))
        in_time = sum(cluster.sent)
        await writer.finish()
        assert sum(cluster.sent) - in_time < 20_000
        assert len(cluster.sent) > 9

    _run(cluster, act)


@pytest.mark.parametrize("failure", [ResponseCode.TOPIC_NOT_EXIST, None])
def test_a_topic_that_name_servers_forget_for_a_moment_is_waited_for(failure: ResponseCode | None) -> None:
    cluster = _Cluster(route_failures=[failure] * 2)

    async def act(writer: TaskWriter) -> None:
        await writer.open()
        await writer.add(_rows("x", "y"))
        cluster.lost_count, cluster.route_failures = 1, [failure] * 3
        assert (await writer.finish()).rows == 2
        assert len(cluster.sent) == 1

    _run(cluster, act)


def test_rows_are_taken_no_faster_than_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, sleep = FakeClock(), asyncio.sleep
    began_s = clock.monotonic_s()

    async def let_pass(seconds: float) -> None:
        clock.set_monotonic_s(clock.monotonic_s() + seconds)
        await sleep(0)

    async def act(writer: TaskWriter) -> None:
        options = replace(OPTIONS, max_rows_per_s=10)
        slow = TaskWriter(options, TASK, {"a": 1}, writer._wire)  # pyright: ignore[reportPrivateUsage]
        await slow.open()
        for count in (7, 14):
            await slow.add(_rows(*"1234567"))
            assert clock.monotonic_s() - began_s == pytest.approx(count / 10)
        # Who was slower than the rate does not rest, and has its time back.
        await let_pass(0.5)
        await slow.add(_rows("8", "9"))
        assert clock.monotonic_s() - began_s == pytest.approx(1.9)
        assert (await slow.finish()).rows == 16

    monkeypatch.setattr(asyncio, "sleep", let_pass)
    monkeypatch.setattr(task_writing, "time", SimpleNamespace(time=time.time, monotonic=clock.monotonic_s))
    _run(_Cluster(), act)


def test_a_topic_that_was_never_there_is_an_error_at_once() -> None:
    async def look() -> None:
        async with wired(OPTIONS.client_settings) as wire:
            wire.remoting.request = _Cluster(route_failures=[ResponseCode.TOPIC_NOT_EXIST]).request  # pyright: ignore[reportAttributeAccessIssue]
            await Brokers(OPTIONS, wire).find()

    with pytest.raises(SparkError, match="does not exist; create it first"):
        asyncio.run(look())


@pytest.mark.parametrize(
    ("theirs", "is_same"),
    [
        ([("x", "0")], True),
        ([("x", "0"), ("y", "0")], False),
        ([("other", "0"), ("y", "0")], False),
        ([("x", "0"), ("y", "1")], False),
    ],
)
def test_repeats_are_success_only_if_the_other_attempt_has_the_same_rows(
    theirs: list[tuple[str, str]], *, is_same: bool
) -> None:
    """Another attempt of the task begins and ends after this one has looked where it stands."""
    cluster = _Cluster(queue_count=2)

    async def other(writer: TaskWriter) -> None:
        await writer.open()
        bodies, keys = zip(*theirs, strict=True)
        await writer.add(pa.record_batch({"body": list(bodies), "key": list(keys)}))
        await writer.finish()

    async def act(writer: TaskWriter) -> None:
        await writer.open()
        await writer.add(pa.record_batch({"body": ["x"], "key": ["0"]}))
        await other(TaskWriter(OPTIONS, TASK, {"a": 2}, writer._wire))  # pyright: ignore[reportPrivateUsage]
        if is_same:
            assert (await writer.finish()).skipped == 1
        else:
            with pytest.raises(RowsDiffer, match="are not those that were written before"):
                await writer.finish()

    _run(cluster, act)


def test_a_batch_that_is_repeated_with_fewer_partitions_is_found_out() -> None:
    cluster = _Cluster()
    found: list[Written] = []

    async def act(writer: TaskWriter) -> None:
        wire = writer._wire  # pyright: ignore[reportPrivateUsage]
        for partition in (2, 0):
            one = TaskWriter(OPTIONS, TASK._replace(partition=partition), {"a": 1}, wire)
            await one.open()
            await one.add(_rows("x"))
            found.append(await one.finish())

    _run(cluster, act)
    messages: list[WriterCommitMessage | None] = [TaskWritten(one) for one in found]
    writer = RocketMQStreamWriter.__new__(RocketMQStreamWriter)
    writer.commit([*messages, None], TASK.batch)
    with pytest.raises(SparkError, match="begun with 3 partitions at least and repeated with 2"):
        writer.commit(messages, TASK.batch)


def test_a_write_without_a_name_that_fails_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []

    async def end(_options: object, query: str) -> None:
        ended.append(query)

    monkeypatch.setattr(spark_writers, "_end", end)
    writer = RocketMQWriter.__new__(RocketMQWriter)
    writer._options, writer._query = OPTIONS, "write-1"  # pyright: ignore[reportPrivateUsage]
    writer.abort([])
    assert ended == ["write-1"]
