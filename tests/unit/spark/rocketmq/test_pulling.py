"""Pulls of a worker: what an answer means, and who is asked when nobody answers."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from typing import Any, cast

import msgspec
import pytest

from tanist.client.session.wire import Wire
from tanist.errors import ConnectFailed, RemoteProtocolError, ResponseError
from tanist.model.offsets import QueueOffset
from tanist.model.route import BrokerData, MessageQueue, TopicRouteData
from tanist.protocol.codes import RequestCode, ResponseCode
from tanist.protocol.command import Command
from tanist.protocol.headers.pull import PullMessageRequest, PullMessageResponse
from tanist.protocol.record import encode_record
from tanist.spark.errors import SparkError
from tanist.spark.rocketmq import pulling
from tanist.spark.rocketmq.ahead import STRETCH_BYTES
from tanist.spark.rocketmq.offsets import PullRange
from tanist.spark.rocketmq.options import read_options
from tanist.spark.rocketmq.pulling import (
    BATCH_BYTES,
    Pulled,
    Puller,
    next_of,
    pull_records,
    pull_stretch,
    read_answer,
    what_lacks,
)
from tests.support.messages import make_message
from tests.support.spark_stores import STORE_HOST

QUEUE = MessageQueue(topic="T", broker_name="a", queue_id=0)
SPAN = PullRange(QUEUE, ("old:1", "slave:2"), 10, 50)


def answer(code: int = ResponseCode.SUCCESS, following: int = 12, body: bytes = b"records") -> Command:
    header = PullMessageResponse(
        suggested_broker_id=0,
        next_begin_offset=QueueOffset(following),
        min_offset=QueueOffset(0),
        max_offset=QueueOffset(99),
    )
    return Command.request(code, header, body=body)


def test_an_answer_tells_where_to_go_on() -> None:
    assert read_answer(answer(), 10) == Pulled(b"records", 12)
    assert read_answer(answer(ResponseCode.PULL_RETRY_IMMEDIATELY, 40), 10) == Pulled(b"", 40)
    assert read_answer(answer(ResponseCode.PULL_NOT_FOUND, 3), 10) == Pulled(b"", 10)
    assert read_answer(answer(ResponseCode.PULL_OFFSET_MOVED, 30), 10) == Pulled(b"", 30, has_moved=True)


def test_an_answer_that_goes_nowhere_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="a pull from 10 on was answered with the next as 10"):
        read_answer(answer(following=10), 10)
    with pytest.raises(ResponseError):
        read_answer(answer(ResponseCode.NO_PERMISSION), 10)


def test_messages_that_are_gone_are_an_error_unless_loss_is_accepted() -> None:
    moved = Pulled(b"", 30, has_moved=True)

    with pytest.raises(SparkError, match="queue T/a/0 begins at 30 now, and was to be read from 10"):
        next_of(SPAN, 10, moved, fails_on_loss=True)
    assert next_of(SPAN, 10, moved, fails_on_loss=False) == 30


def test_a_replica_that_ends_too_early_lacks_something() -> None:
    ended, empty = Pulled(b"", 5, has_moved=True), Pulled(b"", 10)

    assert "ends at 5 on the replica that was asked" in str(what_lacks(SPAN, 10, ended))
    assert "has nothing at 10, and was to be read up to 50" in str(what_lacks(SPAN, 10, empty))
    assert what_lacks(SPAN, 10, Pulled(b"", 11)) is None


class PlayedWire:
    """Connections to brokers that live or not, and to a name server that knows who is master."""

    def __init__(self, replies: Callable[[str], Command]) -> None:
        self._replies = replies
        self.remoting = self
        self.asked: list[str] = []

    async def exchange(self, address: str, command: Command, *, timeout_s: float) -> Command:
        assert command.header(PullMessageRequest).max_message_count == 40
        self.asked.append(address)
        return self._replies(address)

    async def request(self, address: str, command: Command, *, timeout_s: float) -> Command:
        assert command.code == RequestCode.GET_ROUTEINFO_BY_TOPIC
        self.asked.append(address)
        broker = BrokerData(cluster="c", broker_name="a", broker_addrs={0: "new:3"})
        return Command.request(0, body=msgspec.json.encode(TopicRouteData(broker_datas=[broker])))


def pull(wire: PlayedWire) -> Pulled:
    options = read_options({"namesrv": "names:9", "subscribe": "T"})
    return asyncio.run(Puller(cast("Wire", cast("Any", wire)), options).pull(SPAN, 10, 40))


def test_whoever_took_over_is_asked_when_the_old_master_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulling, "WAITS_S", (0.0, 0.0))

    def reply(address: str) -> Command:
        if address == "new:3":
            return answer()
        raise ConnectFailed(address, "refused")

    wire = PlayedWire(reply)

    assert pull(wire) == Pulled(b"records", 12)
    assert wire.asked == ["old:1", "slave:2", "names:9", "new:3"]


def test_a_refusal_that_may_pass_is_waited_for_and_another_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pulling, "WAITS_S", (0.0,))
    busy = PlayedWire(lambda _: answer(ResponseCode.SYSTEM_BUSY))
    refusing = PlayedWire(lambda _: answer(ResponseCode.NO_PERMISSION))

    with pytest.raises(ResponseError):
        pull(busy)
    assert busy.asked == ["old:1", "slave:2", "names:9", "new:3"]
    with pytest.raises(ResponseError):
        pull(refusing)


def test_a_slave_that_has_not_come_so_far_is_waited_for_or_another_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pulling, "WAITS_S", (0.0,))

    def reply(address: str) -> Command:
        return answer() if address == "new:3" else answer(ResponseCode.PULL_OFFSET_MOVED, 4)

    wire = PlayedWire(reply)

    assert pull(wire) == Pulled(b"records", 12)
    with pytest.raises(SparkError, match="ends at 4 on the replica that was asked"):
        pull(PlayedWire(lambda _: answer(ResponseCode.PULL_OFFSET_MOVED, 4)))


class PlayedQueue:
    """A queue whose broker answers with so many messages, fewer or more than it is asked for."""

    def __init__(self, end: int, *, each: int, body_bytes: int = 0) -> None:
        self._end = end
        self._each = each
        self._body_bytes = body_bytes
        self.pulled: list[int] = []

    async def pull(self, _span: PullRange, offset: int, _most: int) -> Pulled:
        self.pulled.append(offset)
        following = min(offset + self._each, self._end)
        return Pulled(b"".join(self._record(at) for at in range(offset, following)), following)

    def _record(self, offset: int) -> bytes:
        return encode_record(
            make_message(offset, body_bytes=self._body_bytes),
            queue_offset=offset,
            log_offset=offset * 1000,
            store_timestamp_ms=1,
            store_host=STORE_HOST,
        )

    @property
    def as_puller(self) -> Puller:
        return cast("Puller", cast("Any", self))


@pytest.mark.parametrize("each", [1, 7, 20, 45, 1000])
def test_every_message_of_a_range_comes_once_whatever_answers_have_beyond_it(each: int) -> None:
    options = read_options({"namesrv": "names:9", "subscribe": "T"})
    span = PullRange(QUEUE, ("old:1",), 3, 900)
    with closing(asyncio.new_event_loop()) as loop:
        played = PlayedQueue(1000, each=each).as_puller
        found = [at for one in pull_records(loop, played, span, options) for at in one.queue_offsets.tolist()]

    assert found == list(range(3, 900))


def test_large_messages_come_in_batches_of_their_own() -> None:
    options = read_options({"namesrv": "names:9", "subscribe": "T"})
    span = PullRange(QUEUE, ("old:1",), 0, 20)
    with closing(asyncio.new_event_loop()) as loop:
        played = PlayedQueue(20, each=1, body_bytes=BATCH_BYTES // 2).as_puller
        sizes = [len(one) for one in pull_records(loop, played, span, options)]

    assert sizes == [2] * 10


def test_a_stretch_ends_where_it_should_or_when_there_is_much() -> None:
    def pulled(queue: PlayedQueue, end: int) -> int:
        stretch = asyncio.run(pull_stretch(queue.as_puller, SPAN, 10, end, fails_on_loss=True))
        assert (stretch.first, len(stretch.answers)) == (10, len(queue.pulled))
        return stretch.next_offset

    assert pulled(PlayedQueue(99, each=5), 20) == 20
    assert pulled(PlayedQueue(99, each=4), 20) == 22
    large = PlayedQueue(99, each=1, body_bytes=STRETCH_BYTES // 2)
    assert pulled(large, 20) == 12
