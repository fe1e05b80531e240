"""Runs of writes, asked as a connection asks them, of a broker that starts again in between."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from tanist.broker.handlers import topics
from tanist.broker.handlers.send import SendHandler
from tanist.broker.handlers.writes import IS_REPEAT, routes
from tanist.broker.writes import kept_writes
from tanist.errors import DiskFull, ResponseError
from tanist.model.topics import WRITES_TOPIC
from tanist.model.writes import WRITE_ID, WRITE_SUM, WriteId, WriteRun
from tanist.protocol.batch import encode_batch
from tanist.protocol.bodies import encode_body
from tanist.protocol.bodies.writes import QueueCount, WritePlan, WriteProgress
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.common import TopicRequest
from tanist.protocol.headers.send import SendMessageRequestV2
from tanist.protocol.headers.writes import EndWriteRequest, GetWriteProgressRequest, PutWritePlanRequest
from tanist.protocol.properties import encode_properties
from tests.support.conditions import until
from tests.support.fake_connection import FakeConnection, decode_answer
from tests.support.working_broker import SYNC, WorkingBroker, working_broker

T = "TopicA"
Q = "query-1"
C = ResponseCode


class _Writer:
    """Asks for one partition of one batch, with rows that are their numbers."""

    def __init__(self, broker: WorkingBroker) -> None:
        self.state = broker.state
        self.connection = FakeConnection()
        self._routes = SendHandler(broker.state).routes() | routes(broker.state)

    def ask(self, command: Command) -> Command | None:
        try:
            answer = self._routes[command.code](command, self.connection)
        except ResponseError as error:
            return command.reply(error.code, remark=error.remark)
        return decode_answer(answer)[0] if isinstance(answer, bytes) else answer  # pyright: ignore[reportReturnType]

    def write(self, first: int, last: int, *, batch: int = 0, salt: int = 0) -> Command | None:
        items = [
            (
                0,
                b"row %d" % index,
                encode_properties(
                    {
                        WRITE_ID: str(WriteId(Q, batch, 0, index)),
                        WRITE_SUM: f"{index + 1 + salt:x}",
                    }
                ),
            )
            for index in range(first, last + 1)
        ]
        run = WriteRun(Q, batch, 0, first - 1, last, first + salt if first else 0, last + 1 + salt)
        header = SendMessageRequestV2(
            producer_group="P",
            topic=T,
            default_topic="TBW102",
            default_topic_queue_count=4,
            queue_id=1,
            sys_flag=0,
            born_timestamp_ms=1,
            flag=0,
            is_batch=True,
            write_run=str(run),
        )
        return self.ask(Command.request(RequestCode.SEND_BATCH_MESSAGE, header, body=encode_batch(items)))

    def progress(self) -> list[tuple[int, int, int]]:
        header = GetWriteProgressRequest(query=Q, topic=T, partition=0)
        answer = self.ask(Command.request(RequestCode.GET_WRITE_PROGRESS, header))
        assert answer is not None
        assert answer.code == C.SUCCESS, answer.remark
        found = msgspec.json.decode(answer.body, type=WriteProgress)
        return [(mark.queue_id, mark.batch, mark.index) for mark in found.marks]

    def plan(self, from_batch: int = 0) -> WriteProgress:
        plan = WritePlan(from_batch=from_batch, queues=[QueueCount(broker_name="broker-a", count=4)])
        header = PutWritePlanRequest(query=Q, topic=T)
        answer = self.ask(Command.request(RequestCode.PUT_WRITE_PLAN, header, body=encode_body(plan)))
        assert answer is not None
        assert answer.code == C.SUCCESS, answer.remark
        return msgspec.json.decode(answer.body, type=WriteProgress)

    def stored_count(self) -> int:
        self.state.store.dispatch()
        queue = self.state.store.queues.find(T, 1)
        return 0 if queue is None else queue.max_offset


def _play(root: Path, *acts: Callable[[_Writer], Awaitable[None]], store_settings: object = None) -> None:
    """Each act with a broker that was killed after the one before."""

    async def play(act: Callable[[_Writer], Awaitable[None]]) -> None:
        settings = {} if store_settings is None else {"store_settings": store_settings}
        async with working_broker(root, **settings) as broker:  # pyright: ignore[reportArgumentType]
            writer = _Writer(broker)
            broker.state.topics.create_for_send(T, default_topic="TBW102", queue_count=4)
            await act(writer)

    for act in acts:
        asyncio.run(play(act))


def test_repeats_are_refused_and_counted_and_a_rest_is_taken(tmp_path: Path) -> None:
    async def act(writer: _Writer) -> None:
        writer.plan()
        answer = writer.write(0, 4)
        assert answer is not None
        assert (answer.code, answer.remark) == (C.SUCCESS, None)
        again = writer.write(0, 4)
        assert again is not None
        assert (again.code, again.remark) == (C.SUCCESS, IS_REPEAT)
        assert writer.state.writes.repeat_count == 5
        for first, last in ((0, 7), (6, 7)):
            refused = writer.write(first, last)
            assert refused is not None
            assert refused.code == C.WRITE_OUT_OF_TURN
        rest = writer.write(5, 7)
        assert rest is not None
        assert rest.code == C.SUCCESS
        assert writer.stored_count() == 8
        assert writer.progress() == [(1, 0, 7)]

    _play(tmp_path, act)


def test_a_broker_that_was_killed_knows_from_its_log_what_it_has(tmp_path: Path) -> None:
    async def first(writer: _Writer) -> None:
        writer.plan()
        writer.write(0, 4)
        writer.write(0, 2, batch=1)

    async def second(writer: _Writer) -> None:
        assert writer.plan(from_batch=0).plans[0].queues[0].count == 4
        assert writer.progress() == [(1, 1, 2)]
        again = writer.write(0, 2, batch=1)
        assert again is not None
        assert again.remark == IS_REPEAT
        other = writer.write(3, 4, batch=1, salt=7)
        assert other is not None
        assert other.code == C.WRITE_REFUSED
        assert "the same rows in the same order" in (other.remark or "")
        writer.write(3, 4, batch=1)
        assert writer.stored_count() == 10

    _play(tmp_path, first, second, second_again := _knows(1, 4), second_again)


def _knows(batch: int, index: int) -> Callable[[_Writer], Awaitable[None]]:
    async def act(writer: _Writer) -> None:
        assert writer.progress() == [(1, batch, index)]

    return act


def test_the_table_is_written_again_as_the_log_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_writes, "TABLE_EVERY_BYTES", 2000)

    async def act(writer: _Writer) -> None:
        state = writer.state
        writer.plan()
        for batch in range(20):
            writer.write(0, 4, batch=batch)
            state.writes.on_grown(state.store, state.writer, born_host=state.store_host, now_ms=1)
        assert state.store.log.log_end - state.writes.table_end < 2000 + 1200
        state.store.dispatch()
        tables = state.store.queues.find(WRITES_TOPIC, 0)
        assert tables is not None
        assert tables.max_offset > 3

    _play(tmp_path, act, _knows(19, 4))


def test_a_log_that_was_cut_has_its_marks_cut_too(tmp_path: Path) -> None:
    async def act(writer: _Writer) -> None:
        store = writer.state.store
        writer.plan()
        writer.write(0, 4)
        end = store.log.log_end
        writer.write(5, 7)
        store.truncate_to(end)
        assert writer.progress() == [(1, 0, 4)]

    _play(tmp_path, act)


def test_a_repeat_is_answered_when_the_first_one_is_safe(tmp_path: Path) -> None:
    async def act(writer: _Writer) -> None:
        writer.state.writer.pending.is_on = False
        writer.plan()
        writer.state.writer.pending.is_on = True
        assert writer.write(0, 4) is None
        assert writer.write(0, 4) is None
        assert writer.connection.take_sent() == []
        writer.state.store.flush()
        broker_flusher = writer.state.writer.pending._flusher  # pyright: ignore[reportPrivateUsage]
        task = asyncio.get_running_loop().create_task(broker_flusher.run())
        await until(lambda: len(writer.connection.sent) == 2)
        assert [answer.remark for answer in writer.connection.take_sent()] == [None, IS_REPEAT]
        task.cancel()

    _play(tmp_path, act, store_settings=SYNC)


def test_what_comes_late_of_an_ended_query_is_refused(tmp_path: Path) -> None:
    async def act(writer: _Writer) -> None:
        writer.plan()
        writer.write(0, 4)
        header = EndWriteRequest(query=Q, topic=T)
        writer.ask(Command.request(RequestCode.END_WRITE, header))
        late = writer.write(0, 4)
        assert late is not None
        assert late.code == C.WRITE_REFUSED
        assert writer.stored_count() == 5

    _play(tmp_path, act)


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (GetWriteProgressRequest(query="a/b", topic=T, partition=0), "is no name of a query"),
        (GetWriteProgressRequest(query=Q, topic="Nowhere", partition=0), "topic Nowhere does not exist"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, header: GetWriteProgressRequest, why: str) -> None:
    async def act(writer: _Writer) -> None:
        answer = writer.ask(Command.request(RequestCode.GET_WRITE_PROGRESS, header))
        assert answer is not None
        assert answer.code != C.SUCCESS
        assert why in (answer.remark or "")

    _play(tmp_path, act)


def test_a_topic_that_is_deleted_and_made_again_is_written_again(tmp_path: Path) -> None:
    async def act(writer: _Writer) -> None:
        writer.plan()
        writer.write(0, 4)
        deletion = Command.request(RequestCode.DELETE_TOPIC_IN_BROKER, TopicRequest(topic=T))
        topics.routes(writer.state)[RequestCode.DELETE_TOPIC_IN_BROKER](deletion, writer.connection)

    async def again(writer: _Writer) -> None:
        assert writer.progress() == []
        assert writer.plan().plans
        before = writer.stored_count()
        answer = writer.write(0, 4)
        assert answer is not None
        assert (answer.code, answer.remark) == (C.SUCCESS, None)
        assert writer.stored_count() == before + 5

    async def at_once(writer: _Writer) -> None:
        await act(writer)
        writer.state.topics.create_for_send(T, default_topic="TBW102", queue_count=4)
        await again(writer)

    _play(tmp_path / "killed", act, again)
    _play(tmp_path / "at-once", at_once)


def test_a_plan_that_could_not_be_written_down_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(writer: _Writer) -> None:
        def fail(*_what: object, **_how: object) -> None:
            raise DiskFull("the store", 1)

        with monkeypatch.context() as patched:
            patched.setattr(writer.state.writer, "append", fail)
            with pytest.raises(AssertionError):
                writer.plan()
        assert writer.state.writes.marks.is_empty
        assert writer.plan().plans
        assert writer.state.writes.table_end > 0

    _play(tmp_path, act, _has_plan)


async def _has_plan(writer: _Writer) -> None:
    writer.progress()
    assert writer.state.writes.marks.plans(Q, T)
