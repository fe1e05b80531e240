"""Writes that are made once: where they stand (20019), plans (20020), their end (20021), and their runs.

A broker of RocketMQ does not know these codes and says so: that is how a writer finds out whom it writes to.
Whoever is told that something is in the log is told when it is safe there, as with a send.
"""

from tanist.broker.state import BrokerState
from tanist.broker.writer import told_to_client
from tanist.broker.writes.marks import Verdict
from tanist.errors import RemoteProtocolError, ResponseError
from tanist.model.message import Appended
from tanist.model.names import shown
from tanist.model.offsets import LogOffset, QueueOffset
from tanist.model.writes import WriteRun, is_query
from tanist.protocol.batch import decode_batch
from tanist.protocol.bodies import decode_java_json, encode_body
from tanist.protocol.bodies.writes import WritePlan
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.frame import encode_command
from tanist.protocol.headers.send import SendMessageResponse
from tanist.protocol.headers.writes import EndWriteRequest, GetWriteProgressRequest, PutWritePlanRequest
from tanist.remoting import Connection, Handler

MAX_PLAN_BROKERS = 1024
IS_REPEAT = "the log has it"
"""The remark of an answer to a run that was taken before."""


def routes(state: BrokerState) -> dict[int, Handler]:
    handler = WriteHandler(state)
    return {
        RequestCode.GET_WRITE_PROGRESS: handler.get_progress,
        RequestCode.PUT_WRITE_PLAN: handler.put_plan,
        RequestCode.END_WRITE: handler.end,
    }


class WriteHandler:
    """Tells writers where they stand."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def get_progress(self, command: Command, connection: Connection) -> Command | None:
        request = command.header(GetWriteProgressRequest)
        self._check(request.query, request.topic)
        return self._answer(command, connection, request.query, request.topic, request.partition)

    def put_plan(self, command: Command, connection: Connection) -> Command | None:
        """Keep a plan, unless there is one; either way the writer is told which ones hold."""
        request = command.header(PutWritePlanRequest)
        self._check(request.query, request.topic)
        plan = decode_java_json(command.body, WritePlan)
        if not 0 < len(plan.queues) <= MAX_PLAN_BROKERS or plan.from_batch < 0:
            raise ResponseError(ResponseCode.INVALID_PARAMETER, "a plan names its first batch and its queues")
        state, now_ms = self._state, self._state.clock.now_ms()
        if not state.writes.marks.has_room(request.query, request.topic):
            raise _full(state, f"query {request.query}")
        with told_to_client():
            state.writer.check_right()
            state.writes.put_plan(
                request.query, request.topic, plan, state.writer, born_host=state.store_host, now_ms=now_ms
            )
        return self._answer(command, connection, request.query, request.topic, None)

    def end(self, command: Command, _connection: Connection) -> Command:
        request = command.header(EndWriteRequest)
        self._check(request.query, request.topic)
        # Not written down: whoever finds it open keeps its marks, which refuse what comes late just as well.
        self._state.writes.marks.end(request.query, request.topic, self._state.clock.now_ms())
        return command.reply()

    def _check(self, query: str, topic: str) -> None:
        """Refuse what can not be answered truly: by a slave, or before the log has been looked at."""
        if not is_query(query):
            raise ResponseError(
                ResponseCode.INVALID_PARAMETER,
                f"{shown(query)} is no name of a query: letters, digits, points, hyphens and underscores, at "
                "most 64",
            )
        if self._state.topics.find(topic) is None:
            raise ResponseError(ResponseCode.TOPIC_NOT_EXIST, f"topic {shown(topic)} does not exist")
        check_ready(self._state)

    def _answer(
        self, command: Command, connection: Connection, query: str, topic: str, partition: int | None
    ) -> Command | None:
        writes = self._state.writes
        progress, safe_to = writes.marks.progress(query, topic, -1 if partition is None else partition)
        if progress.plans:
            safe_to = max(safe_to, writes.table_end)
        answer = command.reply(body=encode_body(progress))
        if not safe_to or not self._state.writer.pending.is_on:
            return answer
        self._state.writer.pending.check(is_waiting=True)
        place = _place(safe_to, self._state.clock.now_ms())
        self._state.writer.pending.answer_when_safe(place, connection, encode_command(answer))
        return None


def check_ready(state: BrokerState) -> None:
    """Refuse while this broker is no master, or has not looked at all of its log."""
    with told_to_client():
        state.writer.check_right()
    if state.settings.is_slave:
        raise ResponseError(ResponseCode.SLAVE_NOT_AVAILABLE, "a slave takes no writes; ask its master")
    if not state.writes.catch_up(state.store):
        raise ResponseError(
            ResponseCode.SYSTEM_BUSY, "[WRITES] the log is being looked at for what it has; ask again"
        )


def admit(
    state: BrokerState, command: Command, run_text: str, queue: tuple[str, int], connection: Connection
) -> WriteRun | bytes | None:
    """The run, if it is to be taken; if the log has it, its answer, or None if that follows when it is safe.

    Raises ResponseError if it is neither.
    """
    check_ready(state)
    try:
        run = WriteRun.parse(run_text)
    except ValueError as error:
        raise ResponseError(ResponseCode.MESSAGE_ILLEGAL, str(error)) from error
    topic, queue_id = queue
    verdict, mark = state.writes.marks.judge(run, topic, queue_id)
    where = f"query {run.query} batch {run.batch} partition {run.partition} in queue {queue_id} of {topic}"
    match verdict:
        case Verdict.TAKE:
            return run
        case Verdict.REPEAT:
            assert mark is not None
            state.writes.repeat_count += _item_count(command.body)
            answer = SendMessageResponse(msg_id="", queue_id=queue_id, queue_offset=QueueOffset(0))
            frame = encode_command(command.reply(ResponseCode.SUCCESS, answer, remark=IS_REPEAT))
            if not state.writer.pending.is_on:
                return frame
            state.writer.pending.check(is_waiting=True)
            place = _place(mark.log_end, state.clock.now_ms())
            state.writer.pending.answer_when_safe(place, connection, frame)
            return None
        case Verdict.OUT_OF_TURN:
            stands = "nothing" if mark is None else f"batch {mark.batch} up to index {mark.index}"
            raise ResponseError(
                ResponseCode.WRITE_OUT_OF_TURN,
                f"{where}: the log has {stands}, and the run is behind index {run.previous}; ask where it "
                "stands and go on from there",
            )
        case Verdict.DIFFERS:
            raise ResponseError(
                ResponseCode.WRITE_REFUSED,
                f"{where}: the rows up to index {min(run.last, mark.index if mark else 0)} are not those "
                "that were written before; a repeated partition must have the same rows in the same order",
            )
        case Verdict.UNKNOWN:
            raise ResponseError(
                ResponseCode.WRITE_OUT_OF_TURN, f"{where}: the query has no plan here; put one first"
            )
        case Verdict.ENDED:
            raise ResponseError(ResponseCode.WRITE_REFUSED, f"{where}: the query has ended")
        case Verdict.FULL:
            raise _full(state, where)


def _full(state: BrokerState, where: str) -> ResponseError:
    return ResponseError(
        ResponseCode.WRITE_REFUSED,
        f"{where}: this broker keeps {len(state.writes.marks)} marks of writes and takes no more; write with "
        "fewer partitions, or to fewer queues",
    )


def _item_count(body: bytes | memoryview) -> int:
    try:
        return len(decode_batch(body))
    except RemoteProtocolError:
        return 0


def _place(log_end: int, now_ms: int) -> Appended:
    """Something that ends there: whoever waits for it waits until the log is safe up to there."""
    return Appended(LogOffset(log_end), QueueOffset(0), 0, now_ms)
